#!/usr/bin/env node
// Only what every command needs is loaded statically: with tracing off, or while someone waits, every module is felt.
import type { Worker } from './commands/hook/hook.lazy.js';
import { startsDifferently, withHeldVariables, withNodeStartOf } from './config/node-start.js';
import type { OwnVariables } from './config/own-variables.lazy.js';
import { findStateFolder, STATE_PLACES, WAITS } from './config/platform.js';
import { withPluginOptions } from './config/plugin-options.js';
import { readProjectNames } from './config/project-names.js';
import { SettingsReader } from './config/settings-reader.js';
import { keepCompiled, loadCompiled, mayKeepCompiled } from './shared/compiled-code.js';
import { version } from './shared/version.js';

/** Nobody waits for a worker, so it may take its time. But it must end. */
const WORKER_MS = 50_000;
const WORKER_KILL_MS = 58_000;

const EXIT_CODES: { readonly [error: string]: number } = { UsageError: 2, Interrupted: 130 };

interface Command {
  readonly HELP: string;
  /** Returns the exit code. */
  run(args: readonly string[], env: NodeJS.ProcessEnv, listHelp: typeof readAllHelp): Promise<number>;
}

/** The commands for people. */
const COMMANDS: { readonly [name: string]: () => Promise<Command> } = {
  status: () => import('./commands/status/command.lazy.js'),
  sessions: () => import('./commands/sessions/command.lazy.js'),
  cost: () => import('./commands/cost/command.lazy.js'),
  preview: () => import('./commands/preview/command.lazy.js'),
  open: () => import('./commands/open/command.lazy.js'),
  verify: () => import('./commands/verify/command.lazy.js'),
  rate: () => import('./commands/rate/command.lazy.js'),
  mute: () => import('./commands/mute/mute.lazy.js'),
  unmute: () => import('./commands/mute/unmute.lazy.js'),
  backfill: () => import('./commands/backfill/command.lazy.js'),
  install: () => import('./commands/setup/install.lazy.js'),
  upgrade: () => import('./commands/setup/upgrade.lazy.js'),
  uninstall: () => import('./commands/setup/uninstall.lazy.js'),
  doctor: () => import('./commands/doctor/command.lazy.js'),
  log: () => import('./commands/log/command.lazy.js'),
  statusline: () => import('./commands/statusline/command.lazy.js'),
  completion: () => import('./commands/completion/command.lazy.js'),
  prices: () => import('./commands/prices/command.lazy.js'),
  dashboard: () => import('./commands/dashboard/command.lazy.js'),
};

const HELP = `usage: cc-langfuse <command>

Every day
  status      shows whether turns are sent here, where to, and the last one
  sessions    lists sessions and how much of each is in Langfuse
  cost        shows what Claude Code cost, by day, project, session or model
  preview     shows what would be sent, as a tree or a page
  open        opens a session's page, or a turn's, in Langfuse
  verify      proves that what is to be in Langfuse is there, by reading it back
  rate        rates a turn as good or bad, as a score in Langfuse
  mute        sends nothing more of a session from now on
  unmute      sends a muted session again
  backfill    exports sessions that are already on disk

Set up
  install     registers the hooks and your keys with Claude Code
  upgrade     installs the newest version in place of the installed one
  uninstall   removes program, hooks and keys
  doctor      checks every step from Claude Code to Langfuse and suggests fixes
  log         shows what went wrong in the background
  statusline  shows how to add the session's state to Claude Code's status line
  completion  prints a script that completes commands in bash, zsh or fish
  hook        exports the session that Claude Code names on stdin

Langfuse
  prices      learns the prices of models that Langfuse has no price for
  dashboard   makes a dashboard for Claude Code in Langfuse

cc-langfuse help <command> explains a command, and so does <command> --help.
cc-langfuse --version prints the version.
`;

const HOOK_HELP = `usage: cc-langfuse hook

Reads an event of Claude Code from stdin. If TRACE_TO_LANGFUSE is "true", it
exports the new part of the session. The hooks that install registers start a
launcher, cc-langfuse-hook. The launcher starts this command in the background,
unless Claude Code has to wait for it. The exit code is always 0. It prints only
one message per session, which Claude Code shows, if keys are missing or were
refused, or if the URL is wrong. Errors are logged to
~/.claude/state/cc-langfuse_hook.log
`;

async function main([name, ...args]: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  switch (name) {
    case 'hook':
      if (isHelpWanted(args)) process.stdout.write(HOOK_HELP);
      // First of all, since with tracing off the hook must cost nothing.
      else if (isTracing(env) || mayHaveBeenTraced(env)) await startHook(env);
      return;
    // Started by hook.sh, or by `hook`, in the background.
    case 'worker':
      // An exit would wait for a pending address lookup, so the process is killed.
      setTimeout(() => process.kill(process.pid, 'SIGKILL'), WORKER_KILL_MS).unref();
      return startWorker(env, args);
    // Started by hook.sh, or by `hook`, in the background, if turns are to be seen while they run.
    case 'follow':
      return isTracing(env) ? startFollower(env) : undefined;
    // Started by hook.sh for a command of the plugin.
    case 'slash-command':
      return startSlashCommand(env);
    case '--version':
    case '-v':
    case '-V':
      process.stdout.write(`${version}\n`);
      return;
    case '--help':
    case '-h':
      process.stdout.write(HELP);
      return;
    case 'help':
      return help(args[0], env);
    case undefined:
      process.stderr.write(HELP);
      process.exitCode = 2;
      return;
    default:
      return runCommand(name, args, env);
  }
}

/** In the terminal and the desktop apps someone waits, so a worker does the work. Elsewhere the container may end with the hook. */
async function startHook(passed: NodeJS.ProcessEnv): Promise<void> {
  const own = await readOwnVariables(passed);
  if (!own) return;
  if (!isTracing(own.env)) return optOut(own);
  const env = { ...own.env, CLAUDE_CODE_ENTRYPOINT: passed.CLAUDE_CODE_ENTRYPOINT };
  // Which event it is, only the payload says.
  if (WAITS.headless(env) || WAITS.wanted(env)) return runHook(own);
  const { detachHook } = await import('./commands/hook/detach.lazy.js');
  // The worker sees for itself what does not count.
  return detachHook(process.argv[1] ?? '', own.env, passed);
}

async function startWorker(env: NodeJS.ProcessEnv, [bytes = '']: readonly string[]): Promise<void> {
  const transcriptBytes = /^\d+$/.test(bytes) ? Number(bytes) : undefined;
  const own = await readOwnVariables(env);
  if (!own) return;
  if (!isTracing(own.env)) return optOut(own, transcriptBytes);
  return runHook(own, { forMs: WORKER_MS, transcriptBytes });
}

async function startSlashCommand(env: NodeJS.ProcessEnv): Promise<void> {
  const own = await readOwnVariables(env);
  if (!own) return;
  const { runSlashCommand } = await import('./commands/slash-command/slash-command.lazy.js');
  const { readFileSync } = process.getBuiltinModule('node:fs');
  runSlashCommand(process.argv[1] ?? '', readFileSync(0, 'utf8'), own.env);
}

function findFolders(env: NodeJS.ProcessEnv): string[] {
  return [env.CLAUDE_PROJECT_DIR || process.cwd(), process.cwd()];
}

/** Whether a project may have chosen where the state is. */
function namesStatePlace(named: ReadonlySet<string>): boolean {
  return STATE_PLACES.some(({ variable }) => named.has(variable));
}

/**
 * Claude Code passes on what a project sets. Returns what counts, and lets it count for Node and its libraries, too; undefined if
 * another process does the work, because Node has started with something that does not count.
 */
async function readOwnVariables(passed: NodeJS.ProcessEnv): Promise<OwnVariables | undefined> {
  const folders = findFolders(passed);
  const reader = new SettingsReader();
  const named = readProjectNames(folders, reader);
  const env = withHeldVariables(passed, named);
  const isUnnamed = named.size === 0 && !env.CC_LANGFUSE_SECRET_KEY_COMMAND;
  const own = isUnnamed ? { env, ignored: [] } : await dropForeign(env, folders, named, reader);
  if (startsDifferently(passed, own.env)) {
    await startAgain(withNodeStartOf(env, own.env));
    return undefined;
  }
  useAlone(own.env);
  return { ...own, env: withPluginOptions(own.env), reader };
}

async function dropForeign(
  env: NodeJS.ProcessEnv,
  folders: readonly string[],
  named: ReadonlySet<string>,
  reader: SettingsReader,
): Promise<OwnVariables> {
  loadWorkersFile();
  const { dropForeignVariables } = await import('./config/own-variables.lazy.js');
  // Without it Node looks up whose process this is.
  if (named.has('HOME')) delete process.env.HOME;
  return dropForeignVariables(env, folders, reader);
}

/** Node and the system's libraries read variables by themselves. */
function useAlone(env: NodeJS.ProcessEnv): void {
  for (const name of Object.keys({ ...process.env, ...env })) {
    if (env[name] === undefined) delete process.env[name];
    else process.env[name] = env[name];
  }
}

/** In the shell that Claude Code has for the model, and for `!`, a command gets what the project sets. */
async function dropForeignOfShell(env: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  if (!env.CLAUDECODE) return env;
  const { dirname } = process.getBuiltinModule('node:path');
  const folders = [process.cwd()];
  for (let above = dirname(process.cwd()); above !== folders.at(-1); above = dirname(above)) folders.push(above);
  const reader = new SettingsReader();
  const own = await dropForeign(env, folders, readProjectNames(folders, reader), reader);
  useAlone(own.env);
  return own.env;
}

/** The same command, in a process that gets what this one was given. */
async function startAgain(env: NodeJS.ProcessEnv): Promise<void> {
  const { spawn } = process.getBuiltinModule('node:child_process');
  const again = spawn(process.execPath, process.argv.slice(1), { env, stdio: 'inherit', windowsHide: true });
  await new Promise((resolve) => again.on('error', resolve).on('exit', resolve));
}

async function runHook(own: OwnVariables, worker?: Worker): Promise<void> {
  const isLoaded = loadWorkersFile();
  // The C library would wait 20 s for a name server that does not answer, and until then the process cannot end. It reads this
  // variable before the first lookup; nothing else in `process.env` is changed.
  process.env.RES_OPTIONS ??= 'timeout:1 attempts:2';
  const { hook } = await import('./commands/hook/hook.lazy.js');
  await hook(own, worker);
  if (worker && !isLoaded && mayKeepCompiled(__dirname)) keepCompiled(__dirname);
  // A connection without an answer would keep the process alive.
  process.exit();
}

async function startFollower(env: NodeJS.ProcessEnv): Promise<void> {
  const own = await readOwnVariables(env);
  if (!own || !isTracing(own.env)) return;
  loadWorkersFile();
  const { follow } = await import('./commands/hook/follow.lazy.js');
  await follow(own.env);
  process.exit();
}

async function optOut({ env }: OwnVariables, transcriptBytes?: number): Promise<void> {
  const command = await import('./commands/hook/opt-out.lazy.js');
  return command.optOut(env, transcriptBytes);
}

function isTracing({ CC_TRACE_TO_LANGFUSE, TRACE_TO_LANGFUSE }: NodeJS.ProcessEnv): boolean {
  return (CC_TRACE_TO_LANGFUSE || TRACE_TO_LANGFUSE) === 'true';
}

/** Whether the session has a run with tracing on that has not ended. Older versions of Claude Code do not name the session here. */
function mayHaveBeenTraced(env: NodeJS.ProcessEnv): boolean {
  const { existsSync } = process.getBuiltinModule('node:fs');
  const folder = findStateFolder(env);
  const session = env.CLAUDE_CODE_SESSION_ID;
  const isThere = folder && existsSync(`${folder}/cc-langfuse_sessions${session ? `/${session}/open` : ''}`);
  // If a project has chosen the folder, it is another one.
  return Boolean(isThere) || namesStatePlace(readProjectNames(findFolders(env)));
}

let isCompiled: boolean | undefined;

/** Loads the file that most lazy modules need, if it is there compiled. Returns whether it is. */
function loadWorkersFile(): boolean {
  isCompiled ??= loadCompiled(__dirname);
  return isCompiled;
}

async function help(name: string | undefined, env: NodeJS.ProcessEnv): Promise<void> {
  if (name === 'hook') process.stdout.write(HOOK_HELP);
  else if (name === undefined || name.startsWith('-')) process.stdout.write(HELP);
  else await runCommand(name, ['--help'], env);
}

/** Returns what `--help` prints, by command; the program's own has an empty name. */
async function readAllHelp(): Promise<ReadonlyMap<string, string>> {
  const names = Object.entries(COMMANDS);
  const helps = await Promise.all(names.map(async ([name, load]) => [name, (await load()).HELP] as const));
  return new Map([['', HELP], ['hook', HOOK_HELP], ...helps]);
}

/** Runs a command for a person. An error is printed as one line. */
async function runCommand(name: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  process.stdout.on('error', endWithoutOutput);
  process.stderr.on('error', () => process.exit());
  try {
    const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (!load) {
      const { unknownCommand } = await import('./cli/unknown-command.lazy.js');
      throw unknownCommand(name, ['hook', 'help', '--help', '--version', ...Object.keys(COMMANDS)]);
    }
    const command = await load();
    if (isHelpWanted(args)) process.stdout.write(command.HELP);
    else {
      const { addStateFolder } = await import('./config/own-variables.lazy.js');
      const own = addStateFolder(await dropForeignOfShell(env));
      const { checkStateAccess } = await import('./commands/doctor/state-access.lazy.js');
      checkStateAccess(name, own);
      process.exitCode = await command.run(args, own, readAllHelp);
    }
  } catch (error) {
    const { name: kind, message } = error as Error;
    process.stderr.write(`cc-langfuse: ${message}\n`);
    process.exitCode = EXIT_CODES[kind] ?? 1;
  }
}

/** A reader such as `head` may have seen enough. On a full disk, the output lacks its end. */
function endWithoutOutput({ code, message }: NodeJS.ErrnoException): void {
  if (code === 'EPIPE') process.exit();
  process.stderr.write(`cc-langfuse: the output cannot be written (${code ?? message})\n`);
  process.exit(1);
}

function isHelpWanted(args: readonly string[]): boolean {
  return args.includes('--help') || args.includes('-h');
}

main(process.argv.slice(2), { ...process.env }).catch((error: Error) => {
  process.stderr.on('error', () => {});
  process.stderr.write(`cc-langfuse: ${error.message}\n`);
});
