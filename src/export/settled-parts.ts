import { type Earlier, NOTHING_BEFORE } from '../observations/build/agents.js';
import { addFigures, joinAnswer } from '../observations/build/figures.js';
import { answerText } from '../observations/content/messages.js';
import type { Checkpoint } from '../state/checkpoints.js';
import { type Line, parseLine } from '../transcript/file/line.js';
import type { Places } from '../transcript/file/place.js';
import type { LineLocation, TranscriptReader } from '../transcript/file/reader.js';
import { collectAnswer } from '../transcript/turns/responses.js';
import type { ResumePoint } from '../transcript/turns/resume-point.js';
import type { Turn } from '../transcript/turns/turn.js';
import type { SessionRun } from './session-run.js';

// Few turns are that long.
const FIRST_PART_BYTES = 4_000_000;
const PART_BYTES = 1_000_000;
// A live export comes every few seconds, and reads all that follows the last part.
const LIVE_PART_BYTES = 250_000;
const HASHED_BYTES = 1 << 16;

type ReadRun = Pick<SessionRun, 'request' | 'context' | 'start' | 'requests' | 'lookup'> & { readonly places: Places };

/**
 * What has been sent of turns before their end. A turn can be too long to be held in memory, or to be read in one run: so its
 * settled responses are sent as it is read, and only their figures are kept. The next run goes on reading after them.
 */
export class SettledParts {
  /** How much is read of a turn before its first part, and before each later one. */
  readonly firstBytes: number;
  readonly bytes: number;
  readonly #run: ReadRun;
  readonly #reader: TranscriptReader;
  /** Those that earlier runs have reached, and those of this one. */
  readonly #known: readonly Checkpoint[];
  readonly #reached: Checkpoint[] = [];
  readonly #earlier = new Map<string, Earlier>();

  constructor(run: ReadRun, reader: TranscriptReader) {
    this.#run = run;
    this.#reader = reader;
    const partBytes = run.request.occasion === 'live' ? LIVE_PART_BYTES : undefined;
    this.firstBytes = run.context.partBytes ?? partBytes ?? FIRST_PART_BYTES;
    this.bytes = run.context.partBytes ?? partBytes ?? PART_BYTES;
    this.#known = this.#readCheckpoints();
  }

  /** What has been sent of a turn and is not in it any more. */
  earlierOf({ key }: Pick<Turn, 'key'>): Earlier {
    return this.#earlier.get(key) ?? NOTHING_BEFORE;
  }

  /** Adds a part that is dropped now; `said` is what was said up to its end. */
  add(part: Turn, said = NOTHING_BEFORE.said): void {
    this.#earlier.set(part.key, { figures: addFigures(this.earlierOf(part).figures, part), said });
  }

  /** Records that the outbox has everything up to a point; `sentLine` is the last line that any of it depends on. */
  reach(point: ResumePoint, sentLine: number, ended: readonly string[]): void {
    const { answer: _, ...figures } = this.earlierOf(point).figures;
    const hash = this.#hash(point);
    this.#reached.push({ point, figures, sentLine, ended, hash });
  }

  /** Where reading can go on, if an earlier run has sent everything from this line to there. */
  findFrom({ number, start }: Pick<LineLocation, 'number' | 'start'>): Checkpoint | undefined {
    const found = this.#known.findLast(({ point: { from } }) => from.line === number && from.offset === start);
    return found && this.#hash(found.point) === found.hash ? found : undefined;
  }

  /** Restores the figures of the part that is not read. Returns the lines that are needed again. */
  resume({ point, figures }: Checkpoint): Line[] {
    const { answer } = point;
    const parts = answer ? collectAnswer(this.#readLines(answer)) : [];
    const whole = { ...figures, answer: joinAnswer(parts.map(answerText)) };
    this.#earlier.set(point.key, { ...NOTHING_BEFORE, figures: whole });
    return point.waiting.flatMap((location) => [...this.#readLines(location)]);
  }

  /** Keeps for the next run how far this one has come. `isAllSent` is whether nothing waits to be acknowledged. */
  save(isAllSent: boolean): void {
    const { request, context } = this.#run;
    if (this.#known.length === 0 && this.#reached.length === 0) return;
    const { turnLine = 1, sentLine = 0 } = context.state.read(request.sessionId, context.destinationId) ?? {};
    // Agents follow the lines of their calls: if a later line is acknowledged, so are they.
    const sent = this.#reached.filter((each) => each.sentLine < sentLine || (isAllSent && each.sentLine === sentLine));
    const needed = [...this.#known, ...sent].filter(({ point }) => point.from.line >= turnLine);
    const kept = [...new Map(needed.map((each) => [each.point.key, each])).values()];
    const isSame = kept.length === this.#known.length && kept.every((each) => this.#known.includes(each));
    if (!isSame) context.state.keepCheckpoints(request.sessionId, context.destinationId, kept);
  }

  #readCheckpoints(): Checkpoint[] {
    const { request, context, start, requests, lookup } = this.#run;
    // Whole requests are built from all lines before them, and so is what was said in a turn.
    if (requests || lookup.isGiven('CC_LANGFUSE_INPUT', 'turn') || start.sentLine === 0) return [];
    // So little follows that no earlier run has divided it.
    if (this.#reader.status.bytes - start.offset < LIVE_PART_BYTES && context.partBytes === undefined) return [];
    const all = context.state.readCheckpoints(request.sessionId, context.destinationId);
    return all.filter(({ sentLine }) => sentLine <= start.sentLine);
  }

  *#readLines(location: LineLocation): Generator<Line, void, undefined> {
    const bytes = this.#reader.readBytes(location);
    let { start, number } = location;
    while (start < location.end) {
      const newline = bytes.indexOf(0x0a, start - location.start);
      const end = newline < 0 ? location.end : location.start + newline + 1;
      const line = parseLine({
        number,
        start,
        end,
        bytes: bytes.subarray(start - location.start, end - location.start),
      });
      if (line) yield line;
      start = end;
      number += 1;
    }
  }

  /** A hash of both ends of the part that is not read: a transcript can be rewritten. */
  #hash({ from, to }: ResumePoint): string {
    return this.#run.places.hashEnds(from.offset, to.offset, HASHED_BYTES) ?? '';
  }
}
