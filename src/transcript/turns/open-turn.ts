import { extractText, type MediaBlock, parseBlocks } from '../file/content.js';
import type { AssistantLine, AttachmentLine, ChainLine, OtherLine, UserLine } from '../file/line.js';
import type { Position } from '../file/reader.js';
import type { ClassifiedLine, ConversationLine } from './classify-line.js';
import { findCompactionUsage } from './compaction-usage.js';
import { type OpenPrompt, openPrompt } from './prompt.js';
import { ResponseCollector } from './responses.js';
import { addCompaction, addFacts, addResponses } from './session-facts.js';
import type { ThreadContext } from './thread-context.js';
import type {
  AgentThread,
  AnsweredMessage,
  Note,
  NoteContent,
  Response,
  SessionFacts,
  Turn,
  TurnStart,
} from './turn.js';
import { isOver, tellsEnd } from './turn-end.js';

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
  prompts: OpenPrompt[] = [];
  /** Whether its own conversation goes on with another prompt. */
  isFollowed = false;
  /** Turns are numbered in the order in which they begin to count. */
  number: number | undefined;
  readonly #thread: ThreadContext;
  readonly #responses: ResponseCollector;
  readonly #before: Before;
  #notes: Note[] = [];
  #start: Position;
  #lineNumbers: number[] = [];
  #session: SessionFacts;
  #inheritedTime: number | undefined;
  #hasCopiedResponse = false;
  #hasSkillBody = false;
  /** Messages to the model that no response has answered yet. */
  #messages: AnsweredMessage[] = [];
  #lastMessageAt: number | undefined;
  #lastLineAt: number | undefined;
  #countsFrom = 0;
  #endLine = 0;

  constructor(thread: ThreadContext, start: Position, before: Before) {
    this.#thread = thread;
    this.#responses = new ResponseCollector(thread.idOwners);
    this.#before = before;
    this.#session = thread.session;
    this.#start = start;
  }

  /** Where reading has to start for the turn to be the same again. */
  get from(): TurnStart {
    const { session, turnCount } = this.#before;
    return { ...this.#start, time: this.#inheritedTime, session, turnCount };
  }

  get responses(): Response[] {
    return this.#responses.collect();
  }

  /** As long as there is nothing but prompts, the next prompt joins them. */
  get isUnanswered(): boolean {
    return !this.#isAnsweredOr('api-error', 'interrupt', 'compaction');
  }

  /** A turn without a response does not count, unless it ended without one: an empty answer writes no line. */
  get counts(): boolean {
    return this.prompts.length > 0 && this.#isAnsweredOr('api-error');
  }

  /**
   * Whether lines of the turn are still expected although another one has begun at this time: the other prompt was given to
   * another process, in which this session is open, too.
   */
  isExpectedAt(time: number): boolean {
    if (this.prompts.length === 0 || time - (this.#lastLineAt ?? time) > LONGEST_PAUSE_MS) return false;
    if (this.#hasCopiedResponse) return false;
    return !isOver({
      response: this.#responses.last,
      notes: this.#notes,
      endLine: this.#endLine,
      isFollowed: this.isFollowed,
    });
  }

  /** Claude Code says that the turn is over. It may go on if a Stop hook objects. */
  end({ location }: ChainLine): void {
    this.#endLine = location.number;
  }

  /** Whether a line has the result of one of its calls. */
  hasCallOf({ content }: UserLine): boolean {
    return parseBlocks(content).some(
      (block) => block.kind === 'tool_result' && this.#responses.hasCall(block.toolUseId),
    );
  }

  hasPromptId(id: string | undefined): boolean {
    return id !== undefined && this.prompts.some(({ context }) => context.promptId === id);
  }

  /** The notes that the next turn takes over if this one does not count, except how this one ended. */
  takeNotes(): Note[] {
    const taken = [...this.#before.notes, ...this.#notes.filter((note) => !tellsEnd(note))];
    this.#notes = this.#notes.filter(tellsEnd);
    return taken;
  }

  addPrompt(line: UserLine): void {
    const prompt = openPrompt(line, this.#timeOf(line), this.#thread.isCopied(line));
    const { number, start } = line.location;
    if (number < this.#start.line) this.#start = { line: number, offset: start };
    this.prompts.push(prompt);
    this.#pushMessage({ role: 'user', content: prompt.content, media: prompt.media }, prompt.at);
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
    this.prompts = prompts;
    this.#lineNumbers = prompts.map(({ line }) => line);
    this.#messages = prompts.map(({ content, media }) => ({ role: 'user', content, media }));
    this.#lastMessageAt = prompts.at(-1)?.at;
    if (prompts.length === 0) this.#start = start;
  }

  /** Adds what a line of the turn says. Returns whether the line becomes part of the turn. */
  add(classified: ClassifiedLine, line: ConversationLine): boolean {
    if (line.kind === 'user' && classified.role !== 'meta') this.#responses.endRun();
    switch (classified.role) {
      case 'response':
        return this.#addResponse(classified.line);
      case 'tool-results':
        return this.#addToolResults(classified.line);
      case 'note':
        return this.#addNote(classified.line, classified.note);
      case 'bash-output':
      case 'resume':
        if (classified.role === 'resume' && classified.content.includes('cut off mid-stream'))
          this.#responses.abortLast(line.location.number);
        this.#pushMessage({ role: 'user', content: classified.content }, this.#timeOf(line));
        return classified.role === 'resume';
      case 'skill-body':
        this.#hasSkillBody ||= this.#responses.isEmpty;
        return false;
      case 'meta':
      case 'attached-image':
        this.#addMedia(classified.line, classified.media);
        return false;
      default:
        return false;
    }
  }

  /**
   * Adds what a line says about the whole session, in which these responses are known. Returns whether it also shows what the
   * turn's last compaction used.
   */
  addSessionFacts(line: OtherLine, responses: () => readonly Response[]): boolean {
    const { facts, compaction } = addFacts(this.#thread.session, line, responses);
    this.#thread.session = facts;
    const last = this.#notes.findLastIndex(({ kind }) => kind === 'compaction');
    const note = this.#notes[last];
    if (!compaction || note?.kind !== 'compaction') return false;
    const exact = findCompactionUsage({
      before: this.#before.session.account,
      now: line.fields.modelUsage ?? {},
      responses: this.responses,
      notes: this.#notes,
      entrypoint: this.prompts[0]?.context.entrypoint,
    });
    this.#notes[last] = { ...note, cost: { tokens: compaction, line: line.location.number, exact } };
    return true;
  }

  /** Makes a line part of the turn. */
  claim({ location, at }: ChainLine): void {
    this.#lineNumbers.push(location.number);
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
    this.#thread.session = addResponses(this.#thread.session, this.#responses.collect());
    for (const { uuid } of this.prompts) if (uuid !== undefined) this.#thread.seen.add(uuid);
  }

  toTurn(sidechains: readonly AgentThread[]): Turn {
    const [first, ...more] = this.prompts;
    if (!first || this.number === undefined) throw new Error('the turn does not count');
    const responses = this.#responses.collect();
    return {
      number: this.number,
      countsFrom: this.#countsFrom,
      key: first.uuid ?? `${this.#thread.start.sessionId}:${first.line}`,
      start: this.#start,
      inheritedTime: this.#inheritedTime,
      sessionBefore: this.#before.session,
      session: this.#session,
      context: first.context,
      skill: this.#hasSkillBody ? this.prompts.findLast(({ command }) => command !== undefined)?.command : undefined,
      prompts: [first, ...more],
      responses,
      notes: [...this.#before.notes, ...this.#notes],
      sidechains,
      copied: first.copied || (this.#hasCopiedResponse && responses.length === 0),
      lineNumbers: [...this.#lineNumbers],
    };
  }

  #addResponse(line: AssistantLine): boolean {
    const { message, requestRef, isApiErrorMessage, apiErrorStatus: status } = line.fields;
    if (this.prompts.length === 0) return false;
    if (this.#thread.isCopied(line)) {
      this.#hasCopiedResponse = true;
      return true;
    }
    if (isApiErrorMessage)
      return this.#addNote(line, { kind: 'api-error', content: extractText(line.content), status });
    if (message?.model === '<synthetic>') return false;
    return this.#responses.add(line, this.#timeOf(line), () => ({
      answered: this.#messages.splice(0),
      answeredAt: this.#lastMessageAt,
      request: this.#thread.findRequest(requestRef),
    }));
  }

  #addToolResults(line: UserLine): boolean {
    const at = this.#timeOf(line);
    const { toolUseResult, toolDenialKind: denied, promptId } = line.fields;
    // Some failures are reported only next to the result, as a text.
    const isFailure = typeof toolUseResult === 'string' && toolUseResult.startsWith('Error: ');
    const details = typeof toolUseResult === 'object' ? toolUseResult : undefined;
    // A process that resumes a session takes a call without a result to be interrupted, even if it still runs in another one.
    const isAssumed = this.prompts.every(
      ({ context: { promptId: id } }) => id !== undefined && id !== (promptId ?? id),
    );
    let isPart = false;
    for (const block of parseBlocks(line.content)) {
      if (block.kind !== 'tool_result') continue;
      const { toolUseId, content, isError } = block;
      const result = { content, isError: isError || isFailure, denied, details, line: line.location.number, at };
      if (!isAssumed && this.#responses.hasAssumedResult(toolUseId))
        this.#messages = this.#messages.filter(
          (message) => message.role === 'user' || message.toolCallId !== toolUseId,
        );
      if (!this.#responses.addResult(toolUseId, result, isAssumed)) continue;
      this.#pushMessage({ role: 'tool', toolCallId: toolUseId, content }, at);
      isPart = true;
    }
    return isPart;
  }

  #addNote(line: ConversationLine, note: NoteContent): boolean {
    const at = this.#timeOf(line);
    if (note.kind === 'absorbed-message' || note.kind === 'nudge')
      this.#pushMessage({ role: 'user', content: note.content, media: 'media' in note ? note.media : [] }, at);
    if (note.kind === 'stop-hook-feedback' || note.kind === 'hook-feedback' || note.kind === 'hook-context')
      this.#pushMessage({ role: 'user', content: note.content, isFromHook: true }, at);
    if (this.#thread.isRepeated(line)) return false;
    if (note.kind === 'compaction') this.#thread.session = addCompaction(this.#thread.session);
    this.#notes.push({ ...note, line: line.location.number, at, uuid: line.fields.uuid });
    return true;
  }

  /** Before the first response, images and documents belong to the prompt, or to the command in it. */
  #addMedia(line: UserLine | AttachmentLine, media: readonly MediaBlock[]): void {
    if (media.length === 0 || this.#thread.isRepeated(line)) return;
    if (this.#responses.isEmpty) this.prompts.at(-1)?.media.push(...media);
    // A tool's result can name a PDF that it has read; the PDF itself follows in a line of its own.
    else if (line.kind === 'user')
      this.#pushMessage({ role: 'tool', toolCallId: undefined, content: line.content }, this.#timeOf(line));
  }

  /** A line without a time takes that of the nearest line before it that has one. */
  #timeOf({ at }: ChainLine): number {
    if (at !== undefined) return at;
    this.#thread.lastTime ??= this.#thread.start.time();
    this.#inheritedTime ??= this.#before.time ?? this.#thread.lastTime;
    return this.#thread.lastTime;
  }

  #pushMessage(message: AnsweredMessage, at: number): void {
    this.#messages.push(message);
    this.#lastMessageAt = Math.max(this.#lastMessageAt ?? at, at);
  }

  /** Whether there is more than prompts: a response, the turn's end, or a note of one of these kinds. */
  #isAnsweredOr(...kinds: readonly Note['kind'][]): boolean {
    const isAnswered = !this.#responses.isEmpty || this.#endLine > 0 || this.#hasCopiedResponse;
    return isAnswered || this.#notes.some(({ kind }) => kinds.includes(kind));
  }
}
