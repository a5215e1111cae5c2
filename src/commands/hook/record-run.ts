import { lstatSync } from 'node:fs';
import { BEGINNING, type Place } from '../../shared/place.js';
import { type Change, endOfSent, newSession, type Session } from '../../state/entry.js';
import { apply, type Fact } from '../../state/facts.js';
import { hasGone } from '../../state/lock.js';
import { hasEnded, isMutedNow, isSameRun, openRun, processesOf, type RunIdentity } from '../../state/runs.js';
import type { SessionState } from '../../state/store.js';
import { Places } from '../../transcript/file/place.js';
import { locateTranscript } from '../../transcript/sessions/related-sessions.js';
import type { HookPayload } from './payload.js';

/** What a payload says of a transcript. */
type Transcript = Pick<HookPayload, 'session_id' | 'transcript_path'>;

/** Sources of sessions that have nothing of earlier ones. */
const NEW_SESSION = ['startup', 'clear'];

/** Records that a run begins. `bytes` is the size of the transcript at that time, if it was measured before this process started. */
export async function recordStart(
  payload: HookPayload,
  run: RunIdentity,
  state: SessionState,
  bytes?: number,
): Promise<void> {
  const { session_id: sessionId, transcript_path: path, source = '' } = payload;
  const known = state.readSession(sessionId) ?? newSession(sessionId);
  const alive = listAlive(known, run);
  const open = openRun(known.runs);
  const isKnown = open !== undefined && isSameRun(open, run);
  const isOwn = isKnown && (open.process === run.process || processesOf(open).includes(run.process ?? ''));
  if (isOwn) {
    if (known.path !== path) await state.update(sessionId, { path });
    return;
  }
  // A compaction begins no process, so it tells nothing of what was written before it.
  if (!isKnown && source === 'compact') return;
  const isNew = NEW_SESSION.includes(source) && known.runs.length === 0 && known.seedLine === undefined;
  const after = isNew ? BEGINNING : placeOfStart(payload, bytes);
  await record({ kind: 'start', at: Date.now(), after, source, run, alive }, known, payload, state);
}

/** Records the end of a run; if none is given, of the open one. Returns whether no run is open then. */
export async function recordEnd(transcript: Transcript, state: SessionState, run?: RunIdentity): Promise<boolean> {
  const known = state.readSession(transcript.session_id);
  if (!known) return true;
  const isOpen = openRun(known.runs) !== undefined || known.claims.some((claim) => !hasEnded(claim));
  if (!isOpen) return true;
  const after = placeAt(transcript);
  const alive = run ? listAlive(known, run) : [];
  const { runs } = await record({ kind: 'end', at: Date.now(), after, run, alive }, known, transcript, state);
  return openRun(runs) === undefined;
}

/**
 * Records that tracing is off. What the transcript has when a run begins without tracing was written before that run; otherwise
 * only what is known to have been written while tracing was on.
 */
export async function recordOptOut(payload: HookPayload, state: SessionState, bytes?: number): Promise<void> {
  const { session_id: sessionId, source } = payload;
  const known = state.readSession(sessionId);
  if (!known || !openRun(known.runs)) return;
  const isStart = source !== undefined && source !== 'compact';
  const after = isStart ? placeOfStart(payload, bytes) : findTracedEnd(known, payload, state);
  await record({ kind: 'off', at: Date.now(), after }, known, payload, state);
}

/** Mutes a session from the beginning of a run. If nobody saw that, from the last turn that is known to be over. */
export async function recordMute(
  payload: HookPayload,
  { process }: RunIdentity,
  state: SessionState,
  bytes?: number,
): Promise<void> {
  const { session_id: sessionId, hook_event_name: event, source } = payload;
  const known = state.readSession(sessionId) ?? newSession(sessionId);
  const isStart = event === 'SessionStart' && source !== 'compact';
  // If this process has muted it before, and it is not muted now, the user has ended that.
  const isKnown = known.mutes.some((mute) => mute.process === process);
  if (isKnown && (isMutedNow(known.mutes) || !isStart)) return;
  const after = isStart ? placeOfStart(payload, bytes) : findTracedEnd(known, payload, state);
  await record({ kind: 'mute', at: Date.now(), after, process }, known, payload, state);
}

/** Returns what is known of the session then. */
async function record(fact: Fact, known: Session, transcript: Transcript, state: SessionState) {
  const { session_id: sessionId, transcript_path: path } = transcript;
  const open = openRun(known.runs);
  const after = apply(known, fact);
  const ended = open && after.runs.find(({ from, to }) => from.bytes === open.from.bytes && to !== undefined);
  const left = ended && describeLeft(ended, transcript, state);
  await state.update(sessionId, { path, facts: [fact], ...left }, ended?.destination);
  return after;
}

/**
 * Nobody looks at an ended run again. So if a part of it has not been read yet, the state says so until a hook has read it: the hook
 * that ends the run may be killed.
 */
function describeLeft(
  { destination, from, to = from }: Session['runs'][number],
  { session_id: sessionId, transcript_path: path }: Transcript,
  state: SessionState,
): Change | undefined {
  if (destination === undefined || to.bytes <= from.bytes) return undefined;
  const { pending, bytes = 0 } = state.read(sessionId, destination) ?? {};
  const size = lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (pending || size <= bytes) return undefined;
  const reason = 'its run ended before all of it had been sent';
  return { pending: { since: new Date().toISOString(), attempts: 0, reason } };
}

/** The other processes of Claude Code that are at work in the session. */
function listAlive({ runs, claims }: Session, { process: own }: RunIdentity): string[] {
  if (own === undefined) return [];
  const open = [...runs, ...claims].filter((run) => !hasEnded(run)).flatMap(processesOf);
  return [...new Set(open)].filter((process) => process !== own && !hasGone(process));
}

/** The end of the last turn that is known to be over: what follows may have been written under other settings. */
function findTracedEnd({ stops }: Session, transcript: Transcript, state: SessionState): Place {
  const sent = endOfSent(state.readProgress(transcript.session_id).values());
  return placeAt(transcript, Math.max(sent, stops.at(-1)?.bytes ?? 0));
}

/** Where a process begins. What was measured before, where no transcript is, says nothing of one in another folder. */
function placeOfStart({ session_id: sessionId, transcript_path: path }: Transcript, measured?: number): Place {
  const located = locateTranscript(path, sessionId);
  return new Places(located ?? path).at(located === path ? measured : undefined);
}

function placeAt({ session_id: sessionId, transcript_path: path }: Transcript, bytes?: number): Place {
  return new Places(locateTranscript(path, sessionId) ?? path).at(bytes);
}
