import { lstatSync } from 'node:fs';
import { type Entry, lastKnownLine } from '../../state/entry.js';
import { isSameRun, openRun, type RunIdentity } from '../../state/runs.js';
import type { SessionState } from '../../state/store.js';
import { withReader } from '../../transcript/file/lines.js';
import type { HookPayload } from './payload.js';

/** Sources of sessions that had no run before. */
const NEW_SESSION = ['startup', 'clear', 'fork'];

/**
 * Records that a run begins. SessionStart comes before its prompts: the lines that exist by then belong to earlier runs. A worker
 * is told how many bytes of them there were.
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
  const fromLine = before + 1;
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
  const known = state.read(sessionId);
  const open = known && openRun(known.runs);
  if (open && (!identity || isSameRun(open, identity)))
    await state.update(sessionId, { runs: closed(known, countKnownLines(path, known)) });
}

/**
 * Records that tracing is off: what follows belongs to no run. At SessionStart that is what follows the lines that exist; later it is
 * what follows the turns that were looked at while it was on.
 */
export async function recordOptOut(payload: HookPayload, state: SessionState, bytes?: number): Promise<void> {
  const { session_id: sessionId, transcript_path: path, hook_event_name: event } = payload;
  const known = state.read(sessionId);
  if (!known || !openRun(known.runs)) return;
  const line = event === 'SessionStart' ? countKnownLines(path, known, bytes) : lastKnownLine(known);
  await state.update(sessionId, { runs: closed(known, line) });
}

/** Returns the open run with its end. */
function closed(known: Entry | undefined, toLine: number) {
  const open = known && openRun(known.runs);
  return open ? [{ ...open, toLine: Math.max(toLine, open.fromLine - 1) }] : [];
}

/** Counts the lines of a transcript, or of its first bytes, from the last turn that was exported. */
function countKnownLines(path: string, known: Entry | undefined, bytes = Number.POSITIVE_INFINITY): number {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) return 0;
  const { turnLine: line = 1, offset = 0 } = known ?? {};
  return withReader(path, (reader) => {
    const start = offset > 0 && offset <= bytes ? reader.moveTo({ line, offset }) : undefined;
    let count = (start?.line ?? 1) - 1;
    for (const { number, end } of reader.lines()) {
      if (end > bytes) break;
      count = number;
    }
    return count;
  });
}
