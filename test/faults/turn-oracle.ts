import type { Arrived } from './arrived.js';

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
  /** Whether it mutes its session from its start on. */
  readonly mute: boolean;
}

/** What was seen of a turn. */
export interface Events {
  readonly session: string;
  readonly startTime: number;
  /** How the process was started in which its prompt was given. */
  readonly config: Config;
  readonly isStartSeen: boolean;
  /** Whether the hook of a Stop or a StopFailure has named it. */
  readonly isStopped: boolean;
  readonly isAnswered: boolean;
  /** Whether its process was killed while a tool ran. */
  readonly isUnfinished: boolean;
  /** Whether no other process can have been at work in the session. */
  readonly isAlone: boolean;
  /** `perhaps`: the session was muted while it ran, but nothing was said meanwhile. */
  readonly isMuted: boolean | 'perhaps';
  /** The traced processes whose starts were seen, and of which no event has told that they are over. */
  readonly open: readonly Config[];
}

/** What may become of a turn. */
interface ToldTurn extends Events {
  /** For each place where it may arrive, how: with which content, and which tag. */
  readonly allowed: Map<Place, Set<string>>;
  /** How often its root may arrive at a place. */
  readonly limit: Map<Place, number>;
  /** The forks that have a copy of it which nothing marks. */
  readonly copies: Set<string>;
  /** Whether it must be somewhere in the end. */
  isDue: boolean;
  /** Whether a backfill may send it as its own. */
  isUntraced: boolean;
}

/** What is written by an agent, or after its turn was over. */
interface ToldLine {
  readonly turn: ToldTurn;
  readonly time: number;
  readonly isMuted: boolean;
  /** Whether another process wrote it with tracing off, and no backfill has come since. */
  isUntraced: boolean;
  /** Whether the turn's own process wrote it. */
  readonly isOwn: boolean;
}

const STRICTEST_FIRST: readonly Capture[] = ['metadata', 'no_tool_io', 'full'];
const PLACES: readonly Place[] = ['A', 'B'];

export function strictestOf(a: Capture, b: Capture): Capture {
  return STRICTEST_FIRST.indexOf(a) < STRICTEST_FIRST.indexOf(b) ? a : b;
}

export class TurnOracle {
  readonly #turns: ToldTurn[] = [];
  readonly #lines: ToldLine[] = [];
  /** Whether both places have acknowledged something. One that never has is taken for misspelled once sending to it fails. */
  readonly #areProven: boolean;

  constructor(areProven: boolean) {
    this.#areProven = areProven;
  }

  /**
   * A turn may leave only if its process was traced, and its start was seen or its own Stop names it. If neither a start nor a Stop
   * has told whose it was, it cannot be told from a turn of a process that seems to go on.
   */
  add(events: Events): void {
    const { config, isStartSeen, isStopped, isAnswered, isAlone, isMuted, open } = events;
    const hasConsent = config.tracing === 'on' && (isStartSeen || isStopped);
    const own = hasConsent ? [config] : [];
    const allowed = new Map<Place, Set<string>>();
    for (const each of isMuted === true ? [] : [...own, ...(isStopped ? [] : open)])
      for (const place of each.goal === 'typo' || !this.#areProven ? PLACES : [each.goal])
        allowed.set(place, (allowed.get(place) ?? new Set()).add(`${each.capture} ${each.tag}`));
    // A misspelled destination cannot be told from another one before sending to it has failed.
    const isCertain = isStopped || (isAlone && config.goal !== 'typo');
    this.#turns.push({
      ...events,
      allowed,
      limit: new Map(PLACES.map((place) => [place, 1])),
      copies: new Set(),
      isDue: hasConsent && isCertain && isAnswered && isMuted === false,
      isUntraced: !hasConsent || !(isStopped || isAlone),
    });
  }

  /** The last turn of a session got another line. */
  grow(session: string, { time, isMuted }: Pick<ToldLine, 'time' | 'isMuted'>): void {
    const turn = this.#turns.findLast((each) => each.session === session);
    if (!turn) return;
    for (const place of PLACES) turn.limit.set(place, (turn.limit.get(place) ?? 0) + 1);
    if (isMuted) turn.isDue = false;
    this.#lines.push({ turn, time, isMuted, isUntraced: false, isOwn: false });
  }

  /** From now on, turns of a session like these cannot be told from turns that were to stay, or that ran without tracing. */
  doubt(session: string, mayStay: (turn: Events) => boolean, why: 'muted' | 'untraced'): void {
    for (const turn of this.#turns) {
      if (turn.session !== session || !mayStay(turn)) continue;
      turn.isDue = false;
      turn.isUntraced ||= why === 'untraced';
    }
  }

  /** An agent that the turn which began at this time has started writes a line. */
  speak(session: string, startTime: number, line: Omit<ToldLine, 'turn'>): void {
    const turn = this.#turns.find((each) => each.session === session && each.startTime === startTime);
    if (turn) this.#lines.push({ turn, ...line });
  }

  /** All turns of a session so far are copied, and nothing marks the copies. */
  copy(from: string, to: string): void {
    for (const { session, copies } of this.#turns) if (session === from || copies.has(from)) copies.add(to);
  }

  /** A backfill of everything, from a shell that has only this one setting. */
  backfill(place: Place, capture: Capture, force: boolean): void {
    for (const line of this.#lines) line.isUntraced = false;
    for (const { allowed, limit, isUntraced, isMuted } of this.#turns) {
      if (isMuted === true) continue;
      const restricted = [...(allowed.get(place) ?? [])].map((style) => {
        const [own, tag] = style.split(' ') as [Capture, string];
        return `${strictestOf(own, capture)} ${tag}`;
      });
      const styles = [...(allowed.get(place) ?? []), ...restricted, ...(isUntraced ? [`${capture} -`] : [])];
      if (styles.length > 0) allowed.set(place, new Set(styles));
      if (force) limit.set(place, (limit.get(place) ?? 0) + 1);
    }
  }

  /** Returns what went wrong, as lines. Of a session that is still muted, what agents wrote before may wait. */
  judge(arrived: { readonly [place in Place]: readonly Arrived[] }, muted: ReadonlySet<string>): string[] {
    const all = PLACES.flatMap((place) => arrived[place].map((each) => ({ ...each, place })));
    const strangers = all.flatMap(({ session, startTime, place }) => {
      const isKnown = this.#turns.some((turn) => isOf({ session, startTime }, turn));
      return isKnown ? [] : [`${this.#name({ session, startTime })} at ${place} is no turn`];
    });
    const wrong = this.#turns.flatMap((turn) => {
      const label = this.#name(turn);
      const there = all.filter((each) => isOf(each, turn));
      return [
        ...(there.length > 1 ? [`${label} is at ${there.map(({ place }) => place).join(' and at ')}`] : []),
        ...(turn.isDue && there.length === 0 ? [`${label} is lost`] : []),
        ...there.flatMap(({ place, style, times }) => {
          const allowed = [...(turn.allowed.get(place) ?? [])];
          return [
            ...(isBetween(style, allowed)
              ? []
              : [`${label} is at ${place} as "${style}", not as one of ${JSON.stringify(allowed)}`]),
            ...(times > (turn.limit.get(place) ?? 0) ? [`${label} arrived ${times} times at ${place}`] : []),
          ];
        }),
      ];
    });
    return [...strangers, ...wrong, ...this.#judgeLines(all, muted)];
  }

  #judgeLines(arrived: readonly Arrived[], muted: ReadonlySet<string>): string[] {
    return this.#lines.flatMap((line) => {
      const { turn, time, isMuted, isUntraced } = line;
      const isThere = arrived.some(({ session, endTimes }) => session === turn.session && endTimes.includes(time));
      const label = `a line of ${this.#name(turn)}`;
      if (!isThere) return this.#isDue(line) && !muted.has(turn.session) ? [`${label} is lost`] : [];
      if (isMuted || turn.isMuted === true) return [`${label} was sent, although it was muted`];
      if (turn.allowed.size === 0) return [`${label} was sent, although its turn was to stay`];
      return isUntraced ? [`${label} was sent, although it was written with tracing off`] : [];
    });
  }

  /** What an agent wrote can wait for ever, or be lost, if any of it was to stay. */
  #isDue({ turn, isOwn }: ToldLine): boolean {
    const isWhole = this.#lines.every((line) => line.turn !== turn || (line.isOwn && !line.isMuted));
    return turn.isDue && isOwn && isWhole;
  }

  /** Names a turn by its place among all. */
  #name({ session, startTime }: Pick<ToldTurn, 'session' | 'startTime'>): string {
    const place = this.#turns.findIndex((turn) => turn.startTime === startTime) + 1;
    return `turn ${place || new Date(startTime).toISOString()} of session ${session[0]}`;
  }
}

/** Whether a turn may have arrived like this: its parts may have been sent under different settings. */
function isBetween(style: string, allowed: readonly string[]): boolean {
  const [capture, tag] = parseStyle(style);
  const captures = allowed.map(parseStyle).flatMap(([each, ofTag]) => (ofTag === tag ? [each] : []));
  return captures.some((each) => each <= capture) && captures.some((each) => each >= capture);
}

/** Returns how much is sent, and the tag. */
function parseStyle(style: string): [number, string | undefined] {
  const [capture, tag] = style.split(' ');
  return [STRICTEST_FIRST.indexOf(capture as Capture), tag];
}

function isOf({ session, startTime }: Pick<Arrived, 'session' | 'startTime'>, turn: ToldTurn): boolean {
  return turn.startTime === startTime && (turn.session === session || turn.copies.has(session));
}
