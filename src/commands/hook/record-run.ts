import { lstatSync } from 'node:fs';
import { type Entry, lastEndedLine, withProgressAt } from '../../state/entry.js';
import { isSameRun, openRun, type Run, type RunIdentity } from '../../state/runs.js';
import type { SessionState } from '../../state/store.js';
import { countLines } from '../../transcript/file/lines.js';
import type { HookPayload } from './payload.js';

/** Sources of sessions that had no run before. */
const NEW_SESSION = ['startup', 'clear', 'fork'];

/**
 * Records that a run begins. SessionStart comes before its prompts: the lines that exist by then belong to earlier runs. `bytes` is
 * the size of the transcript at that time, if it was measured before this process started.
 */
export async function recordStart(
  payload: HookPayload,
  identity: RunIdentity,
  state: SessionState,
  bytes?: number,
): Promise<void> {
  const { session_id: sessionId, transcript_path: path, source = '' } = payload;
  const known = state.read(sessionId);
  const open = known && openRun(known.runs);
  if (open && isSameRun(open, identity)) return known.path === path ? undefined : state.update(sessionId, { path });
  const isNew = NEW_SESSION.includes(source) && !known?.runs.length;
  const before = isNew ? 0 : countKnownLines(path, known, bytes);
  // A later event of the same run was faster, perhaps even its end.
  if (known?.runs.some((run) => isSameRun(run, identity) && run.fromLine > before && (run.toLine ?? 0) > before))
    return;
  const end = open ? endAt(before, open, known, path) : { runs: [] };
  await state.update(
    sessionId,
    { ...end, path, runs: [...end.runs, { ...identity, fromLine: before + 1 }] },
    open?.destination,
  );
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
  const known = state.read(sessionId);
  const open = known && openRun(known.runs);
  if (!open || (identity && !isSameRun(open, identity))) return;
  await state.update(sessionId, endAt(countKnownLines(path, known), open, known, path), open.destination);
}

/**
 * Records that tracing is off: what follows the lines that were looked at while it was on belongs to no run. Lines that exist when
 * a run begins without tracing were written before it.
 */
export async function recordOptOut(payload: HookPayload, state: SessionState, bytes?: number): Promise<void> {
  const { session_id: sessionId, transcript_path: path, source } = payload;
  const known = state.read(sessionId);
  const open = known && openRun(known.runs);
  if (!open) return;
  const isStart = source !== undefined && source !== 'compact';
  const lastLine = isStart ? countKnownLines(path, known, bytes) : lastEndedLine(known);
  await state.update(sessionId, endAt(lastLine, open, known, path), open.destination);
}

/**
 * Returns how a session's entry changes if its open run ends at a line. An ended run is not looked at again, so if some of it has
 * not been read, the state says so until a hook has: the one that ends it may be killed.
 */
function endAt(lastLine: number, open: Run, known: Entry, path: string): Pick<Entry, 'runs' | 'pending'> {
  const { destination, fromLine } = open;
  const toLine = Math.max(lastLine, fromLine - 1);
  const runs = [{ ...open, toLine }];
  const { pending, bytes = 0 } = destination === undefined ? known : withProgressAt(known, destination);
  const size = lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (pending || destination === undefined || toLine < fromLine || size <= bytes) return { runs, pending };
  const reason = 'its run ended before all of it had been sent';
  return { runs, pending: { since: new Date().toISOString(), attempts: 0, reason, closedLine: toLine } };
}

/** Counts the lines of a transcript, or of its first bytes, from the last turn that was exported. */
function countKnownLines(path: string, known: Entry | undefined, bytes?: number): number {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) return 0;
  const { turnLine: line = 1, offset = 0 } = known ?? {};
  return countLines(path, { from: offset > 0 ? { line, offset } : undefined, bytes });
}
