import { listResultIds } from '../file/content.js';
import type { AssistantLine, ChainLine, Line, OtherLine, UserLine } from '../file/line.js';
import type { Position } from '../file/reader.js';
import { type ClassifiedLine, type ConversationLine, classifyLine } from './classify-line.js';
import { NOTE_KINDS } from './note-kinds.js';
import type { OpenPrompt } from './prompt.js';
import type { OwnPoint, SettledPart, TurnSoFar } from './resume-point.js';
import { addFacts, addResponses, mayShowCompaction } from './session-facts.js';
import type { ThreadContext } from './thread-context.js';
import {
  type AgentThread,
  type Note,
  noteKey,
  type Response,
  type SessionFacts,
  type Turn,
  type TurnStart,
} from './turn.js';
import { TurnContent } from './turn-content.js';
import { isOver } from './turn-end.js';

/** What was known when a turn began, and the notes of earlier turns that were never answered. */
interface Before {
  readonly time: number | undefined;
  readonly session: SessionFacts;
  readonly turnCount: number;
  readonly notes: readonly Note[];
}

/** Nobody waits longer than this for a request or a tool of a turn, if another turn has begun. */
const LONGEST_PAUSE_MS = 60 * 60_000;

/** A turn to which lines are still added. Which lines belong to it is for the grouper to decide. */
export class OpenTurn {
  /** Whether its own conversation goes on with another prompt. */
  isFollowed = false;
  /** The turn in which its prompt was queued, of the same process. */
  queuedIn: OpenTurn | undefined;
  /** Whether a subagent has answered in the file of the main thread (1.0). */
  hasSidechain = false;
  /** Turns are numbered in the order in which they begin to count. */
  number: number | undefined;
  readonly #thread: ThreadContext;
  readonly #content: TurnContent;
  readonly #before: Before;
  #start: Position;
  #lineNumbers: number[] = [];
  #end = 0;
  #session: SessionFacts;
  #lastLineAt: number | undefined;
  #continuedIn: string | undefined;
  #countsFrom = 0;
  #endLine = 0;
  #isClosed = false;

  constructor(thread: ThreadContext, start: Position, before: Before) {
    this.#thread = thread;
    this.#content = new TurnContent(thread, before);
    this.#before = before;
    this.#session = thread.session;
    this.#start = start;
  }

  /** Where reading has to start for the turn to be the same again. */
  get from(): TurnStart {
    const { session, turnCount } = this.#before;
    return { ...this.#start, time: this.#content.inheritedTime, session, turnCount };
  }

  /** Whether another session's transcript has a prompt of it. */
  get isHeldElsewhere(): boolean {
    return this.prompts.some((prompt) => prompt.isHeldElsewhere);
  }

  get prompts(): OpenPrompt[] {
    return this.#content.prompts;
  }

  get responses(): Response[] {
    return this.#content.responses.collect();
  }

  /** As long as there is nothing but prompts, the next prompt joins them. */
  get isUnanswered(): boolean {
    return !this.#isAnsweredOr(({ kind }) => NOTE_KINDS[kind].separatesPrompts);
  }

  /** A turn without a response does not count, unless it ended without one: an empty answer writes no line. */
  get counts(): boolean {
    return this.prompts.length > 0 && this.#isAnsweredOr(({ kind }) => NOTE_KINDS[kind].isAnswer ?? false);
  }

  /**
   * Whether lines of the turn are still expected although another one has begun at this time: the other prompt was given to
   * another process, in which this session is open, too.
   */
  isExpectedAt(time: number): boolean {
    if (this.#isClosed || this.prompts.length === 0 || time - (this.#lastLineAt ?? time) > LONGEST_PAUSE_MS)
      return false;
    if (this.#content.hasCopiedResponse) return false;
    return !isOver({
      response: this.#content.responses.last,
      notes: this.#content.notes.own,
      endLine: this.#endLine,
      isFollowed: this.isFollowed,
    });
  }

  /** Claude Code says that the turn is over. It may go on if a Stop hook objects. */
  end({ location }: ChainLine): void {
    this.#endLine = location.number;
  }

  /** Whether a line has more of one of its responses. A line can be written twice. */
  isContinuedBy(line: AssistantLine): boolean {
    return this.#content.responses.isContinuedBy(line);
  }

  /** The ids of calls that have no result. */
  get openCalls(): string[] {
    return this.#content.responses.listOpenCalls().filter((id) => id !== undefined);
  }

  /** Whether a line has the result of one of its calls. */
  hasCallOf({ content }: UserLine): boolean {
    return listResultIds(content).some((id) => this.#content.responses.hasCall(id));
  }

  hasPromptId(id: string | undefined): boolean {
    return id !== undefined && this.prompts.some(({ context }) => context.promptId === id);
  }

  /** The notes that the next turn takes over if this one does not count, except how this one ended. */
  takeNotes(): Note[] {
    return this.#content.notes.take();
  }

  addPrompt(line: UserLine): void {
    const { number, start } = line.location;
    if (number < this.#start.line) this.#start = { line: number, offset: start };
    this.#content.addPrompt(line);
  }

  /** Moves prompts into a turn of their own, in case they are answered after all. */
  splitOff(prompts: OpenPrompt[]): OpenTurn {
    const turn = new OpenTurn(this.#thread, this.#start, { ...this.#before, notes: [] });
    turn.#lastLineAt = prompts.at(-1)?.at;
    turn.keepPrompts(prompts, this.#start);
    return turn;
  }

  /** Forgets all prompts but these. If none is left, the turn starts at `start`. */
  keepPrompts(prompts: OpenPrompt[], start: Position): void {
    this.#content.keepPrompts(prompts);
    this.#lineNumbers = prompts.map(({ line }) => line);
    if (prompts.length === 0) this.#start = start;
  }

  /** Adds what a line of the turn says. Returns whether the line becomes part of the turn. */
  add(classified: ClassifiedLine, line: ConversationLine): boolean {
    return this.#content.add(classified, line);
  }

  /**
   * Adds what a line says about the whole session, in which these responses are known. Returns whether it also says something of
   * the turn: what its last compaction used, or in which session its conversation goes on.
   */
  addSessionFacts(line: OtherLine, responses: () => readonly Response[]): boolean {
    if (line.type === 'continued-in') {
      this.#continuedIn = line.fields.continuedInSessionId;
      return this.prompts.length > 0;
    }
    const { facts, compaction } = addFacts(this.#thread.session, line, responses);
    this.#thread.session = facts;
    if (!compaction) return false;
    // In the terminal Claude Code also asks models for its own purposes.
    const { exact } = this.prompts[0]?.context.entrypoint?.startsWith('sdk') ? compaction : {};
    return this.#content.notes.addCost({ tokens: compaction.tokens, exact, line: line.location.number });
  }

  /** Makes a line part of the turn. */
  claim({ location, at }: ChainLine): void {
    this.#lineNumbers.push(location.number);
    this.#end = location.end;
    this.#session = this.#thread.session;
    this.#lastLineAt = at ?? this.#lastLineAt;
  }

  /** Gives the turn its number, from the line on with which it begins to count. */
  count(number: number, { location }: ChainLine): void {
    this.number = number;
    this.#countsFrom = location.number;
  }

  /** Tells the thread what no later turn may take again, and what the session has used. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#thread.session = addResponses(this.#thread.session, this.responses);
    for (const { uuid } of this.prompts) if (uuid !== undefined) this.#thread.seen.add(uuid);
  }

  /** Identifies the turn, once it has a prompt. */
  get key(): string {
    const [first] = this.prompts;
    return first?.uuid ?? `${this.#thread.start.sessionId}:${first?.line}`;
  }

  toTurn(sidechains: readonly AgentThread[]): Turn {
    const [first, ...more] = this.prompts;
    if (!first || this.number === undefined) throw new Error('the turn does not count');
    const { responses } = this;
    const notes = this.#content.notes.all;
    const lastWork = findLastWork(responses, notes);
    return {
      number: this.number,
      countsFrom: this.#countsFrom,
      key: this.key,
      start: this.#start,
      inheritedTime: this.#content.inheritedTime,
      sessionBefore: this.#before.session,
      session: this.#session,
      continuedIn: this.#continuedIn,
      context: first.context,
      skill: this.#content.hasSkillBody
        ? this.prompts.findLast(({ command }) => command !== undefined)?.command
        : undefined,
      prompts: [first, ...more],
      responses,
      notes,
      hooks: this.#content.hooks.filter(({ line }) => line > first.line && line < lastWork),
      sidechains,
      copied: first.copied || (this.#content.hasCopiedResponse && responses.length === 0),
      lineNumbers: [...this.#lineNumbers],
      end: this.#end,
    };
  }

  /**
   * What is final of the turn: all before the response that begins with this line. A response is once its calls have their
   * results and another one has begun, unless something may still be taken back, or be added to what was before.
   */
  settledBefore({ location: { number: line, start: offset } }: ChainLine): SettledPart<OwnPoint> | undefined {
    if (this.#content.responses.last?.firstLine !== line || this.#content.hasCopiedResponse) return undefined;
    if (this.#content.notes.openCompaction && mayShowCompaction(this.#thread.session)) return undefined;
    const responses = this.#content.responses.collectSettled();
    if (responses.length === 0 || this.prompts.some(({ copied }) => copied)) return undefined;
    const to = { line, offset };
    const session = addResponses(this.#thread.session, responses);
    const whole = this.toTurn([]);
    const notes = whole.notes.filter((note) => note.line < line);
    const hooks = whole.hooks.filter((hook) => hook.line < line);
    const lineNumbers = this.#lineNumbers.filter((number) => number < line);
    const part = { ...whole, responses, notes, hooks, lineNumbers, end: offset };
    return { turn: part, drop: () => this.#drop(part, session, this.#content.firstResponse ?? to, to) };
  }

  /** The turn as far as it has come; undefined if it does not count yet, or if it is not certain what may still change. */
  soFar(): TurnSoFar | undefined {
    const isCopied = this.#content.hasCopiedResponse || this.prompts.some(({ copied }) => copied);
    const growing = this.#content.responses.findGrowing(this.#thread.lastRequestLine);
    if (!this.counts || isCopied || !growing) return undefined;
    const { openCompaction } = this.#content.notes;
    if (openCompaction && mayShowCompaction(this.#thread.session)) growing.add(noteKey(openCompaction));
    return { turn: this.toTurn([]), growing };
  }

  /** Forgets what was handed on, and returns how a later run can go on from there. */
  #drop({ key, number, responses, lineNumbers }: Turn, session: SessionFacts, from: Position, to: Position): OwnPoint {
    const lastStart = responses.at(-1)?.firstLine ?? to.line;
    const waiting = [
      ...this.#thread.requestsFrom(lastStart, this.#content.responses.last?.request),
      ...this.#content.messages.taken,
    ];
    this.#thread.session = session;
    this.#thread.forgetRequestsBefore(lastStart);
    this.#content.responses.dropSettled();
    this.#content.dropNotesBefore(to.line);
    this.#lineNumbers = [...lineNumbers.slice(0, 1), ...this.#lineNumbers.filter((line) => line >= to.line)];
    return {
      key,
      number,
      countsFrom: this.#countsFrom,
      from,
      to,
      waiting: waiting.filter(({ number: line }) => line < to.line),
      lastLine: lineNumbers.at(-1) ?? to.line,
      lastLineAt: this.#lastLineAt,
      lastMessageAt: this.#content.messages.lastAt,
      inheritedTime: this.#content.inheritedTime,
      endLine: this.#endLine,
      lastTime: this.#thread.lastTime,
      session,
      ...this.#content.responses.settled,
    };
  }

  /** Goes on at a point that an earlier run has reached, of which `waiting` are the lines. */
  resume(point: OwnPoint, waiting: Iterable<Line>): void {
    this.#content.responses.resume(point.ids, point.answer);
    this.#content.messages.clear();
    for (const line of waiting) {
      if (line.kind === 'request') this.#thread.addRequest(line);
      else if (line.kind !== 'other' && line.kind !== 'unreadable') this.add(classifyLine(line), line);
    }
    this.#content.messages.lastAt = point.lastMessageAt;
    this.#content.dropNotesBefore(point.to.line);
    this.#thread.session = point.session;
    this.#session = point.session;
    this.#thread.lastTime = point.lastTime;
    this.#content.inheritedTime = point.inheritedTime;
    this.#lineNumbers.push(point.lastLine);
    this.#end = point.to.offset;
    this.#lastLineAt = point.lastLineAt;
    this.#endLine = point.endLine;
    this.number = point.number;
    this.#countsFrom = point.countsFrom;
    this.#content.firstResponse = point.from;
  }

  /** Whether there is more than prompts: a response, the turn's end, or such a note. */
  #isAnsweredOr(isSuch: (note: Note) => boolean): boolean {
    const { responses, hasCopiedResponse } = this.#content;
    const isAnswered = !responses.isEmpty || this.#endLine > 0 || hasCopiedResponse || this.hasSidechain;
    return isAnswered || this.#content.notes.own.some(isSuch);
  }
}

/** The last line at which a turn can end. What its hooks do after that may be known to a backfill only. */
function findLastWork(responses: readonly Response[], notes: readonly Note[]): number {
  const ends = notes.filter(({ kind }) => kind === 'api-error' || kind === 'command-result');
  const calls = responses.flatMap((response) => response.calls);
  const lines = [...responses.map(({ lastLine }) => lastLine), ...calls.flatMap(({ result }) => result?.line ?? [])];
  return [...lines, ...ends.map(({ line }) => line)].reduce((last, line) => Math.max(last, line), 0);
}
