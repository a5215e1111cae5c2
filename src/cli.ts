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
      return hook(env);
    }
    case 'worker': {
      setTimeout(() => process.exit(), WORKER_ENDS_MS).unref();
      const { hook } = await import('./commands/hook.js');
      return hook(env, WORKER_MS);
    }
    default:
      process.stderr.write('usage: cc-langfuse hook   (Claude Code starts it; see the README)\n');
      process.exitCode = 2;
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
