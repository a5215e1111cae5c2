import { setTimeout as sleep, setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { memoize } from '../shared/memoize.js';
import type { Checkpoint } from '../state/checkpoints.js';
import type { Stop } from '../state/facts.js';
import { readCopiedUsage } from '../transcript/agents/agent-files.js';
import { type Line, parseLine } from '../transcript/file/line.js';
import { findFirstTime, parseUnfinishedLine } from '../transcript/file/lines.js';
import type { SourceLine, TranscriptReader } from '../transcript/file/reader.js';
import { UnknownCounts } from '../transcript/file/unknown.js';
import { findAnswer } from '../transcript/turns/answer.js';
import type { SettledPart, TurnSoFar } from '../transcript/turns/resume-point.js';
import type { Prompt, Turn, TurnGroup } from '../transcript/turns/turn.js';
import { TurnGrouper } from '../transcript/turns/turn-grouper.js';
import { isOver } from './over.js';
import type { SessionRun } from './session-run.js';
import type { SettledParts } from './settled-parts.js';
import { AgentFiles } from './subagents/files.js';

const POLL_MS = 6;
/** How long to wait for an answer's last line; it is written 7 to 154 ms after Stop hooks start. */
const ANSWER_WAIT_MS = 2_000;
/** Nobody works in a session whose file has not changed for this long. */
export const IDLE_MS = 10 * 60_000;
const LINES_BETWEEN_CHECKS = 256;
const UNREADABLE_LOGGED = 10;

type ReadRun = SessionRun & {
  readonly parts: SettledParts;
  /** The uuids of lines that were copied from a session whose transcript is gone. */
  readonly orphans: Set<string>;
};

/**
 * Turns that end together or go on, prompts without an answer, the settled part of a long turn, or where reading goes on after lines
 * that are not read.
 */
type ReadTurns =
  | {
      readonly kind: 'turns';
      readonly group: TurnGroup;
      readonly isClosed: boolean;
      /** Up to which byte lines have been read, the beginning of a later prompt included; infinity if none follows yet. */
      readonly readTo: number;
      readonly soFar?: TurnSoFar | undefined;
    }
  | { readonly kind: 'prompts' }
  | ({ readonly kind: 'part' } & SettledPart)
  | { readonly kind: 'resumed'; readonly checkpoint: Checkpoint };

/**
 * Reads turns from the start position on, each as soon as it ends, and finally the one that is still open. Of a turn that is long,
 * parts come before its end, and those that an earlier run has sent are not read.
 */
export async function* readTurns(reader: TranscriptReader, run: ReadRun): AsyncGenerator<ReadTurns> {
  const reading = new Reading(reader, run);
  do {
    if (!(yield* reading.readLines())) return;
  } while (await reading.waitForAnswers());
  yield* reading.readRest();
}

/** One pass through a transcript. */
class Reading {
  readonly #reader: TranscriptReader;
  readonly #run: ReadRun;
  readonly #grouper: TurnGrouper;
  readonly #stops: AwaitedStops;
  readonly #oddLines: OddLines;
  #nextPartAt: number;
  /** Whether a line has come since the answers were last looked for. */
  #isNew = true;

  constructor(reader: TranscriptReader, run: ReadRun) {
    const { start, request, context, parts, originals } = run;
    const time = () => start.time ?? findFirstTime(reader);
    this.#reader = reader;
    this.#run = run;
    const isHeldBy = (other: string, uuid: string | undefined) => {
      // If the transcript is gone, but the session is known, its turns have been sent as that session's.
      const isHeld =
        originals.holds(other, uuid) ?? (context.state.readSession(other) === undefined ? undefined : true);
      if (isHeld === undefined && uuid !== undefined) run.orphans.add(uuid);
      return isHeld;
    };
    const readCopied = memoize(readCopiedUsage);
    const findUsage = (messageId: string) => readCopied(request.path).get(messageId);
    const { sessionId } = request;
    this.#grouper = new TurnGrouper({ ...start, thread: 'main', sessionId, time, isHeldBy, findUsage });
    this.#stops = new AwaitedStops(run);
    this.#oddLines = new OddLines(run);
    this.#nextPartAt = start.offset + parts.firstBytes;
  }

  /** Reads the lines that are there. Returns whether there was time for all of them. */
  async *readLines(): AsyncGenerator<ReadTurns, boolean> {
    const { request, context, budget } = this.#run;
    const { upTo = Number.POSITIVE_INFINITY } = request;
    for (const source of this.#reader.lines()) {
      if (source.end > upTo) break;
      const resumed = this.#resume(source);
      if (resumed) {
        yield resumed;
        continue;
      }
      for (const read of this.#readLine(source)) yield read;
      if (source.number % LINES_BETWEEN_CHECKS !== 0) continue;
      context.observer?.onRead?.(source.end);
      if (budget.check()) return false;
      // Reading a long file must not hold up requests and the heartbeats of locks.
      await yieldToEventLoop();
    }
    return true;
  }

  /** Waits a moment if answers are still to come. Returns whether there are any. */
  async waitForAnswers(): Promise<boolean> {
    // Most of the time nothing has been added.
    if (this.#isNew) this.#stops.look(this.#grouper.open()?.turns ?? []);
    this.#isNew = false;
    if (!this.#stops.areAwaited()) return false;
    await sleep(POLL_MS);
    return true;
  }

  /** What an unfinished line ends, and the turn that is still open. */
  *readRest(): Generator<ReadTurns, void, undefined> {
    const grouper = this.#grouper;
    const isLive = this.#run.request.occasion === 'live';
    const ended = isLive ? undefined : this.#take(parseUnfinishedLine(this.#reader));
    if (ended) yield { kind: 'turns', group: ended, isClosed: true, readTo: this.#reader.offset };
    this.#oddLines.logRest();
    const group = grouper.open();
    if (isLive && grouper.isAnswerExpected) yield { kind: 'prompts' };
    if (!group) return;
    // If one of several turns is over, all are sent as far as they have come, and the others grow in place.
    const isIdle = !isLive && Date.now() - this.#reader.status.changedAt > IDLE_MS;
    const isClosed = group.turns.some((turn) => this.#stops.isOver(turn, isIdle));
    const soFar = isLive ? grouper.soFar() : undefined;
    yield { kind: 'turns', group, isClosed, readTo: grouper.nextPromptAt + 1, soFar };
  }

  /** Moves behind what an earlier run has sent, if that begins with this line. */
  #resume(source: SourceLine): ReadTurns | undefined {
    const { parts } = this.#run;
    const checkpoint = parts.findFrom(source);
    if (!checkpoint || !this.#grouper.canResume(checkpoint.point)) return undefined;
    this.#grouper.resume(checkpoint.point, parts.resume(checkpoint));
    this.#nextPartAt = checkpoint.point.to.offset + parts.bytes;
    this.#reader.moveTo(checkpoint.point.to);
    return { kind: 'resumed', checkpoint };
  }

  *#readLine(source: SourceLine): Generator<ReadTurns, void, undefined> {
    const { parts } = this.#run;
    const line = parseLine(source);
    const group = this.#take(line);
    if (group) {
      this.#stops.close(group.turns);
      yield { kind: 'turns', group, isClosed: true, readTo: source.end };
      this.#nextPartAt = source.start + parts.firstBytes;
    }
    const part = line && source.end >= this.#nextPartAt ? this.#grouper.settledBefore(line) : undefined;
    if (!part) return;
    yield { kind: 'part', ...part };
    this.#nextPartAt = source.start + parts.bytes;
  }

  /** Returns the turns that the line ends. */
  #take(line: Line | undefined): TurnGroup | undefined {
    if (!line) return undefined;
    this.#run.requests?.observe(line);
    this.#stops.observe(line);
    this.#isNew = true;
    this.#oddLines.observe(line);
    return this.#grouper.push(line);
  }
}

/** The Stops whose turns have not been sent, and which of them still wait for the answer. */
class AwaitedStops {
  readonly #run: SessionRun;
  readonly #startedAt = Date.now();
  readonly #waiting: readonly Stop[];
  #awaited: readonly Stop[];
  /** The last lines that say something to the model, by the ids of their prompts. */
  readonly #lastLines = new Map<string, number>();
  /** Those whose answers are in turns that another prompt follows. */
  readonly #answered = new Set<Stop>();
  /** Those that there were when a Stop's prompt was not there yet. */
  #agents: AgentFiles | undefined;

  constructor(run: SessionRun) {
    this.#run = run;
    // If a turn is sent while it runs, the hooks end it.
    this.#waiting = run.request.occasion === 'live' ? [] : run.lookup.waiting;
    this.#awaited = this.#waiting;
  }

  observe(line: Line): void {
    if (line.kind !== 'user' || line.fields.isMeta || line.fields.promptId === undefined) return;
    this.#lastLines.set(line.fields.promptId, line.location.number);
  }

  /** Takes note of turns that another prompt follows. */
  close(turns: readonly Turn[]): void {
    this.look(turns);
    for (const stop of this.#waiting)
      if (turns.some((turn) => stop.answer !== undefined && findAnswer(turn, stop.answer))) this.#answered.add(stop);
  }

  /** Takes note of what has come of turns. */
  look(turns: readonly Turn[]): void {
    this.#awaited = this.#awaited.filter((stop) => !turns.some((turn) => this.#isAnsweredIn(turn, stop)));
  }

  areAwaited(): boolean {
    return this.#awaited.some((stop) => this.#mayCome(stop) && !this.#isSent(stop) && !this.#isOfCommand(stop));
  }

  isOver(turn: Turn, isIdle: boolean): boolean {
    const { lookup, start, request } = this.#run;
    const hasRunEnded = lookup.hasEnded(turn);
    const isWanted = request.includesOpen === true;
    const isFirst = (prompt: Prompt) => lookup.isFirst(prompt);
    const isAnswered = (stop: Stop) => this.#answered.has(stop);
    const { sentLine } = start;
    return isOver(turn, this.#waiting, { sentLine, hasRunEnded, isIdle, isWanted, isAnswered, isFirst });
  }

  /** Whether the Stop's turn was sent together with a later one. Then it is not read again. */
  #isSent({ promptId = '' }: Stop): boolean {
    const { lookup, start } = this.#run;
    return !this.#lastLines.has(promptId) && (lookup.findPrompt(promptId) ?? start.offset) < start.offset;
  }

  /** The lines of a command that ran as an agent are written only after all Stop hooks have ended. */
  #isOfCommand({ promptId }: Stop): boolean {
    if (promptId === undefined || this.#lastLines.has(promptId)) return false;
    this.#agents ??= new AgentFiles(this.#run);
    return this.#agents.startedByCommand({ promptId }).length > 0;
  }

  /** A date in the future is that of a clock that has been set back. */
  #mayCome({ at, answer }: Stop): boolean {
    const until = Math.min(at + ANSWER_WAIT_MS, (at + this.#run.context.deadline) / 2);
    return answer !== undefined && at <= this.#startedAt && Date.now() < until;
  }

  /** Whether the answer that a Stop names has come, or a Stop hook has objected to it. */
  #isAnsweredIn(turn: Turn, { promptId, answer, isAfterFeedback }: Stop): boolean {
    if (promptId !== undefined && turn.prompts.every((prompt) => prompt.promptId !== promptId)) return false;
    const found = answer === undefined ? undefined : findAnswer(turn, answer);
    if (!found || found.isObjectedTo) return found !== undefined && !isAfterFeedback;
    // A later prompt can have the same id, and a later answer the same words.
    return found.line > (promptId === undefined ? this.#run.start.sentLine : (this.#lastLines.get(promptId) ?? 0));
  }
}

/** Logs lines that cannot be read and, once for each session, what this version does not know. */
class OddLines {
  readonly #run: SessionRun;
  readonly #unknown = new UnknownCounts();
  #unreadable = 0;

  constructor(run: SessionRun) {
    this.#run = run;
  }

  observe(line: Line): void {
    const { request, context, start } = this.#run;
    if (request.occasion === 'live') return;
    this.#unknown.addTypes(line);
    if (line.kind !== 'unreadable' || line.location.number <= start.sentLine) return;
    this.#unreadable += 1;
    if (this.#unreadable > UNREADABLE_LOGGED) return;
    const { location, reason } = line;
    context.log.warn('skipped a line that cannot be read', { file: request.path, line: location.number, reason });
  }

  logRest(): void {
    const { context, request, writer } = this.#run;
    const { path: file } = request;
    if (this.#unreadable > UNREADABLE_LOGGED)
      context.log.warn('skipped more lines that cannot be read', { file, lines: this.#unreadable });
    const { unknown: logged = [] } = writer.known;
    const unknown = this.#unknown.format(logged);
    if (unknown === '') return;
    context.log.info('Claude Code has written what this version does not know', { file, unknown });
    writer.saveLater({ unknown: [...new Set([...logged, ...this.#unknown.names])] });
  }
}
