import { turnUrl } from '../../langfuse/project-page.js';
import { deriveTurnTrace } from '../../observations/build/ids.js';
import { attempt } from '../../shared/attempt.js';
import type { Entry } from '../../state/entry.js';
import { findRun } from '../../state/runs.js';
import type { StateStore } from '../../state/store.js';
import { readTimeFrom, type SessionOverview } from '../../transcript/sessions/overview.js';

/** The last turn of a session that the server has acknowledged whole. */
export interface SentTurn {
  readonly sessionId: string;
  readonly title: string | undefined;
  readonly number: number;
  /** When it began, in ms since 1970, as Langfuse shows it. */
  readonly at: number | undefined;
  readonly traceId: string | undefined;
  /** Its page; undefined if no command has asked the server yet which project the keys belong to. */
  readonly url: string | undefined;
}

/** Where turns are sent, and what is known of it. */
export interface Goal {
  /** Its id. */
  readonly destination: string | undefined;
  /** The page of the project that the keys belong to, if it is known. */
  readonly projectPage: string | undefined;
}

/** Without a destination, what was sent to the last one is what is known. */
export function findSentTurn(session: SessionOverview, state: StateStore, goal: Goal): SentTurn | undefined {
  const { destination, projectPage } = goal;
  const { sessionId } = session;
  const entry = attempt(() => (destination ? state.read(sessionId, destination) : state.readNewest(sessionId)));
  if (!entry || entry.turnCount === 0) return undefined;
  const traceId = findTraceId(entry);
  return {
    sessionId: session.sessionId,
    title: session.title,
    number: entry.turnCount,
    at: attempt(() => (entry.offset === undefined ? undefined : readTimeFrom(session.path, entry.offset))),
    traceId,
    url: projectPage && traceId && turnUrl(projectPage, traceId, undefined),
  };
}

/** The first cc-langfuse did not record which turn it was. */
function findTraceId(entry: Entry): string | undefined {
  const { prompt: key, turnCount: number, prompts = {}, offset = 0 } = entry;
  const run = findRun(entry, Object.values(prompts).at(-1) ?? offset);
  return key === undefined ? undefined : deriveTurnTrace({ key, number }, run ?? {}).id;
}

/** Finds the newest turn that was sent of any of the sessions, which are given by their last activity, the newest first. */
export function findNewestTurn(
  sessions: readonly SessionOverview[],
  state: StateStore,
  goal: Goal,
): SentTurn | undefined {
  let newest: SentTurn | undefined;
  for (const session of sessions) {
    // No turn begins after its session's last activity.
    if (newest?.at !== undefined && session.lastActivityAt <= newest.at) break;
    const turn = findSentTurn(session, state, goal);
    if (turn && (newest?.at ?? 0) <= (turn.at ?? 0)) newest = turn;
  }
  return newest;
}
