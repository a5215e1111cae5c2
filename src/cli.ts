#!/usr/bin/env node
const [command] = process.argv.slice(2);

async function main(): Promise<void> {
  if (command === 'hook') {
    // Before anything is loaded: where tracing is off the hook must cost nothing.
    if (process.env.TRACE_TO_LANGFUSE !== 'true') return;
    const { hook } = await import('./commands/hook.js');
    return hook(process.env);
  }
  process.stderr.write('usage: cc-langfuse hook   (Claude Code starts it; see the README)\n');
  process.exitCode = 2;
}

main().catch((error: unknown) => {
  process.stderr.write(`cc-langfuse: ${error instanceof Error ? error.message : String(error)}\n`);
  if (command !== 'hook') process.exitCode = 1;
});
