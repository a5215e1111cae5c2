import { extractText, type MediaBlock, parseAttachedImage, parseBlocks, splitTextAndMedia } from '../file/content.js';
import type { Line } from '../file/line.js';
import type { Position } from '../file/reader.js';
import { IdRegister } from './id-register.js';
import { type NotableLine, type Noted, parseNote, toNote } from './notes.js';
import { OpenTurn } from './open-turn.js';
import { ParentChain } from './parent-chain.js';
import { parseBashOutput, parsePrompt } from './prompt.js';
import { SessionFactsCollector } from './session-facts.js';
import { type ChainLine, type GroupingStart, Sidechains } from './sidechains.js';
import type { ModelRequest, Note, Turn } from './turn.js';
import { classifyUserLine, parseToolOutcome, type UserLineRole } from './user-line.js';

type UserLine = Extract<Line, { kind: 'user' }>;
type AssistantLine = Extract<Line, { kind: 'assistant' }>;
type SystemLine = Extract<Line, { kind: 'system' }>;

/** Groups lines into turns: a turn starts at a prompt and ends before the next one. */
export class TurnGrouper {
  readonly #start: GroupingStart;
  readonly #requests = new Map<string, ModelRequest & { line: number }>();
  readonly #chain = new ParentChain();
  /** The prompts of earlier turns, and the lines that have been noted. */
  readonly #seen = new Set<string>();
  readonly #ids: IdRegister;
  readonly #session: SessionFactsCollector;
  #turnCount: number;
  #lastTime: number | undefined;
  /** Behind the last line that belongs to a turn, or to a prompt that was dropped. */
  #behind: Position;
  #turn: OpenTurn;
  /** A command line, as long as it is open whether its output follows or an answer. */
  #command: UserLine | undefined;
  readonly #sidechains = new Sidechains((start) => new TurnGrouper(start));

  constructor(start: GroupingStart) {
    this.#start = start;
    this.#ids = start.ids ?? new IdRegister();
    this.#session = new SessionFactsCollector(start.session);
    this.#turnCount = start.turnCount;
    this.#behind = { line: start.line, offset: start.offset };
    this.#turn = this.#newTurn([]);
  }

  /** Takes the next line; gives the turn that it ends, if it ends one that counts. */
  push(line: Line): Turn | undefined {
    if (line.kind === 'unreadable') return undefined;
    if (line.kind === 'request') {
      const { id, params } = line.fields;
      if (id !== undefined) this.#requests.set(id, { id, at: line.at, params, line: line.location.number });
      return undefined;
    }
    const { uuid, parentUuid, isSidechain } = line.fields;
    if (isSidechain && this.#start.thread === 'main') {
      const isTaken = this.#turn.hasPrompt && this.#sidechains.push(line, { ...this.#start, ids: this.#ids });
      if (isTaken) this.#own(line);
      return undefined;
    }
    if (uuid !== undefined) this.#chain.remember(uuid, parentUuid, line.location.number);
    if (line.kind === 'other') {
      this.#onOther(line);
      return undefined;
    }
    this.#lastTime = line.at ?? this.#lastTime;
    switch (line.kind) {
      case 'user':
        return this.#onUser(line);
      case 'assistant':
        return line.fields.isMeta ? undefined : this.#onAssistant(line);
      case 'system':
        return this.#onSystem(line);
      case 'attachment':
        return this.#onAttachment(line);
    }
  }

  /** The turn that no other has followed, as far as it has come; none where nothing has been answered yet. */
  open(): Turn | undefined {
    return this.#turn.counts ? this.#toTurn() : undefined;
  }

  #onOther(line: Extract<Line, { kind: 'other' }>): void {
    const { type, fields, location: place } = line;
    this.#session.see(line);
    if (type !== 'cost-state' || !fields.modelUsage) return;
    const { notes, collector } = this.#turn;
    const tokens = this.#session.settle(fields.modelUsage, place.number, collector.responses());
    const last = notes.findLastIndex(({ kind }) => kind === 'compaction');
    const note = notes[last];
    if (!tokens || note?.kind !== 'compaction') return;
    notes[last] = { ...note, cost: { tokens, line: place.number } };
    this.#own(line);
  }

  #onUser(line: UserLine): Turn | undefined {
    const role = this.#roleOf(line);
    if (role !== 'meta') this.#turn.collector.breakRun();
    switch (role) {
      case 'prompt': {
        const ended = this.#settleCommand();
        return this.#onPrompt(line) ?? ended;
      }
      case 'command': {
        const ended = this.#settleCommand();
        this.#command = line;
        return ended;
      }
      case 'command-output':
        this.#command = undefined;
        return undefined;
      case 'tool-result':
        this.#onToolResults(line);
        return undefined;
      case 'bash-output':
        this.#turn.answerNext({ role: 'user', content: parseBashOutput(extractText(line.content)) }, this.#time(line));
        return undefined;
      case 'interrupt':
      case 'stop-hook-feedback':
        return this.#onNote(line, { kind: role, content: extractText(line.content) });
      case 'nudge':
        this.#turn.isOver = true;
        return this.#onNote(line, { kind: role, content: extractText(line.content) });
      case 'resume': {
        const content = extractText(line.content);
        if (content.includes('cut off mid-stream')) this.#turn.collector.cutLast(line.location.number);
        this.#turn.answerNext({ role: 'user', content }, this.#time(line));
        this.#own(line);
        return undefined;
      }
      case 'skill-body': {
        const ended = this.#settleCommand();
        this.#turn.hasSkillBody ||= this.#turn.collector.isEmpty;
        return ended;
      }
      case 'meta':
        return this.#onMeta(line);
      default:
        return undefined;
    }
  }

  /** A skill that runs as an agent of its own has a prompt that is marked as the harness's. */
  #roleOf(line: UserLine): UserLineRole {
    const role = classifyUserLine(line);
    const isFirst = this.#turnCount === 0 && !this.#turn.hasPrompt;
    const isMeta = role === 'meta' || role === 'skill-body';
    return isMeta && this.#start.thread === 'agent' && isFirst ? 'prompt' : role;
  }

  #onPrompt(line: UserLine): Turn | undefined {
    const { fields, location: place } = line;
    const { uuid, parentUuid } = fields;
    if (uuid !== undefined && (this.#seen.has(uuid) || this.#turn.hasPromptWith(uuid))) return undefined;
    const ended = this.#turn.isUnanswered ? undefined : this.#endTurn();
    const copied = this.#isForeign(line);
    if (!ended) this.#turn.dropRetracted(this.#chain, { parentUuid, copied }, this.#behind);
    const { promptId, cwd, gitBranch, version, slug, permissionMode, entrypoint } = fields;
    const { content, media, command, ...spoken } = parsePrompt(line);
    const context = { ...spoken, promptId, cwd, gitBranch, version, slug, permissionMode, entrypoint };
    const told = { content, media: [...media], command, context };
    const prompt = { uuid, line: place.number, at: this.#time(line), ...told, copied };
    this.#turn.addPrompt(prompt, place.start);
    this.#own(line);
    return ended;
  }

  #onToolResults(line: UserLine): void {
    const at = this.#time(line);
    let isOwn = false;
    for (const block of parseBlocks(line.content)) {
      if (block.kind !== 'tool_result') continue;
      const { toolUseId, content } = block;
      const result = { ...parseToolOutcome(line, block.isError), content, line: line.location.number, at };
      if (!this.#turn.collector.addResult(toolUseId, result)) continue;
      this.#turn.answerNext({ role: 'tool', toolCallId: toolUseId, content }, at);
      isOwn = true;
    }
    if (isOwn) this.#own(line);
  }

  #onAssistant(line: AssistantLine): Turn | undefined {
    const { fields } = line;
    const ended = this.#settleCommand();
    if (!this.#turn.hasPrompt && this.#start.thread === 'agent')
      this.#turn.addLostPrompt(line.location, this.#time(line));
    if (!this.#turn.hasPrompt) return ended;
    const note = parseNote(line);
    if (this.#isForeign(line) || (this.#start.thread === 'main' && this.#isOther(fields.requestSessionId))) {
      this.#turn.hasCopiedResponse = true;
      this.#own(line);
    } else if (note) {
      this.#addNote(line, note);
    } else if (fields.message?.model !== '<synthetic>') {
      const request = fields.requestRef === undefined ? undefined : this.#requests.get(fields.requestRef);
      const opening = () => ({ ...this.#turn.takeAnswered(), request });
      if (this.#turn.collector.add(line, this.#time(line), opening)) this.#own(line);
    }
    return ended;
  }

  #onSystem(line: SystemLine): Turn | undefined {
    const { subtype, content } = line.fields;
    if (subtype === 'stop_hook_summary' || subtype === 'turn_duration') this.#turn.isOver = true;
    if (subtype === 'local_command' && extractText(content).startsWith('<local-command-')) this.#command = undefined;
    return this.#onNote(line, parseNote(line));
  }

  #onAttachment(line: Extract<Line, { kind: 'attachment' }>): Turn | undefined {
    const image = parseAttachedImage(line.fields);
    return image ? this.#addMedia(line, [image]) : this.#onNote(line, parseNote(line));
  }

  /**
   * What is pasted with a command stands in the command's body; and where a tool's result only names the PDF that it read,
   * the PDF stands behind the result.
   */
  #onMeta(line: UserLine): Turn | undefined {
    const { content } = line;
    const { media } = splitTextAndMedia(content);
    if (media.length === 0) return undefined;
    const isOfPrompt = this.#command !== undefined || this.#turn.collector.isEmpty;
    if (isOfPrompt) return this.#addMedia(line, media);
    if (!this.#isAgain(line)) this.#turn.answerNext({ role: 'tool', toolCallId: undefined, content }, this.#time(line));
    return undefined;
  }

  /** What is shown behind a prompt, or a command, is part of it. */
  #addMedia(line: NotableLine, media: readonly MediaBlock[]): Turn | undefined {
    if (this.#isAgain(line)) return undefined;
    const ended = this.#settleCommand();
    this.#turn.addMedia(media);
    return ended;
  }

  /** A line may have been written twice. */
  #isAgain({ fields: { uuid } }: NotableLine): boolean {
    const isAgain = uuid !== undefined && this.#seen.has(uuid);
    if (uuid !== undefined) this.#seen.add(uuid);
    return isAgain;
  }

  #onNote(line: NotableLine, note: Noted<Note> | undefined): Turn | undefined {
    if (!note) return undefined;
    // A compaction is what a command may have asked for; anything else shows that the command was a prompt.
    const ended = note.kind === 'compaction' ? undefined : this.#settleCommand();
    this.#addNote(line, note);
    if (note.kind === 'absorbed-message' || note.kind === 'stop-hook-feedback' || note.kind === 'nudge') {
      const media = note.kind === 'absorbed-message' ? note.media : [];
      this.#turn.answerNext({ role: 'user', content: note.content, media }, this.#time(line));
    }
    return ended;
  }

  /** A command that is followed by anything but its output was one of the user's own: a prompt. */
  #settleCommand(): Turn | undefined {
    const command = this.#command;
    this.#command = undefined;
    return command && this.#onPrompt(command);
  }

  #addNote(line: NotableLine, noted: Noted<Note>): void {
    const { notes } = this.#turn;
    if (this.#isAgain(line)) return;
    if (noted.kind === 'compaction') this.#session.addCompaction();
    notes.push(toNote(noted, line, this.#time(line)));
    this.#own(line);
  }

  /** A line without a time takes that of the nearest line before it that has one. */
  #time({ at }: ChainLine): number {
    if (at !== undefined) return at;
    this.#lastTime ??= this.#start.time();
    this.#turn.inherit(this.#lastTime);
    return this.#lastTime;
  }

  #own({ location: place }: ChainLine): void {
    this.#turn.own(place.number, this.#session.all);
    if (place.number >= this.#behind.line) this.#behind = { line: place.number + 1, offset: place.end };
  }

  #isForeign({ fields }: UserLine | AssistantLine): boolean {
    if (this.#start.thread === 'agent') return false;
    return (fields.forkedFrom !== undefined && fields.forkedFrom !== null) || this.#isOther(fields.sessionId);
  }

  #isOther(sessionId: string | undefined): boolean {
    return sessionId !== undefined && sessionId !== this.#start.sessionId;
  }

  #endTurn(): Turn | undefined {
    const turn = this.#turn;
    this.#session.addResponses(turn.collector.responses());
    const ended = turn.counts ? this.#toTurn() : undefined;
    if (ended) this.#turnCount += 1;
    for (const id of turn.promptIds) this.#seen.add(id);
    this.#chain.forgetBefore(this.#behind.line);
    for (const [id, { line }] of this.#requests) if (line < this.#behind.line) this.#requests.delete(id);
    this.#sidechains.clear();
    this.#turn = this.#newTurn(ended ? [] : turn.outlivingNotes);
    return ended;
  }

  #newTurn(carried: readonly Note[]): OpenTurn {
    return new OpenTurn({
      start: this.#behind,
      time: this.#lastTime,
      session: this.#session.all,
      ids: this.#ids,
      carried,
    });
  }

  #toTurn(): Turn {
    return this.#turn.toTurn(this.#turnCount + 1, this.#start.sessionId, this.#sidechains.threads());
  }
}
