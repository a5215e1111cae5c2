import { lstatSync } from 'node:fs';
import type { Caller } from '../../observations/model.js';
import { includesCaller, withCaller } from '../../state/callers.js';
import type { Entry } from '../../state/entry.js';
import type { StateStore } from '../../state/store.js';
import { countLines } from '../../transcript/file/lines.js';
import type { HookPayload } from './payload.js';

/** Makes a session known to the state, and records what started the run that begins. */
export async function recordSessionStart(
  payload: HookPayload,
  state: StateStore,
  run: Pick<Entry, 'destination' | 'given'>,
  caller: Caller,
): Promise<void> {
  const { session_id: sessionId, transcript_path: path } = payload;
  const known = state.read(sessionId);
  const before = known?.callers ?? [];
  const hasNewCaller = !includesCaller(before.slice(-1), caller);
  const isKnown = known && !known.ended && !known.backfilled && known.path === path;
  if (isKnown && known.destination === run.destination && !hasNewCaller) return;
  // SessionStart comes before the prompts of its run: the lines that exist by then belong to earlier runs.
  const callers = hasNewCaller ? { callers: withCaller(before, caller, countEarlierLines(payload) + 1) } : {};
  await state.update(sessionId, { ...run, path, ended: false, backfilled: undefined, ...callers });
}

/** Sources of sessions that had no run before. */
const NEW_SESSION = ['startup', 'clear', 'fork'];

function countEarlierLines({ source = '', transcript_path: path }: HookPayload): number {
  const isResumed = !NEW_SESSION.includes(source) && lstatSync(path, { throwIfNoEntry: false })?.isFile();
  return isResumed ? countLines(path) : 0;
}
