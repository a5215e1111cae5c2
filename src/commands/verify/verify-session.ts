import { setTimeout as sleep } from 'node:timers/promises';
import { readSessionCost } from '../../costs/session-cost.js';
import type { ObservationReader, WantedSession } from '../../langfuse/observation-reader.js';
import { attempt } from '../../shared/attempt.js';
import { listRuns } from '../../state/runs.js';
import type { StateStore } from '../../state/store.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { type Comparison, compare, countTokens } from './compare.js';
import type { Destination } from './destinations.js';
import {
  type Expected,
  findContent,
  findUnsent,
  type KeptBack,
  type Sending,
  type SessionContent,
} from './expected.js';

/** What was found out about a session. */
export interface Verified {
  readonly session: SessionOverview;
  readonly expected: readonly Expected[];
  readonly keptBack: readonly KeptBack[];
  readonly comparison: Comparison;
  /** The ids of missing observations that were never acknowledged. */
  readonly unsent: ReadonlySet<string>;
  /** Why the last try to send them failed. */
  readonly pending: string | undefined;
  /** Whether a backfill needs --include-open to send the last turn. */
  readonly needsOpen: boolean;
  /** What Claude Code says it cost, if that is the cost of exactly what is expected. */
  readonly claudeCost: number | undefined;
  /** Why the folder is excluded. */
  readonly exclusion: string | undefined;
  /** Why not everything could be compared. */
  readonly problem: string | undefined;
}

const DAY_MS = 86_400_000;

/** Langfuse answers before it has written what it acknowledges: measured were 87 to 476 ms. */
const WRITING_MS = 2_000;

/** Compares a session with what Langfuse has of it. Throws if that cannot be read. */
export async function verifySession(
  session: SessionOverview,
  { reader, id, env, exclusion }: Destination,
  state: StateStore,
  shell: NodeJS.ProcessEnv,
): Promise<Verified> {
  const { sessionId } = session;
  const destinationId = findDestination(sessionId, id, state);
  const sending: Sending = { state, destinationId, env, restrictions: [shell] };
  const content = await findContent(session, sending);
  const { expected, keptBack, isLastSent, problem } = content;
  const { updated = '', pending } = state.read(sessionId, destinationId) ?? {};
  const comparison = await readAndCompare(sessionId, content, reader, Date.parse(updated) + WRITING_MS);
  const about = { session, comparison, problem, exclusion, needsOpen: isLastSent };
  if (destinationId !== id && expected.length > 0 && comparison.found.length === 0) {
    const elsewhere: KeptBack = { why: 'another project', ...countTurns(expected) };
    const nothing = { ...about, expected: [], comparison: compare([], []), unsent: new Set<string>() };
    return { ...nothing, keptBack: [...keptBack, elsewhere], pending: undefined, claudeCost: undefined };
  }
  const isMissing = comparison.missing.length > 0;
  return {
    ...about,
    expected,
    keptBack,
    unsent: isMissing ? await findUnsent(session, sending, content) : new Set(),
    pending: isMissing && pending && pending.attempts > 0 ? pending.reason : undefined,
    claudeCost: keptBack.length === 0 ? readAccount(session) : undefined,
  };
}

/** What is missing before `writtenAt` (in ms since 1970) is looked for again then. */
async function readAndCompare(
  sessionId: string,
  { expected, openSince }: SessionContent,
  reader: ObservationReader,
  writtenAt: number,
): Promise<Comparison> {
  if (expected.length === 0) return compare([], []);
  const wanted = describeWanted(sessionId, expected);
  const comparison = compare(expected, await reader.read(wanted), openSince);
  const leftMs = writtenAt - Date.now();
  if (comparison.missing.length === 0 || !(leftMs > 0)) return comparison;
  await sleep(leftMs);
  return compare(expected, await reader.read(wanted), openSince);
}

/** With keys that are only for reading, the session was sent with others. */
function findDestination(sessionId: string, own: string, state: StateStore): string {
  const known = state.readSession(sessionId);
  if (!known || listRuns(known).some(({ destination }) => destination === own)) return own;
  const sentTo = [...state.readProgress(sessionId)].flatMap(([id, { acknowledged }]) => (acknowledged ? [id] : []));
  const [only = own] = sentTo;
  return sentTo.length === 1 ? only : own;
}

function describeWanted(sessionId: string, expected: readonly Expected[]): WantedSession {
  const times = expected.map(({ startTime }) => startTime);
  const [first, last] = times.reduce(
    ([least, most], time) => [Math.min(least, time), Math.max(most, time)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
  const traceIds = new Set(expected.map(({ traceId }) => traceId));
  // The same observation may be there with another time.
  return { sessionId, traceIds, from: first - DAY_MS, until: last + DAY_MS };
}

function countTurns(expected: readonly Expected[]): Pick<KeptBack, 'turns' | 'tokens'> {
  return {
    turns: expected.filter(({ kind }) => kind === 'turn').length,
    tokens: expected.reduce((sum, { usage }) => sum + countTokens(usage), 0),
  };
}

/** Undefined if the account leaves out a part of the session. */
function readAccount({ path }: SessionOverview): number | undefined {
  const cost = attempt(() => readSessionCost(path));
  return cost && !cost.hasMore ? cost.dollars : undefined;
}
