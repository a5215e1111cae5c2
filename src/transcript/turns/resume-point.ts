import type { LineLocation, Position } from '../file/reader.js';
import type { SessionFacts, Turn } from './turn.js';

/**
 * Where reading can go on in the middle of a turn, instead of at its beginning: what the lines from `from` to `to` have said that
 * is still needed after them. Of what was said it has only the session's titles, otherwise places, ids, tools' names, times and counts.
 */
export interface ResumePoint {
  /** The turn, to be found again by reading up to its first response. */
  readonly key: string;
  readonly number: number;
  readonly countsFrom: number;
  /** The line of its first response, and the first line of the first response that is not settled. */
  readonly from: Position;
  readonly to: Position;
  /** The lines before it that this response answers, and that ask for it. */
  readonly waiting: readonly LineLocation[];
  /** The last settled response that has a text, and those before it where it goes on. */
  readonly answer?: LineLocation | undefined;
  /** The last line of the turn up to there, and its time. */
  readonly lastLine: number;
  readonly lastLineAt?: number | undefined;
  readonly lastMessageAt?: number | undefined;
  readonly inheritedTime?: number | undefined;
  readonly endLine: number;
  /** The time of the last line that had one. */
  readonly lastTime?: number | undefined;
  readonly session: SessionFacts;
  readonly ids: SettledIds;
  /** The uuids of its lines, and of those among them that must not be added twice. */
  readonly uuids: Iterable<string>;
  readonly seen: Iterable<string>;
}

/** The ids of its responses, and of their calls with the tools' names. */
export type SettledIds = Iterable<readonly [id: string, tool: string | null]>;

/** What the turn itself has to know. */
export type OwnPoint = Omit<ResumePoint, 'uuids' | 'seen'>;

/** What is final of a turn that goes on. */
export interface SettledPart<Point = ResumePoint> {
  /** The turn with only these responses and notes. */
  readonly turn: Turn;
  /** Forgets them, and returns how a later run can go on from there, once they are sent. */
  readonly drop: () => Point;
}

/** A turn that goes on, as far as it has come. */
export interface TurnSoFar {
  readonly turn: Turn;
  /** The responses and calls to which something may still be added, by id, and such notes by `noteKey`. */
  readonly growing: ReadonlySet<string>;
}

/** What a list that only grows contains so far, without copying it. */
export function soFar<T>(all: Iterable<T> & ({ readonly size: number } | { readonly length: number })): Iterable<T> {
  const count = 'size' in all ? all.size : all.length;
  return {
    *[Symbol.iterator]() {
      let left = count;
      for (const item of all) {
        if (left === 0) return;
        left -= 1;
        yield item;
      }
    },
  };
}
