import { execSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import type { HookCommand } from '../../config/claude-hooks.js';
import { attempt } from '../../shared/attempt.js';
import { isOlder } from '../../shared/version.js';

/** Before, Claude Code ignores `args`, and starts the command alone. */
const FIRST_WITH_ARGS = '2.1.139';
const VERSION_WAIT_MS = 10_000;

/** Builds the commands that start the program in a folder without the PATH of a shell, which desktop apps do not have. */
export function buildAbsoluteCommands(
  folder: string,
  { PATH = '' }: NodeJS.ProcessEnv,
): (event: string) => HookCommand {
  const { platform } = process;
  const node = findLastingPath(process.execPath, PATH);
  const start = { platform, node, program: join(folder, 'cli.cjs'), launcher: join(folder, 'hook.sh') };
  const claudeVersion = platform === 'win32' ? readClaudeVersion() : undefined;
  return (event) => buildCommand(event, { ...start, claudeVersion });
}

/** The files that the hooks start. */
export function findStartedFiles(folder: string, { PATH = '' }: NodeJS.ProcessEnv): string[] {
  return [join(folder, 'cli.cjs'), join(folder, 'hook.sh'), findLastingPath(process.execPath, PATH)];
}

/** What a hook starts, and for whom. */
interface HookStart {
  readonly platform: NodeJS.Platform;
  readonly node: string;
  readonly program: string;
  readonly launcher: string;
  /** Undefined if it is not known. It matters only on Windows. */
  readonly claudeVersion: string | undefined;
}

/**
 * Builds the command for an event, in a form that no version of Claude Code can misread. With `exec`, because Claude Code takes longer
 * to stop a program behind a shell. A comment names cc-langfuse if the path does not.
 */
export function buildCommand(
  event: string,
  { platform, node, program, launcher, claudeVersion }: HookStart,
): HookCommand {
  const withMark = (command: string, path: string) =>
    /\bcc-langfuse\b/.test(path) ? command : `${command} # cc-langfuse`;
  // Never with `args`: older versions would start a shell without them, and it would run the payload as a script.
  if (platform !== 'win32') return { command: withMark(`exec ${quote(launcher)} ${event} ${quote(node)}`, launcher) };
  // Windows has no shell of its own that could run the launcher.
  if (claudeVersion !== undefined && !isOlder(claudeVersion, FIRST_WITH_ARGS))
    return { command: node, args: [program, 'hook'] };
  // Claude Code starts hooks with Git Bash, which would take backslashes for escapes.
  const [bashNode, bashProgram] = [node, program].map((path) => `"${path.replaceAll('\\', '/')}"`);
  return { command: withMark(`exec ${bashNode} ${bashProgram} hook`, program) };
}

function readClaudeVersion(): string | undefined {
  // Through a shell, since it may be a script.
  const printed = attempt(() =>
    execSync('claude --version', { encoding: 'utf8', timeout: VERSION_WAIT_MS, stdio: 'pipe' }),
  );
  return /^\d+\.\d+\.\d+/.exec(printed ?? '')?.[0];
}

/**
 * Finds a link to Node on the PATH. Package managers install each version in a folder of its own, which an upgrade removes,
 * and link to the current one from elsewhere. Links that are made for one shell or one project do not count.
 */
export function findLastingPath(executable: string, searchPath: string): string {
  const name = process.platform === 'win32' ? 'node.exe' : 'node';
  const candidates = searchPath
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && !/fnm_multishells|node_modules/.test(folder))
    .map((folder) => join(folder, name));
  const real = realpathSync(executable);
  return candidates.find((candidate) => attempt(() => realpathSync(candidate)) === real) ?? executable;
}

/** Finds the prefix below which npm has installed a program for all projects; undefined if it has not. */
export function findGlobalPrefix(program: string, platform = process.platform): string | undefined {
  const place =
    platform === 'win32'
      ? /^(?!.*\\_npx\\)(.+)\\node_modules\\cc-langfuse\\dist\\cli\.cjs$/
      : /^(.+)\/lib\/node_modules\/cc-langfuse\/dist\/cli\.cjs$/;
  return place.exec(program)?.[1];
}

/** Quotes for a POSIX shell. */
function quote(path: string): string {
  return `"${path.replace(/["$`\\]/g, '\\$&')}"`;
}
