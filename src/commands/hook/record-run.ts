import { lstatSync } from 'node:fs';
import { type Entry, lastEndedLine, newSession, type Progress, type Session } from '../../state/entry.js';
import { hasGone } from '../../state/lock.js';
import { type Claim, isMutedNow, isSameRun, openRun, type Run, type RunIdentity } from '../../state/runs.js';
import type { SessionState } from '../../state/store.js';
import { countLines } from '../../transcript/file/lines.js';
import type { HookPayload } from './payload.js';

/** What a payload says of a transcript. */
export type Transcript = Pick<HookPayload, 'session_id' | 'transcript_path'>;

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
  const known = state.readSession(sessionId);
  const open = known && openRun(known.runs);
  if (open && isSameRun(open, identity)) {
    const { process = open.process } = isAnotherAlive(open, identity) ? open : identity;
    if (known.path === path && process === open.process) return;
    return state.update(sessionId, { path, runs: [{ ...open, process }] });
  }
  // A compaction begins no process, so it tells nothing of the lines before it.
  if (source === 'compact') return;
  const isNew = NEW_SESSION.includes(source) && !known?.runs.length;
  const before = isNew ? 0 : countKnownLines(payload, state, bytes);
  const end = open ? endAt(before, open, payload, state) : { runs: [] };
  // With another process at work in the session, a turn belongs to the one whose Stop names it.
  const toLine = open && isAnotherAlive(open, identity) ? before : findEarlyEnd(known, before, identity);
  const mayCopy = (before === 0 && MAY_COPY.includes(source)) || undefined;
  const run = { ...identity, fromLine: before + 1, toLine, startedAt: Date.now(), mayCopy };
  await state.update(sessionId, { ...end, path, runs: [...end.runs, run] }, open?.destination);
}

/** Sources of sessions that have nothing of earlier ones. */
const NEW_SESSION = ['startup', 'clear'];
/** Sources of sessions that may begin with a copy of another one. */
const MAY_COPY = ['resume', 'fork'];

/** The last prompt of a run whose later events, its end among them, were faster than its start; undefined if it goes on. */
function findEarlyEnd(known: Session | undefined, before: number, identity: RunIdentity): number | undefined {
  const own = (known?.claims ?? []).filter((claim) => claim.fromLine > before && isSameRun(claim, identity));
  const isOver = own.length > 0 && own.every(({ endedAt }) => endedAt !== undefined);
  return isOver ? Math.max(...own.flatMap(({ lines }) => lines)) : undefined;
}

/** Whether a run goes on in another process of Claude Code than the one that an event came from. */
function isAnotherAlive({ process }: RunIdentity, own: RunIdentity): boolean {
  return process !== undefined && own.process !== undefined && process !== own.process && !hasGone(process);
}

/**
 * Records that the run has ended: what is added to its transcript before another run begins was written with tracing off. Without
 * an identity, whichever run goes on has ended. Returns whether none goes on.
 */
export async function recordEnd(transcript: Transcript, state: SessionState, identity?: RunIdentity): Promise<boolean> {
  const { session_id: sessionId } = transcript;
  const known = state.readSession(sessionId);
  if (!known) return true;
  const isOwn = (run: Run | Claim) => !identity || (isSameRun(run, identity) && !isAnotherAlive(run, identity));
  const ended = (known.claims ?? []).filter((claim) => claim.endedAt === undefined && isOwn(claim));
  const claims = ended.length > 0 && { claims: ended.map((claim) => ({ ...claim, endedAt: Date.now() })) };
  if (claims) await state.update(sessionId, claims);
  const open = openRun(known.runs);
  if (!open) return true;
  if (!isOwn(open)) return false;
  await state.update(sessionId, endAt(countKnownLines(transcript, state), open, transcript, state), open.destination);
  return true;
}

/**
 * Records that tracing is off: what follows the lines that were looked at while it was on belongs to no run. Lines that exist when
 * a run begins without tracing were written before it.
 */
export async function recordOptOut(payload: HookPayload, state: SessionState, bytes?: number): Promise<void> {
  const { session_id: sessionId, source } = payload;
  const known = state.readSession(sessionId);
  const open = known && openRun(known.runs);
  if (!open) return;
  const isStart = source !== undefined && source !== 'compact';
  const lastLine = isStart
    ? countKnownLines(payload, state, bytes)
    : lastEndedLine(known, state.readProgress(sessionId).values());
  await state.update(sessionId, endAt(lastLine, open, payload, state), open.destination);
}

/**
 * Returns how a session's entry changes if its open run ends at a line. An ended run is not looked at again, so if some of it has
 * not been read, the state says so until a hook has: the one that ends it may be killed.
 */
function endAt(
  lastLine: number,
  open: Run,
  { session_id: sessionId, transcript_path: path }: Transcript,
  state: SessionState,
): Pick<Entry, 'runs' | 'pending'> {
  const { destination, fromLine } = open;
  const toLine = Math.max(lastLine, fromLine - 1);
  const runs = [{ ...open, toLine, endedAt: Date.now() }];
  const { pending, bytes = 0 } = state.read(sessionId, destination ?? '') ?? {};
  const size = lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (pending || destination === undefined || toLine < fromLine || size <= bytes) return { runs, pending };
  const reason = 'its run ended before all of it had been sent';
  return { runs, pending: { since: new Date().toISOString(), attempts: 0, reason, closedLine: toLine } };
}

/** Counts the lines of a transcript, or of its first bytes, from the last turn that was exported. */
function countKnownLines(
  { session_id: sessionId, transcript_path: path }: Transcript,
  state: SessionState,
  bytes?: number,
): number {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) return 0;
  const all: Partial<Progress>[] = [...state.readProgress(sessionId).values()];
  const { turnLine: line = 1, offset = 0 } = all.toSorted((a, b) => (b.offset ?? 0) - (a.offset ?? 0))[0] ?? {};
  return countLines(path, { from: offset > 0 ? { line, offset } : undefined, bytes });
}

/** Mutes a session from the beginning of a run, or from what is known of it on if nobody saw that, unless it is muted already. */
export async function recordMute(
  payload: HookPayload,
  { process }: RunIdentity,
  state: SessionState,
  bytes?: number,
): Promise<void> {
  const { session_id: sessionId, transcript_path: path, hook_event_name: event, source } = payload;
  const known = state.readSession(sessionId) ?? newSession(sessionId);
  const { mutes = [] } = known;
  const isStart = event === 'SessionStart' && source !== 'compact';
  const open = isMutedNow(mutes) ? mutes.at(-1) : undefined;
  // If it is not muted although this process has muted it, the user has ended that.
  const isKnown = mutes.some((mute) => mute.process === process);
  if (open ? isKnown : isKnown && !isStart) return;
  if (open) return state.update(sessionId, { mutes: [{ ...open, process }] });
  const before = isStart
    ? countKnownLines(payload, state, bytes)
    : lastEndedLine(known, state.readProgress(sessionId).values());
  await state.update(sessionId, { path, mutes: [{ fromLine: before + 1, since: Date.now(), process }] });
}
