import { quoteForShell } from './terminal.js';

/** Package runners, recognized by the folder from which they run a package. They do not put it on the PATH. */
const RUNNERS = [
  [/[/\\]_npx[/\\]/, 'npx cc-langfuse'],
  [/[/\\]dlx[/\\]/, 'pnpm dlx cc-langfuse'],
  [/[/\\]dlx-[^/\\]*[/\\]/, 'yarn dlx cc-langfuse'],
  [/[/\\]bunx-[^/\\]*[/\\]/, 'bunx cc-langfuse'],
] as const;

/** Returns what to type in order to start this program again, for messages: what started it. */
export function ownCommand(program = process.argv[1] ?? ''): string {
  const runner = RUNNERS.find(([cache]) => cache.test(program));
  if (runner) return runner[1];
  // The installed copy is on no PATH. This always works, without a registry, and is the version that the hooks start.
  const isInstalled = /[/\\]cc-langfuse[/\\]current[/\\]cli\.cjs$/.test(program);
  const node = process.platform === 'win32' ? 'node ' : '';
  return isInstalled ? node + quoteForShell(program) : 'cc-langfuse';
}
