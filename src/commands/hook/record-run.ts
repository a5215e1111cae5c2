import { lstatSync } from 'node:fs';
import { type Entry, lastKnownLine } from '../../state/entry.js';
import { isSameRun, openRun, type RunIdentity } from '../../state/runs.js';
import type { SessionState } from '../../state/store.js';
import { countLines } from '../../transcript/file/lines.js';
import type { HookPayload } from './payload.js';

/** Sources of sessions that had no run before. */
const NEW_SESSION = ['startup', 'clear', 'fork'];

/** Records that a run begins. SessionStart comes before its prompts: the lines that exist by then belong to earlier runs. */
export async function recordStart(payload: HookPayload, identity: RunIdentity, state: SessionState): Promise<void> {
  const { session_id: sessionId, transcript_path: path, source = '' } = payload;
  const known = state.read(sessionId);
  const open = known && openRun(known.runs);
  if (open && isSameRun(open, identity)) return known.path === path ? undefined : state.update(sessionId, { path });
  const isNew = NEW_SESSION.includes(source) && !known?.runs.length;
  const fromLine = isNew ? 1 : countKnownLines(path, known) + 1;
  await state.update(sessionId, { path, runs: [...closed(known, fromLine - 1), { ...identity, fromLine }] });
}

/**
 * Records that the run has ended: what is added to its transcript before another run begins was written with tracing off. Without
 * an identity, whichever run goes on has ended.
 */
export async function recordEnd(
  { sessionId, path }: { readonly sessionId: string; readonly path: string },
  state: SessionState,
  identity?: RunIdentity,
): Promise<void> {
  const last = state.read(sessionId);
  const open = last && openRun(last.runs);
  const known = open?.destination === undefined ? last : state.read(sessionId, open.destination);
  if (!known || !open || (identity && !isSameRun(open, identity))) return;
  const toLine = countKnownLines(path, known);
  await state.update(sessionId, { runs: closed(known, toLine), ...unfinished(path, known, toLine) }, open.destination);
}

/** An ended run is not looked at again. So if the hook is killed before it has sent the rest, the state must say that there is one. */
function unfinished(path: string, { pending, bytes = 0 }: Entry, closedLine: number): Partial<Entry> {
  const size = lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= bytes || pending) return {};
  return {
    pending: { since: new Date().toISOString(), attempts: 0, reason: 'its last run has not ended yet', closedLine },
  };
}

/**
 * Records that tracing is off: what follows belongs to no run. At SessionStart that is what follows the lines that exist; later it is
 * what follows the turns that were looked at while it was on.
 */
export async function recordOptOut(payload: HookPayload, state: SessionState): Promise<void> {
  const { session_id: sessionId, transcript_path: path, hook_event_name: event } = payload;
  const known = state.read(sessionId);
  if (!known || !openRun(known.runs)) return;
  const line = event === 'SessionStart' ? countKnownLines(path, known) : lastKnownLine(known);
  await state.update(sessionId, { runs: closed(known, line) });
}

/** Returns the open run with its end. */
function closed(known: Entry | undefined, toLine: number) {
  const open = known && openRun(known.runs);
  return open ? [{ ...open, toLine: Math.max(toLine, open.fromLine - 1) }] : [];
}

/** Counts the lines of a transcript, from the last turn that was exported. */
function countKnownLines(path: string, known: Entry | undefined): number {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) return 0;
  const { turnLine, offset } = known ?? {};
  return countLines(path, turnLine && offset ? { line: turnLine, offset } : undefined);
}
