#!/usr/bin/env node
import { handOver, isWaitedFor } from './hand-over.js';
import { isRecord, parseJson } from './json.js';
import { noticeFor } from './notice.js';
import { readStdin } from './stdin.js';

const [command] = process.argv.slice(2);
const STDIN_WAIT_MS = 5_000;
/** Nobody waits for a worker, so it may take its time; but it ends. */
const WORKER_MS = 50_000;
const WORKER_ENDS_MS = 58_000;

async function main(): Promise<void> {
  const { env, argv } = process;
  // Whoever reads the output may have gone, or seen enough.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {});
  switch (command) {
    case 'hook': {
      // Before anything else: where tracing is off the hook must cost nothing.
      if (env.TRACE_TO_LANGFUSE !== 'true') return;
      if (isWaitedFor(env)) {
        const payload = await readStdin(Date.now() + STDIN_WAIT_MS);
        tell(noticeFor(env, sessionOf(payload)));
        return handOver(argv[1] ?? '', payload);
      }
      const { hook } = await import('./commands/hook.js');
      await hook(env);
      // A connection that nobody answers on would keep the process.
      return process.exit();
    }
    case 'worker': {
      // Not with exit, which waits for what asks for a server's address.
      setTimeout(() => process.kill(process.pid, 'SIGKILL'), WORKER_ENDS_MS).unref();
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
    case '--help':
    case 'help':
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

  hook        what Claude Code starts: exports the session that it names on stdin
  backfill    exports sessions that are on disk
  sessions    lists them, and how much of each is in Langfuse

cc-langfuse <command> --help tells more.
`;

/** A command that a person runs: what cannot be done is told in one line. */
async function byHand(run: (args: readonly string[], env: NodeJS.ProcessEnv) => Promise<number>): Promise<void> {
  try {
    process.exitCode = await run(process.argv.slice(3), process.env);
  } catch (error) {
    const isUsage = error instanceof Error && error.name === 'UsageError';
    process.stderr.write(`cc-langfuse: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = isUsage ? 2 : 1;
  }
}

/** The one thing that a hook ever prints: Claude Code shows it to the user. */
function tell(systemMessage: string | undefined): void {
  if (systemMessage !== undefined) process.stdout.write(`${JSON.stringify({ systemMessage })}\n`);
}

function sessionOf(payload: string): string {
  const input = parseJson(payload);
  return isRecord(input) && typeof input.session_id === 'string' ? input.session_id : '';
}

main().catch((error: unknown) => {
  process.stderr.write(`cc-langfuse: ${error instanceof Error ? error.message : String(error)}\n`);
});
