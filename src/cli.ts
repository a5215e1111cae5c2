#!/usr/bin/env node
// Nothing is loaded here but what every command needs: where tracing is off, or someone waits, each module would be felt.
import { version } from './version.js';

const [command] = process.argv.slice(2);
/** Nobody waits for a worker, so it may take its time; but it ends. */
const WORKER_MS = 50_000;
const WORKER_ENDS_MS = 58_000;

async function main(): Promise<void> {
  const { env, argv } = process;
  switch (command) {
    case 'hook': {
      // Before anything else: where tracing is off the hook must cost nothing.
      if (env.TRACE_TO_LANGFUSE !== 'true') return;
      keepCompiled(env);
      if (isWaitedFor(env)) {
        const { handOverHook } = await import('./commands/hand-over.js');
        return handOverHook(argv[1] ?? '', env);
      }
      const { hook } = await import('./commands/hook.js');
      await hook(env);
      // A connection that nobody answers on would keep the process.
      return process.exit();
    }
    case 'worker': {
      // Not with exit, which waits for what asks for a server's address.
      setTimeout(() => process.kill(process.pid, 'SIGKILL'), WORKER_ENDS_MS).unref();
      keepCompiled(env);
      const { hook } = await import('./commands/hook.js');
      await hook(env, WORKER_MS);
      return process.exit();
    }
    case 'backfill': {
      const { run } = await import('./commands/backfill.js');
      return byHand(run);
    }
    case 'sessions': {
      const { run } = await import('./commands/sessions.js');
      return byHand(run);
    }
    case 'doctor': {
      const { run } = await import('./commands/doctor.js');
      return byHand(run);
    }
    case 'install': {
      const { run } = await import('./commands/install.js');
      return byHand(run);
    }
    case 'uninstall': {
      const { run } = await import('./commands/uninstall.js');
      return byHand(run);
    }
    case '--version':
      process.stdout.write(`${version}\n`);
      return;
    case '--help':
    case '-h':
      process.stdout.write(HELP);
      return;
    default:
      process.stderr.write(
        command === undefined ? HELP : `cc-langfuse: there is no command ${command}; see cc-langfuse --help\n`,
      );
      process.exitCode = 2;
  }
}

const HELP = `usage: cc-langfuse <command>

  install     registers the hooks with Claude Code, and the keys they need
  uninstall   takes them out again
  hook        what Claude Code starts: exports the session that it names on stdin
  backfill    exports sessions that are on disk
  sessions    lists them, and how much of each is in Langfuse
  doctor      looks at the whole way to Langfuse, and says what mends it

cc-langfuse <command> --help tells more.
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

/** A command that a person runs: what cannot be done is told in one line. */
async function byHand(run: (args: readonly string[], env: NodeJS.ProcessEnv) => Promise<number>): Promise<void> {
  // Whoever reads the output may have seen enough.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => process.exit());
  try {
    process.exitCode = await run(process.argv.slice(3), process.env);
  } catch (error) {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    process.stderr.write(`cc-langfuse: ${message}\n`);
    process.exitCode = EXIT_CODES[name] ?? 1;
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
