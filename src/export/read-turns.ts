import { setTimeout as sleep, setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Checkpoint } from '../state/checkpoints.js';
import { type Line, parseLine } from '../transcript/file/line.js';
import { findFirstTime, parseUnfinishedLine } from '../transcript/file/lines.js';
import type { TranscriptReader } from '../transcript/file/reader.js';
import { findUnknownTypes } from '../transcript/file/unknown.js';
import { AnswerWatcher } from '../transcript/turns/answer-watcher.js';
import type { SettledPart, TurnSoFar } from '../transcript/turns/resume-point.js';
import type { TurnGroup } from '../transcript/turns/turn.js';
import { TurnGrouper } from '../transcript/turns/turn-grouper.js';
import type { Closing } from './export-request.js';
import type { SessionRun } from './session-run.js';
import type { SettledParts } from './settled-parts.js';

const POLL_MS = 6;
/** Nobody works in a session whose file has not changed for this long. */
export const IDLE_MS = 10 * 60_000;
const LINES_BETWEEN_CHECKS = 256;
/** Of a turn that was overtaken, the prompt is not farther back. */
const LOOK_BACK_BYTES = 1 << 18;
const UNREADABLE_LOGGED = 10;

type ReadRun = SessionRun & { readonly parts: SettledParts };
type AnswerClosing = Extract<Closing, { kind: 'answer' }>;

/** Turns that end together or go on, prompts without an answer, what is final of a turn that goes on, or where reading goes on after lines that are not read. */
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
  const { start, budget, requests, parts } = run;
  const { sessionId, closing } = run.request;
  const time = () => start.time ?? findFirstTime(reader);
  const grouper = new TurnGrouper({ ...start, thread: 'main', sessionId, time });
  const watch = closing.kind === 'answer' ? new AnswerWatcher(closing, start.sentLine) : undefined;
  const oddLines = new OddLines(run);
  let readUpTo = 0;
  let isSentBefore: boolean | undefined;
  const wasSentBefore = ({ promptId }: AnswerClosing) => {
    isSentBefore ??= isPromptBefore(promptId, start.offset, reader);
    return isSentBefore;
  };
  let nextPartAt = start.offset + parts.firstBytes;
  const take = (line: Line | undefined): TurnGroup | undefined => {
    if (!line) return undefined;
    readUpTo = line.location.number;
    requests?.observe(line);
    watch?.observe(line);
    oddLines.observe(line);
    return grouper.push(line);
  };
  for (;;) {
    for (const source of reader.lines()) {
      if (closing.kind === 'live' && source.end > closing.upTo) break;
      const checkpoint = parts.findFrom(source);
      if (checkpoint && grouper.canResume(checkpoint.point)) {
        grouper.resume(checkpoint.point, parts.resume(checkpoint));
        nextPartAt = checkpoint.point.to.offset + parts.bytes;
        reader.moveTo(checkpoint.point.to);
        yield { kind: 'resumed', checkpoint };
        continue;
      }
      const line = parseLine(source);
      const group = take(line);
      if (group) yield { kind: 'turns', group, isClosed: true, readTo: source.end };
      if (group) nextPartAt = source.start + parts.firstBytes;
      const part = line && source.end >= nextPartAt ? grouper.settledBefore(line) : undefined;
      if (part) {
        yield { kind: 'part', ...part };
        nextPartAt = source.start + parts.bytes;
      }
      if (source.number % LINES_BETWEEN_CHECKS !== 0) continue;
      run.context.observer?.onRead?.(source.end);
      if (budget.check()) return;
      // Reading a long file must not hold up requests and the heartbeats of locks.
      await yieldToEventLoop();
    }
    if (closing.kind !== 'answer' || !watch || isFound(closing, watch) || Date.now() >= closing.waitUntil) break;
    // With quick turns another worker may have sent this one and a later one. Then its answer does not come again.
    if (wasSentBefore(closing) && watch.promptLine === undefined) break;
    await sleep(POLL_MS);
  }
  const ended = closing.kind === 'live' ? undefined : take(parseUnfinishedLine(reader));
  if (ended) yield { kind: 'turns', group: ended, isClosed: true, readTo: reader.offset };
  oddLines.logRest();
  const group = grouper.open();
  if (closing.kind === 'live' && grouper.isAnswerExpected) yield { kind: 'prompts' };
  if (!group) return;
  const promptLine = Math.min(...group.turns.map(({ prompts }) => prompts[0].line));
  const isOver = (): boolean => {
    if (closing.kind === 'everything') return group.from.offset < (closing.upTo ?? Number.POSITIVE_INFINITY);
    if (closing.kind !== 'answer' || !watch || watch.isObjectedTo) return false;
    // Even if its answer has not been found, its own turn is over, but none that has begun since.
    if (watch.promptLine !== undefined) return promptLine <= (watch.line ?? watch.promptLine);
    if (wasSentBefore(closing)) return false;
    return promptLine <= (watch.line ?? (closing.mayBeSent ? 0 : readUpTo));
  };
  const isClosed =
    isOver() ||
    promptLine <= start.closedLine ||
    run.ledger.hasEnded(promptLine) ||
    (closing.kind !== 'live' && Date.now() - reader.status.changedAt > IDLE_MS);
  // If one of several turns is over, all are sent as far as they have come, and the others grow in place.
  const soFar = closing.kind === 'live' ? grouper.soFar() : undefined;
  yield { kind: 'turns', group, isClosed, readTo: grouper.nextPromptAt + 1, soFar };
}

/**
 * Whether the awaited answer has come. For an event that is exported late, equal words can be those of an earlier turn, so its prompt
 * must have come, too.
 */
function isFound({ mayBeSent, promptId }: AnswerClosing, { line, promptLine }: AnswerWatcher): boolean {
  return line !== undefined && (!mayBeSent || promptId === undefined || promptLine !== undefined);
}

/** Whether a prompt is shortly before the last exported turn, so that its turn has been exported, too. */
function isPromptBefore(promptId: string | undefined, offset: number, reader: TranscriptReader): boolean {
  if (promptId === undefined || offset === 0) return false;
  const before = reader.readBytes({ start: Math.max(0, offset - LOOK_BACK_BYTES), end: offset });
  return before.includes(`"promptId":"${promptId}"`);
}

/** Logs lines that cannot be read, and in debug mode what this version does not know. */
class OddLines {
  readonly #run: SessionRun;
  readonly #unknown = new Map<string, number>();
  #unreadable = 0;

  constructor(run: SessionRun) {
    this.#run = run;
  }

  observe(line: Line): void {
    const { request, context, start } = this.#run;
    if (request.closing.kind === 'live') return;
    if (context.log.isDebug)
      for (const what of findUnknownTypes(line)) this.#unknown.set(what, (this.#unknown.get(what) ?? 0) + 1);
    if (line.kind !== 'unreadable' || line.location.number <= start.sentLine) return;
    this.#unreadable += 1;
    if (this.#unreadable > UNREADABLE_LOGGED) return;
    const { location, reason } = line;
    context.log.warn('skipped a line that cannot be read', { file: request.path, line: location.number, reason });
  }

  logRest(): void {
    const { log } = this.#run.context;
    const { path: file } = this.#run.request;
    if (this.#unreadable > UNREADABLE_LOGGED)
      log.warn('skipped more lines that cannot be read', { file, lines: this.#unreadable });
    for (const [what, times] of this.#unknown) log.debug('skipped what is unknown', { file, what, times });
  }
}
