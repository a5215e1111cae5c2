import type { StoredObservation } from '../support/langfuse-server.js';

// What may become of each turn, told from the events alone. This knows nothing of how the program keeps its state.

export type Place = 'A' | 'B';
export type Capture = 'full' | 'no_tool_io' | 'metadata';

/** How a process of Claude Code was started. */
export interface Config {
  /** `excluded` means that its hooks run, and find that its folder is excluded. */
  readonly tracing: 'on' | 'off' | 'excluded';
  /** With a typo in the key, nothing ever arrives. */
  readonly goal: Place | 'typo';
  readonly capture: Capture;
  readonly tag: 'x' | 'y';
}

export interface ToldTurn {
  readonly session: string;
  readonly startTime: number;
  /** For each place where it may arrive, how: with which content, and which tag. */
  readonly allowed: Map<Place, Set<string>>;
  /** How often its root may arrive at a place. */
  readonly limit: Map<Place, number>;
  /** Whether it must be somewhere in the end. */
  readonly isDue: boolean;
  /** Whether a backfill may send it as its own: it ran without tracing. */
  readonly isUntraced: boolean;
}

const STRICTEST_FIRST: readonly Capture[] = ['metadata', 'no_tool_io', 'full'];
const ANY_STYLE = 'any';
const PLACES: readonly Place[] = ['A', 'B'];

export class TurnOracle {
  readonly turns: ToldTurn[] = [];
  /** Whether both places have acknowledged something. One that never has is taken for misspelled once sending to it fails. */
  readonly #areProven: boolean;

  constructor(areProven: boolean) {
    this.#areProven = areProven;
  }

  /**
   * Adds a turn that was asked in a process. If the process before it was traced and then killed, nothing says that it has ended:
   * what follows without tracing cannot be told from what it did itself. A turn is unseen if no hook has told the program of it, or
   * of its process: then nothing says whose it was.
   */
  add(
    session: string,
    startTime: number,
    config: Config,
    killedBefore: readonly Config[],
    { isUnseen, isTried }: { isUnseen: boolean; isTried: boolean },
  ): void {
    const isTraced = config.tracing === 'on';
    const allowed = new Map<Place, Set<string>>();
    if (isUnseen) for (const place of PLACES) allowed.set(place, new Set([ANY_STYLE]));
    for (const each of isTraced ? [config] : killedBefore)
      for (const place of each.goal === 'typo' || !this.#areProven ? PLACES : [each.goal])
        allowed.set(place, (allowed.get(place) ?? new Set()).add(`${each.capture} ${each.tag}`));
    this.turns.push({
      session,
      startTime,
      allowed,
      limit: new Map(PLACES.map((place) => [place, 1])),
      // A misspelled destination cannot be told from another one before sending to it has failed.
      isDue: isTraced && !isUnseen && (isTried || config.goal !== 'typo'),
      isUntraced: !isTraced || isUnseen,
    });
  }

  /** The last turn of a session got another line. */
  grow(session: string): void {
    const turn = this.turns.findLast((each) => each.session === session);
    for (const place of PLACES) turn?.limit.set(place, (turn.limit.get(place) ?? 0) + 1);
  }

  /** A backfill of everything, from a shell that has only this one setting. */
  backfill(place: Place, capture: Capture, force: boolean): void {
    for (const { allowed, limit, isUntraced } of this.turns) {
      const restricted = [...(allowed.get(place) ?? [])].map((style) => {
        const [own = '', tag] = style.split(' ');
        return `${STRICTEST_FIRST.find((each) => each === own || each === capture)} ${tag}`;
      });
      const styles = [...(allowed.get(place) ?? []), ...restricted, ...(isUntraced ? [`${capture} -`] : [])];
      if (styles.length > 0) allowed.set(place, new Set(styles));
      if (force) limit.set(place, (limit.get(place) ?? 0) + 1);
    }
  }

  /** Returns what went wrong, as lines. */
  judge(arrived: { readonly [place in Place]: readonly Arrived[] }): string[] {
    const strangers = PLACES.flatMap((place) =>
      arrived[place]
        .filter((each) => !this.turns.some((turn) => isOf(each, turn)))
        .map(({ session, startTime }) => `${name(session, startTime)} at ${place} is no turn`),
    );
    const wrong = this.turns.flatMap((turn) => {
      const label = name(turn.session, turn.startTime);
      const there = PLACES.flatMap((place) =>
        arrived[place].filter((each) => isOf(each, turn)).map((each) => ({ ...each, place })),
      );
      const places = new Set(there.map(({ place }) => place));
      return [
        ...(places.size > 1 ? [`${label} is at both places`] : []),
        ...(turn.isDue && there.length === 0 ? [`${label} is lost`] : []),
        ...there.flatMap(({ place, style, times }) => {
          const allowed = [...(turn.allowed.get(place) ?? [])];
          return [
            ...(allowed.includes(style) || allowed.includes(ANY_STYLE)
              ? []
              : [`${label} is at ${place} as "${style}", not as one of ${JSON.stringify(allowed)}`]),
            ...(times > (turn.limit.get(place) ?? 0) ? [`${label} arrived ${times} times at ${place}`] : []),
          ];
        }),
      ];
    });
    return [...strangers, ...wrong];
  }
}

export interface Arrived {
  readonly session: string;
  readonly startTime: number;
  readonly style: string;
  readonly times: number;
}

/** Describes the turns that a server has. Each turn in these sessions has a tool call. */
export function describeArrived(
  observations: readonly StoredObservation[],
  timesSent: (observation: StoredObservation) => number,
): Arrived[] {
  return observations
    .filter(({ parentId }) => parentId === undefined)
    .map((root) => {
      const rows = observations.filter(({ traceId }) => traceId === root.traceId);
      const tools = rows.filter(({ type }) => type === 'tool');
      // At every level a turn without an answer has an output that says how it ended.
      const words = rows.map(({ type, input, output }) => (type === 'agent' ? input : (input ?? output)));
      const hasWords = rows.some(({ type }, place) => type !== 'tool' && words[place] !== undefined);
      const hasToolIo = tools.some(({ input, output }) => (input ?? output) !== undefined);
      const capture: Capture = hasToolIo ? 'full' : hasWords ? 'no_tool_io' : 'metadata';
      const [tag = '-'] = (root.trace.tags as string[]).filter((each) => each.length === 1);
      const { startTime, trace } = root;
      return { session: String(trace.sessionId), startTime, style: `${capture} ${tag}`, times: timesSent(root) };
    });
}

function isOf(arrived: Arrived, { session, startTime }: ToldTurn): boolean {
  return arrived.session === session && arrived.startTime === startTime;
}

function name(session: string, startTime: number): string {
  return `turn ${session.slice(0, 4)} ${new Date(startTime).toISOString().slice(11, 19)}`;
}
