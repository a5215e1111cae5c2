import { lstatSync } from 'node:fs';
import type { Caller } from '../../observations/model.js';
import { includesCaller, withCaller } from '../../state/callers.js';
import type { StateStore } from '../../state/store.js';
import { countLines } from '../../transcript/file/lines.js';
import type { HookPayload } from './payload.js';

interface StartedRun {
  readonly destinationId: string;
  readonly given: { readonly [variable: string]: string };
  readonly caller: Caller;
}

/** Makes a session known to the state, and records what started the run that begins. */
export async function recordSessionStart(payload: HookPayload, state: StateStore, run: StartedRun): Promise<void> {
  const { session_id: sessionId, transcript_path: path } = payload;
  const { destinationId: destination, given, caller } = run;
  const known = state.read(sessionId);
  const before = known?.callers ?? [];
  const hasNewCaller = !includesCaller(before.slice(-1), caller);
  const isNews = !known || known.ended || known.backfilled || known.destination !== destination || known.path !== path;
  if (!isNews && !hasNewCaller) return;
  // SessionStart comes before the prompts of its run: the lines that exist by then belong to earlier runs.
  const callers = hasNewCaller ? { callers: withCaller(before, caller, countEarlierLines(payload) + 1) } : {};
  await state.update(sessionId, { path, destination, given, ended: false, backfilled: undefined, ...callers });
}

/** Sources of sessions that had no run before. */
const NEW_SESSION = ['startup', 'clear', 'fork'];

/** Counts the lines that earlier runs have written. */
function countEarlierLines({ source = '', transcript_path: path }: HookPayload): number {
  const isResumed = !NEW_SESSION.includes(source) && lstatSync(path, { throwIfNoEntry: false })?.isFile();
  return isResumed ? countLines(path) : 0;
}
