#!/usr/bin/env node
// Nothing is loaded here but what every command needs: where tracing is off, or someone waits, each module would be felt.
import { withPluginOptions } from './config/plugin-options.js';
import { version } from './shared/version.js';

const [command] = process.argv.slice(2);
/** Nobody waits for a worker, so it may take its time; but it ends. */
const WORKER_MS = 50_000;
const WORKER_ENDS_MS = 58_000;

async function main(): Promise<void> {
  const { env, argv } = process;
  switch (command) {
    case 'hook': {
      if (argv[3] === '--help' || argv[3] === '-h') {
        process.stdout.write(HOOK_HELP);
        return;
      }
      // Before anything else: where tracing is off the hook must cost nothing.
      if (env.TRACE_TO_LANGFUSE !== 'true') return;
      const hookEnv = withPluginOptions(env);
      keepCompiled(env);
      if (isWaitedFor(hookEnv)) {
        const { handOverHook } = await import('./commands/hook/detach.lazy.js');
        return handOverHook(argv[1] ?? '', hookEnv);
      }
      const { hook } = await import('./commands/hook/hook.lazy.js');
      await hook(hookEnv);
      // A connection that nobody answers on would keep the process.
      return process.exit();
    }
    case 'worker': {
      // Not with exit, which waits for what asks for a server's address.
      setTimeout(() => process.kill(process.pid, 'SIGKILL'), WORKER_ENDS_MS).unref();
      keepCompiled(env);
      const { hook } = await import('./commands/hook/hook.lazy.js');
      await hook(env, WORKER_MS);
      return process.exit();
    }
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
      return byHand(command);
  }
}

interface Command {
  readonly does: string;
  /** Gives the exit code. */
  readonly load: () => Promise<{ run: (args: readonly string[], env: NodeJS.ProcessEnv) => Promise<number> }>;
}

/** What a person runs. */
const COMMANDS: { readonly [name: string]: Command } = {
  install: {
    does: 'registers the hooks with Claude Code, and the keys they need',
    load: () => import('./commands/setup/install.lazy.js'),
  },
  uninstall: { does: 'takes them out again', load: () => import('./commands/setup/uninstall.lazy.js') },
  doctor: {
    does: 'looks at the whole way to Langfuse, and says what mends it',
    load: () => import('./commands/doctor/command.lazy.js'),
  },
  preview: {
    does: 'shows what would be sent of a session, as a tree or a page',
    load: () => import('./commands/preview/command.lazy.js'),
  },
  backfill: { does: 'exports sessions that are on disk', load: () => import('./commands/backfill/command.lazy.js') },
  sessions: {
    does: 'lists them, and how much of each is in Langfuse',
    load: () => import('./commands/sessions/command.lazy.js'),
  },
};

const HELP = `usage: cc-langfuse <command>

  hook        what Claude Code starts: exports the session that stdin names
${Object.entries(COMMANDS)
  .map(([name, { does }]) => `  ${name.padEnd(12)}${does}\n`)
  .join('')}
cc-langfuse <command> --help tells more; cc-langfuse --version is its version.
`;

const HOOK_HELP = `usage: cc-langfuse hook

Claude Code starts it, with what has happened on stdin. It exports what that
session has new, where TRACE_TO_LANGFUSE is "true", and exits with 0, whatever
happens. It prints nothing but, once in a session, a message for Claude Code to
show where keys are missing or were refused. What else goes wrong stands in the
log: ~/.claude/state/cc-langfuse_hook.log
`;

/**
 * Half of what a hook takes is compiling, always the same: where Node can keep it (22.1), it is kept. Not in the folder that
 * all users share, which is Node's own choice: what lies there is run.
 */
function keepCompiled({ CLAUDE_CONFIG_DIR, HOME, USERPROFILE }: NodeJS.ProcessEnv): void {
  const home = HOME || USERPROFILE;
  const folder = CLAUDE_CONFIG_DIR || (home && `${home}/.claude`);
  const { enableCompileCache } = process.getBuiltinModule('node:module') as {
    enableCompileCache?(folder: string): void;
  };
  if (folder) enableCompileCache?.(`${folder}/state/cc-langfuse_compiled`);
}

/** What cannot be done is told in one line. */
async function byHand(name: string): Promise<void> {
  // Whoever reads the output may have seen enough.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => process.exit());
  try {
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (command) {
      const { run } = await command.load();
      process.exitCode = await run(process.argv.slice(3), process.env);
    } else {
      const { unknownCommand } = await import('./cli/unknown-command.lazy.js');
      throw unknownCommand(name, ['hook', ...Object.keys(COMMANDS)]);
    }
  } catch (error) {
    const { name: kind, message } = error instanceof Error ? error : new Error(String(error));
    if (kind === 'HelpWanted') {
      process.stdout.write(message);
      return;
    }
    process.stderr.write(`cc-langfuse: ${message}\n`);
    process.exitCode = EXIT_CODES[kind] ?? 1;
  }
}

const EXIT_CODES: { readonly [error: string]: number } = { UsageError: 2, Interrupted: 130 };

/**
 * Whether someone waits for the hook: in the terminal and the desktop apps. Headless it must do its work itself, since the
 * container may end with it.
 */
function isWaitedFor({ CLAUDE_CODE_ENTRYPOINT: entrypoint = '', CI, CC_LANGFUSE_WAIT }: NodeJS.ProcessEnv): boolean {
  return entrypoint !== '' && !entrypoint.startsWith('sdk') && !CI && CC_LANGFUSE_WAIT !== '1';
}

main().catch((error: unknown) => {
  process.stderr.on('error', () => {});
  process.stderr.write(`cc-langfuse: ${error instanceof Error ? error.message : String(error)}\n`);
});
