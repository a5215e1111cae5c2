import type { Observation, Trace } from '../../observations/model.js';
import { groupBy } from './grouped.js';

/** What of an observation is shown. */
export type ShownObservation = Omit<Observation, 'trace' | 'line' | 'media' | 'requestRef'>;

/** An observation with what it says of its trace. */
export type TracedObservation = ShownObservation & {
  readonly trace: Pick<Trace, 'id' | 'name' | 'sessionId' | 'metadata'>;
};

/** A trace: a turn, or a subagent that no turn started. */
export interface ShownTurn {
  readonly traceId: string;
  readonly name: string;
  readonly metadata: Trace['metadata'];
  /** From the first moment of its observations to the last: what runs in the background ends after its turn. */
  readonly startTime: number;
  readonly endTime: number;
  readonly observations: readonly ShownObservation[];
}

export interface ShownSession {
  readonly sessionId: string;
  readonly title: string | undefined;
  readonly folder: string | undefined;
  readonly turns: readonly ShownTurn[];
}

/** The sessions that observations tell of, in the order in which they come; turns and observations by time. */
export function groupSessions(observations: Iterable<TracedObservation>): ShownSession[] {
  const sessions = groupBy(observations, ({ trace }) => trace.sessionId);
  return [...sessions].map(([sessionId, ofSession]) => {
    const turns = [...groupBy(ofSession, ({ trace }) => trace.id).values()].map(turnOf).toSorted(byTime);
    return { sessionId, title: titleOf(turns), folder: textOrNone(turns[0]?.metadata.cwd), turns };
  });
}

function turnOf(observations: readonly [TracedObservation, ...TracedObservation[]]): ShownTurn {
  const { trace } = observations[0];
  return {
    traceId: trace.id,
    name: trace.name,
    metadata: trace.metadata,
    startTime: observations.reduce((first, { startTime }) => Math.min(first, startTime), Number.POSITIVE_INFINITY),
    endTime: observations.reduce((last, { endTime }) => Math.max(last, endTime), 0),
    observations: observations.toSorted(byTime).map(shown),
  };
}

/** Without its trace, which the turn has, and whatever else it may hold. */
function shown(
  observation: TracedObservation & Partial<Pick<Observation, 'line' | 'media' | 'requestRef'>>,
): ShownObservation {
  const { trace: _, line: __, media: ___, requestRef: ____, ...rest } = observation;
  return rest;
}

/** The last one counts: titles change as a session goes on. */
function titleOf(turns: readonly ShownTurn[]): string | undefined {
  return textOrNone(
    turns.map((turn) => findRoot(turn)?.metadata.session_title).findLast((title) => title !== undefined),
  );
}

export function findRoot({ observations }: ShownTurn): ShownObservation | undefined {
  return observations.find(({ parentId }) => parentId === undefined);
}

function textOrNone(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** What holds others begins with the first of them, and ends after it. */
function byTime(a: Pick<ShownTurn, 'startTime' | 'endTime'>, b: Pick<ShownTurn, 'startTime' | 'endTime'>): number {
  return a.startTime - b.startTime || b.endTime - a.endTime;
}
