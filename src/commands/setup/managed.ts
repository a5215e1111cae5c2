import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { UsageError } from '../../cli/command-line.js';
import { toOneLine } from '../../cli/format.js';
import { ownCommand } from '../../cli/own-command.js';
import { printStderr, printStdout } from '../../cli/terminal.js';
import {
  findOwnHooks,
  HOOK_SECONDS,
  type HookCommand,
  hookSeconds,
  portableCommand,
} from '../../config/claude-hooks.js';
import { envBlock, readSettingsAt } from '../../config/claude-settings.js';
import { settingsPath } from '../../config/settings-paths.js';
import { keepCompiled, mayKeepCompiled } from '../../shared/compiled-code.js';
import { version } from '../../shared/version.js';
import { buildVariables, type Credentials, checkKnownCredentials, readGatewayHeaders } from './credentials.js';
import { buildAbsoluteCommands, findStartedFiles } from './program-path.js';
import { addToSettings } from './settings-change.js';
import { planChange, type SettingsChange, showChange, writeChange } from './settings-file.js';
import { findSharingProblem } from './shared-program.js';
import { buildUserVariables } from './user.js';

/** What an administrator has given. Nothing is taken from the administrator's own settings. */
interface ManagedRequest {
  readonly isDryRun: boolean;
  /** Only prints the settings, for a system that distributes them. */
  readonly isPrinted: boolean;
  readonly given: Partial<Credentials>;
  readonly secretKeyCommand: string | undefined;
  readonly user: string | undefined;
}

/** Installs for everyone on this machine, into a file of its own that Claude Code merges over the other managed settings. */
export async function installManaged(request: ManagedRequest, env: NodeJS.ProcessEnv): Promise<number> {
  const { isDryRun, isPrinted, given, secretKeyCommand, user } = request;
  checkKeysGiven(request);
  const program = findProgram();
  const commandFor = chooseCommands(program, isPrinted, env);
  const variables = {
    TRACE_TO_LANGFUSE: 'true',
    ...buildVariables(given, {}),
    // Nobody else names it on these machines, and keys for ingestion do not tell it.
    ...(given.projectId !== undefined && { CC_LANGFUSE_PROJECT_ID: given.projectId }),
    ...buildUserVariables(user, {}),
    ...(secretKeyCommand !== undefined && { CC_LANGFUSE_SECRET_KEY_COMMAND: secretKeyCommand }),
  };
  if (isPrinted) {
    printStdout(addToSettings('', commandFor, variables).trimEnd());
    return 0;
  }
  const path = settingsPath('managed', env, '');
  const change = planChange(path, (text) => addToSettings(text, commandFor, variables));
  if (isDryRun) {
    printStdout(showChange(change));
    return 0;
  }
  const checked =
    given.secretKey === undefined
      ? undefined
      : await checkKnownCredentials({ ...given, headers: await readGatewayHeaders(env) });
  writeForEveryone(change, program);
  if (checked?.connection !== undefined) printStdout(checked.connection);
  if (change.before === change.after) printStdout(`${path} is up to date; nothing was changed`);
  else printStdout(`registered ${Object.keys(HOOK_SECONDS).join(', ')} in ${path}, for everyone on this machine`);
  printStdout(describeNextSteps(request));
  if (given.secretKey !== undefined)
    warn(`every user of this machine can read the secret key in ${path}; --secret-key-command keeps it out`);
  return 0;
}

/** Plans to register the hooks as this version does it, in the form that they have. Throws if the managed settings have none. */
export function planManagedUpgrade(isPrinted: boolean, env: NodeJS.ProcessEnv): SettingsChange {
  const path = settingsPath('managed', env, '');
  const content = readSettingsAt(path);
  const own = content.kind === 'settings' ? findOwnHooks(content.settings) : [];
  if (own.length === 0) throw new Error(`${path} starts no cc-langfuse; run: ${ownCommand()} install --scope managed`);
  const isPortable = own.some(({ event, command }) => command === portableCommand(event).command);
  const commandFor = isPortable ? portableCommand : chooseCommands(findProgram(), isPrinted, env);
  const events = hookSeconds(envBlock(content));
  return planChange(path, (text) => addToSettings(text, commandFor, {}, events));
}

export function writeManagedUpgrade(change: SettingsChange): void {
  writeForEveryone(change, findProgram());
  if (change.before === change.after) printStdout(`${change.path} is up to date; nothing was changed in it`);
  else printStdout(`registered the hooks of ${version} in ${change.path}, for everyone on this machine`);
}

/** It is not copied, so that only an administrator can replace it. */
function findProgram(): string {
  return dirname(realpathSync(process.argv[1] ?? ''));
}

/** The commands that start the program for every user. If it is not for every user, they can only be printed. */
function chooseCommands(program: string, isPrinted: boolean, env: NodeJS.ProcessEnv): (event: string) => HookCommand {
  const problem = findStartedFiles(program, env).map(findSharingProblem).find(Boolean);
  if (problem !== undefined && !isPrinted)
    throw new Error(
      `${problem}, so the hooks of others could not start it, or its owner could change what they run: install Node and cc-langfuse for all users (sudo npm install --global), or use --print`,
    );
  if (problem === undefined) return buildAbsoluteCommands(program, env);
  warn(`${problem}, so these hooks look for cc-langfuse-hook and node on the PATH of each user`);
  return portableCommand;
}

/** Writes the settings, and compiles the program that they start. */
function writeForEveryone(change: SettingsChange, program: string): void {
  try {
    writeChange(change, { keepsBackup: false, isShared: true });
  } catch (error) {
    const isRoot = process.getuid?.() === 0;
    throw new Error(
      `${(error as Error).message}${isRoot ? '' : '; run it as an administrator (sudo), or use --print'}`,
    );
  }
  if (mayKeepCompiled(program)) keepCompiled(program);
}

function checkKeysGiven({ given: { publicKey, secretKey }, secretKeyCommand }: ManagedRequest): void {
  if (secretKey !== undefined && secretKeyCommand !== undefined)
    throw new UsageError('--secret-key-stdin and --secret-key-command: choose one of them');
  const hasSecretKey = secretKey !== undefined || secretKeyCommand !== undefined;
  if (hasSecretKey !== (publicKey !== undefined))
    throw new UsageError(
      '--scope managed takes both keys or none: --public-key, and --secret-key-command or --secret-key-stdin',
    );
}

function describeNextSteps({ given: { publicKey } }: ManagedRequest): string {
  const keys =
    publicKey === undefined
      ? 'It has no keys: everyone needs LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY in their own settings.\n'
      : '';
  return `${keys}It needs Claude Code 2.1.83 or newer. To check it, as each user: cc-langfuse doctor`;
}

function warn(line: string): void {
  printStderr(`cc-langfuse: ${toOneLine(line)}`);
}
