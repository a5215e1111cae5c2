#!/usr/bin/env node
// Only what every command needs is loaded statically: with tracing off, or while someone waits, every module is felt.
import type { Worker } from './commands/hook/hook.lazy.js';
import { withPluginOptions } from './config/plugin-options.js';
import { version } from './shared/version.js';

/** Nobody waits for a worker, so it may take its time. But it must end. */
const WORKER_MS = 50_000;
const WORKER_KILL_MS = 58_000;

const EXIT_CODES: { readonly [error: string]: number } = { UsageError: 2, Interrupted: 130 };

interface Command {
  readonly HELP: string;
  /** Returns the exit code. */
  run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number>;
}

/** The commands for people. */
const COMMANDS: { readonly [name: string]: () => Promise<Command> } = {
  install: () => import('./commands/setup/install.lazy.js'),
  uninstall: () => import('./commands/setup/uninstall.lazy.js'),
  doctor: () => import('./commands/doctor/command.lazy.js'),
  preview: () => import('./commands/preview/command.lazy.js'),
  backfill: () => import('./commands/backfill/command.lazy.js'),
  sessions: () => import('./commands/sessions/command.lazy.js'),
  mute: () => import('./commands/mute/mute.lazy.js'),
  unmute: () => import('./commands/mute/unmute.lazy.js'),
};

const HELP = `usage: cc-langfuse <command>

  hook        exports the session that Claude Code names on stdin
  install     registers the hooks and your keys with Claude Code
  uninstall   removes them
  doctor      checks every step from Claude Code to Langfuse and suggests fixes
  preview     shows what would be sent of a session, as a tree or a page
  backfill    exports sessions that are already on disk
  sessions    lists sessions and how much of each is in Langfuse
  mute        keeps a session on this machine from now on
  unmute      ends that

cc-langfuse <command> --help explains a command; cc-langfuse --version prints
the version.
`;

const HOOK_HELP = `usage: cc-langfuse hook

Claude Code describes an event on stdin. If TRACE_TO_LANGFUSE is "true", the new
part of the session is exported. The hooks that install registers start a
launcher, cc-langfuse-hook, which starts this command in the background unless
Claude Code has to wait for it. The exit code is always 0. Nothing is printed
except, once per session, a message for Claude Code to show if keys are missing
or were refused, or if the URL is wrong. Errors are logged to ~/.claude/state/cc-langfuse_hook.log
`;

async function main([name, ...args]: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  switch (name) {
    case 'hook':
      if (isHelpWanted(args)) process.stdout.write(HOOK_HELP);
      // First of all, since with tracing off the hook must cost nothing.
      else if (isTracing(env)) await startHook(withPluginOptions(env));
      else if (mayHaveBeenTraced(env)) await optOut(env);
      return;
    // Started by hook.sh, or by `hook`, in the background.
    case 'worker':
      // An exit would wait for a pending address lookup, so the process is killed.
      setTimeout(() => process.kill(process.pid, 'SIGKILL'), WORKER_KILL_MS).unref();
      return startWorker(env, args);
    // Started by hook.sh, or by `hook`, in the background, if turns are to be seen while they run.
    case 'follow':
      return isTracing(env) ? startFollower(withPluginOptions(env)) : undefined;
    case '--version':
      process.stdout.write(`${version}\n`);
      return;
    case '--help':
    case '-h':
      process.stdout.write(HELP);
      return;
    case undefined:
      process.stderr.write(HELP);
      process.exitCode = 2;
      return;
    default:
      return runCommand(name, args, env);
  }
}

/** In the terminal and the desktop apps someone waits, so a worker does the work. Elsewhere the container may end with the hook. */
async function startHook(env: NodeJS.ProcessEnv): Promise<void> {
  const { CLAUDE_CODE_ENTRYPOINT: entrypoint = '', CI, CC_LANGFUSE_WAIT } = env;
  if (entrypoint === '' || entrypoint.startsWith('sdk') || CI || CC_LANGFUSE_WAIT === '1') return runHook(env);
  keepCompiledCode(env);
  const { detachHook } = await import('./commands/hook/detach.lazy.js');
  return detachHook(process.argv[1] ?? '', env);
}

function startWorker(env: NodeJS.ProcessEnv, [bytes = '']: readonly string[]): Promise<void> {
  const transcriptBytes = /^\d+$/.test(bytes) ? Number(bytes) : undefined;
  return isTracing(env)
    ? runHook(withPluginOptions(env), { forMs: WORKER_MS, transcriptBytes })
    : optOut(env, transcriptBytes);
}

async function runHook(env: NodeJS.ProcessEnv, worker?: Worker): Promise<void> {
  keepCompiledCode(env);
  // The C library would wait 20 s for a name server that does not answer, and until then the process cannot end. It reads this
  // variable before the first lookup; nothing else in `process.env` is changed.
  process.env.RES_OPTIONS ??= 'timeout:1 attempts:2';
  const { hook } = await import('./commands/hook/hook.lazy.js');
  await hook(env, worker);
  // A connection without an answer would keep the process alive.
  process.exit();
}

async function startFollower(env: NodeJS.ProcessEnv): Promise<void> {
  keepCompiledCode(env);
  const { follow } = await import('./commands/hook/follow.lazy.js');
  await follow(env);
  process.exit();
}

async function optOut(env: NodeJS.ProcessEnv, transcriptBytes?: number): Promise<void> {
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
  return folder !== undefined && existsSync(`${folder}/cc-langfuse_open/${env.CLAUDE_CODE_SESSION_ID ?? ''}`);
}

function findStateFolder({ CLAUDE_CONFIG_DIR, HOME, USERPROFILE }: NodeJS.ProcessEnv): string | undefined {
  const home = HOME || USERPROFILE;
  const folder = CLAUDE_CONFIG_DIR || (home && `${home}/.claude`);
  return folder && `${folder}/state`;
}

/** Half of a hook's time is spent compiling the same code, so Node keeps the result if it can (22.1). */
function keepCompiledCode(env: NodeJS.ProcessEnv): void {
  // Not in the folder that Node would choose, which all users share: what is in it is executed.
  const folder = findStateFolder(env);
  const { enableCompileCache } = process.getBuiltinModule('node:module') as {
    enableCompileCache?(folder: string): void;
  };
  if (folder) enableCompileCache?.(`${folder}/cc-langfuse_compiled`);
}

/** Runs a command for a person. An error is printed as one line. */
async function runCommand(name: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  // A reader such as `head` may have seen enough.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => process.exit());
  try {
    const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (!load) {
      const { unknownCommand } = await import('./cli/unknown-command.lazy.js');
      throw unknownCommand(name, ['hook', ...Object.keys(COMMANDS)]);
    }
    const command = await load();
    if (isHelpWanted(args)) process.stdout.write(command.HELP);
    else process.exitCode = await command.run(args, env);
  } catch (error) {
    const { name: kind, message } = error as Error;
    process.stderr.write(`cc-langfuse: ${message}\n`);
    process.exitCode = EXIT_CODES[kind] ?? 1;
  }
}

function isHelpWanted(args: readonly string[]): boolean {
  return args.includes('--help') || args.includes('-h');
}

main(process.argv.slice(2), process.env).catch((error: Error) => {
  process.stderr.on('error', () => {});
  process.stderr.write(`cc-langfuse: ${error.message}\n`);
});
