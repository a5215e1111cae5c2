import { accessSync, constants, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorReason } from '../../cli/command-line.js';
import { printStderr, quoteForShell } from '../../cli/terminal.js';
import { stateFolder } from '../../config/claude-folder.js';
import { attempt } from '../../shared/attempt.js';

/** What of the state this user cannot use. */
interface Denied {
  /** One sentence, without a full stop. */
  readonly message: string;
  readonly fix: string;
  readonly isReadable: boolean;
}

/** What a command cannot do without. The others show what they know. */
const NEEDS: { readonly [command: string]: 'to read' | 'to write' } = {
  preview: 'to read',
  open: 'to read',
  verify: 'to read',
  log: 'to read',
  rate: 'to write',
  mute: 'to write',
  unmute: 'to write',
  backfill: 'to write',
};

/** Says that the state belongs to someone else. Throws if the command cannot do without it. `doctor` says it in its report. */
export function checkStateAccess(command: string, env: NodeJS.ProcessEnv): void {
  const denied = command === 'doctor' ? undefined : findDenied(stateFolder(env));
  if (!denied) return;
  const sentence = `${denied.message}; to get it back: ${denied.fix}`;
  const need = NEEDS[command];
  if (need === 'to write' || (need === 'to read' && !denied.isReadable)) throw new Error(sentence);
  printStderr(`cc-langfuse: ${sentence}`);
}

/** Finds what another user has made in a folder, or the folder itself: mostly by a command that ran with sudo. */
export function findDenied(folder: string): Denied | undefined {
  const own = attempt(() => readdirSync(folder))?.filter((name) => name.startsWith('cc-langfuse_')) ?? [];
  const paths = [folder, ...own.map((name) => join(folder, name))].flatMap((path) => findDeniedPath(path) ?? []);
  // What cannot be read matters more than what cannot be written.
  const path = paths.find((each) => !isAllowed(each, constants.R_OK)) ?? paths[0];
  if (path === undefined) return undefined;
  const owner = attempt(() => statSync(path).uid);
  const isReadable = isAllowed(path, constants.R_OK);
  const quoted = quoteForShell(path);
  const giveRights = `chmod -R u+rwX ${quoted}`;
  if (owner === process.getuid?.())
    return { message: `${path} is yours, but its mode keeps you from using it`, fix: giveRights, isReadable };
  return {
    message: `${path} belongs to ${owner === 0 ? 'root' : 'another user'}, so cc-langfuse cannot ${isReadable ? 'write to' : 'use'} it`,
    fix: `sudo chown -R "$(id -un)" ${quoted} && ${giveRights}`,
    isReadable,
  };
}

/** The path itself, or the folder above it that cannot be entered. */
function findDeniedPath(path: string): string | undefined {
  try {
    const isFolder = statSync(path).isDirectory();
    accessSync(path, constants.R_OK | constants.W_OK | (isFolder ? constants.X_OK : 0));
    return undefined;
  } catch (error) {
    if (errorReason(error) !== 'EACCES') return undefined;
    return attempt(() => statSync(path)) === undefined ? findDeniedPath(dirname(path)) : path;
  }
}

function isAllowed(path: string, mode: number): boolean {
  return attempt(() => accessSync(path, mode) === undefined) ?? false;
}
