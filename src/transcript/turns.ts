import { blocksOf, textOf } from './content.js';
import type { Line } from './line.js';
import { type Note, type Noted, noteOf, toNote } from './notes.js';
import { type Answered, type ModelRequest, type Response, ResponseCollector } from './responses.js';
import { roleOf, type Trigger, triggerOf } from './user-line.js';

type UserLine = Extract<Line, { kind: 'user' }>;
type AssistantLine = Extract<Line, { kind: 'assistant' }>;
type SystemLine = Extract<Line, { kind: 'system' }>;
type AttachmentLine = Extract<Line, { kind: 'attachment' }>;
type ChainLine = UserLine | AssistantLine | SystemLine | AttachmentLine;

export interface Prompt {
  readonly uuid: string | undefined;
  readonly line: number;
  readonly at: number;
  readonly content: string;
}

/** What was so when the prompt was given; it holds for the whole turn and never changes. */
export interface PromptContext {
  readonly trigger: Trigger;
  readonly promptId: string | undefined;
  readonly cwd: string | undefined;
  readonly gitBranch: string | undefined;
  readonly version: string | undefined;
  readonly slug: string | undefined;
  readonly permissionMode: string | undefined;
  readonly entrypoint: string | undefined;
}

/** A place to read from: the number of a line and its first byte. */
export interface Position {
  readonly line: number;
  readonly offset: number;
}

export interface Turn {
  readonly number: number;
  /** The first line that may belong to it: a request can stand before the prompt that it sends. */
  readonly start: Position;
  /** The time that its lines without one take over from the lines before; undefined where none needs it. */
  readonly inheritedTime: number | undefined;
  readonly context: PromptContext;
  /** At least one; more where several queued prompts were answered together. */
  readonly prompts: readonly [Prompt, ...Prompt[]];
  readonly responses: readonly Response[];
  readonly notes: readonly Note[];
  /** History that another session has too: it counts here, and is exported there. */
  readonly copied: boolean;
  /** The 1-based numbers of the lines that made the turn, as they stand in the file. */
  readonly lineOffsets: readonly number[];
}

export interface GroupingStart extends Position {
  readonly sessionId: string;
  /** How many turns came before. */
  readonly turnCount: number;
  /** The time of lines that stand before any line that has one. */
  readonly time: () => number;
}

interface OpenPrompt extends Prompt {
  readonly context: PromptContext;
  readonly copied: boolean;
}

interface OpenTurn {
  start: Position;
  time: number | undefined;
  inherits: boolean;
  prompts: OpenPrompt[];
  /** Where each of them stands in `prompts`, by its uuid. */
  promptPlaces: Map<string, number>;
  readonly collector: ResponseCollector;
  readonly notes: Note[];
  /** Notes from before its prompt: of a turn that was never answered. */
  readonly carried: readonly Note[];
  /** What was said to the model and no response has taken up yet. */
  answered: Answered[];
  answeredAt: number | undefined;
  /** The harness says that it ended, with or without an answer. */
  over: boolean;
  hasCopiedResponse: boolean;
  lineOffsets: number[];
}

/** Groups lines into turns: a turn starts at a prompt and ends before the next one. */
export class TurnGrouper {
  readonly #start: GroupingStart;
  readonly #requests = new Map<string, ModelRequest & { line: number }>();
  readonly #parents = new Map<string, string | undefined>();
  #turnCount: number;
  #lastTime: number | undefined;
  /** Behind the last line that belongs to a turn, or to a prompt that was dropped. */
  #behind: Position;
  #turn: OpenTurn;
  /** A command line, as long as it is open whether its output follows or an answer. */
  #command: UserLine | undefined;

  constructor(start: GroupingStart) {
    this.#start = start;
    this.#turnCount = start.turnCount;
    this.#behind = { line: start.line, offset: start.offset };
    this.#turn = this.#newTurn([]);
  }

  /** Takes the next line; gives the turn that it ends, if it ends one that counts. */
  push(line: Line): Turn | undefined {
    switch (line.kind) {
      case 'user':
        return line.fields.isSidechain ? undefined : this.#onUser(line);
      case 'assistant':
        return line.fields.isSidechain || line.fields.isMeta ? undefined : this.#onAssistant(line);
      case 'system':
        if (!line.fields.isSidechain) this.#onSystem(line);
        return undefined;
      case 'attachment':
        if (!line.fields.isSidechain) this.#onAttachment(line);
        return undefined;
      case 'request': {
        const { id, params } = line.fields;
        if (id !== undefined) this.#requests.set(id, { at: line.at, params, line: line.place.number });
        return undefined;
      }
      default:
        return undefined;
    }
  }

  /** The turn that no other has followed, as far as it has come; none where nothing has been answered yet. */
  open(): Turn | undefined {
    return counts(this.#turn) ? this.#toTurn(this.#turn) : undefined;
  }

  #onUser(line: UserLine): Turn | undefined {
    this.#remember(line);
    this.#turn.collector.breakRun();
    switch (roleOf(line)) {
      case 'prompt':
        return this.#settleCommand() ?? this.#onPrompt(line);
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
      case 'interrupt':
        this.#addNote(line, { kind: 'interrupt', content: textOf(line.content) });
        return undefined;
      case 'stop-hook-feedback': {
        const content = textOf(line.content);
        this.#addNote(line, { kind: 'stop-hook-feedback', content });
        this.#answerNext({ role: 'user', content }, this.#time(line));
        return undefined;
      }
      case 'nudge':
        this.#turn.over = true;
        return undefined;
      default:
        return undefined;
    }
  }

  #onPrompt(line: UserLine): Turn | undefined {
    const { fields, place } = line;
    const ended = isUnanswered(this.#turn) ? undefined : this.#endTurn();
    if (!ended) this.#dropRetracted(fields.parentUuid);
    const { promptId, cwd, gitBranch, version, slug, permissionMode, entrypoint } = fields;
    const at = this.#time(line);
    const content = textOf(line.content);
    if (fields.uuid !== undefined) this.#turn.promptPlaces.set(fields.uuid, this.#turn.prompts.length);
    this.#turn.prompts.push({
      uuid: fields.uuid,
      line: place.number,
      at,
      content,
      context: { trigger: triggerOf(line), promptId, cwd, gitBranch, version, slug, permissionMode, entrypoint },
      copied: this.#isForeign(line),
    });
    this.#answerNext({ role: 'user', content }, at);
    this.#own(line);
    return ended;
  }

  /** A prompt that the next one does not descend from was taken back before it was answered. */
  #dropRetracted(parentUuid: string | undefined): void {
    const turn = this.#turn;
    const ancestor = this.#nearestPrompt(parentUuid);
    const kept = turn.prompts.slice(0, ancestor + 1);
    if (kept.length === turn.prompts.length) return;
    turn.prompts = kept;
    turn.promptPlaces = new Map(kept.flatMap(({ uuid }, place) => (uuid === undefined ? [] : [[uuid, place]])));
    turn.lineOffsets = kept.map(({ line }) => line);
    turn.answered = kept.map(({ content }) => ({ role: 'user', content }));
    turn.answeredAt = kept.at(-1)?.at;
    if (kept.length === 0) turn.start = this.#behind;
  }

  /** The place of the prompt from which a line descends, or -1; those before it are its own ancestors. */
  #nearestPrompt(parentUuid: string | undefined): number {
    let uuid = parentUuid;
    for (let steps = 0; uuid !== undefined && steps <= this.#parents.size; steps += 1) {
      const place = this.#turn.promptPlaces.get(uuid);
      if (place !== undefined) return place;
      uuid = this.#parents.get(uuid);
    }
    return -1;
  }

  #onToolResults(line: UserLine): void {
    const at = this.#time(line);
    let isOwn = false;
    for (const block of blocksOf(line.content)) {
      if (block.kind !== 'tool_result') continue;
      const { toolUseId, content, isError } = block;
      const result = { content, isError, denied: line.fields.toolDenialKind, line: line.place.number, at };
      if (!this.#turn.collector.addResult(toolUseId, result)) continue;
      this.#answerNext({ role: 'tool', toolCallId: toolUseId, content }, at);
      isOwn = true;
    }
    if (isOwn) this.#own(line);
  }

  #onAssistant(line: AssistantLine): Turn | undefined {
    const { fields } = line;
    this.#remember(line);
    const ended = this.#settleCommand();
    if (this.#turn.prompts.length === 0) return ended;
    const note = noteOf(line);
    if (this.#isForeign(line) || this.#isOther(fields.requestSessionId)) {
      this.#turn.hasCopiedResponse = true;
      this.#own(line);
    } else if (note) {
      this.#addNote(line, note);
    } else if (fields.message?.model !== '<synthetic>') {
      this.#turn.collector.add(line, this.#time(line), () => this.#takeAnswered(fields.requestRef));
      this.#own(line);
    }
    return ended;
  }

  #takeAnswered(requestRef: string | undefined) {
    const { answered, answeredAt } = this.#turn;
    this.#turn.answered = [];
    return { answered, answeredAt, request: requestRef === undefined ? undefined : this.#requests.get(requestRef) };
  }

  #onSystem(line: SystemLine): void {
    const { subtype, content } = line.fields;
    this.#remember(line);
    if (subtype === 'stop_hook_summary' || subtype === 'turn_duration') this.#turn.over = true;
    if (subtype === 'local_command' && textOf(content).startsWith('<local-command-')) this.#command = undefined;
    const note = noteOf(line);
    if (note) this.#addNote(line, note);
  }

  #onAttachment(line: AttachmentLine): void {
    this.#remember(line);
    const note = noteOf(line);
    if (!note) return;
    this.#addNote(line, note);
    if (note.kind === 'absorbed-message') this.#answerNext({ role: 'user', content: note.content }, this.#time(line));
  }

  /** A command that is followed by anything but its output was one of the user's own: a prompt. */
  #settleCommand(): Turn | undefined {
    const command = this.#command;
    this.#command = undefined;
    return command && this.#onPrompt(command);
  }

  #addNote(line: ChainLine, noted: Noted<Note>): void {
    this.#turn.notes.push(toNote(noted, line, this.#time(line)));
    this.#own(line);
  }

  #answerNext(answered: Answered, at: number): void {
    this.#turn.answered.push(answered);
    this.#turn.answeredAt = Math.max(this.#turn.answeredAt ?? at, at);
  }

  #remember({ fields, at }: ChainLine): void {
    if (fields.uuid !== undefined) this.#parents.set(fields.uuid, fields.parentUuid);
    this.#lastTime = at ?? this.#lastTime;
  }

  /** A line without a time takes that of the nearest line before it that has one. */
  #time({ at }: ChainLine): number {
    if (at !== undefined) return at;
    this.#lastTime ??= this.#start.time();
    this.#turn.time ??= this.#lastTime;
    this.#turn.inherits = true;
    return this.#lastTime;
  }

  #own({ place }: ChainLine): void {
    this.#turn.lineOffsets.push(place.number);
    this.#behind = { line: place.number + 1, offset: place.end };
  }

  #isForeign({ fields }: UserLine | AssistantLine): boolean {
    return (fields.forkedFrom !== undefined && fields.forkedFrom !== null) || this.#isOther(fields.sessionId);
  }

  #isOther(sessionId: string | undefined): boolean {
    return sessionId !== undefined && sessionId !== this.#start.sessionId;
  }

  #endTurn(): Turn | undefined {
    const turn = this.#turn;
    const ended = counts(turn) ? this.#toTurn(turn) : undefined;
    if (ended) this.#turnCount += 1;
    this.#parents.clear();
    for (const [id, { line }] of this.#requests) if (line < this.#behind.line) this.#requests.delete(id);
    this.#turn = this.#newTurn(ended ? [] : [...turn.carried, ...turn.notes.filter(outlivesItsTurn)]);
    return ended;
  }

  #newTurn(carried: readonly Note[]): OpenTurn {
    return {
      start: this.#behind,
      time: this.#lastTime,
      inherits: false,
      prompts: [],
      promptPlaces: new Map(),
      collector: new ResponseCollector(),
      notes: [],
      carried,
      answered: [],
      answeredAt: undefined,
      over: false,
      hasCopiedResponse: false,
      lineOffsets: [],
    };
  }

  #toTurn(turn: OpenTurn): Turn {
    const [first, ...more] = turn.prompts;
    if (!first) throw new Error('a turn has a prompt');
    const responses = turn.collector.responses();
    return {
      number: this.#turnCount + 1,
      start: turn.start,
      inheritedTime: turn.inherits ? turn.time : undefined,
      context: first.context,
      prompts: [first, ...more],
      responses,
      notes: [...turn.carried, ...turn.notes],
      copied: first.copied || (turn.hasCopiedResponse && responses.length === 0),
      lineOffsets: turn.lineOffsets,
    };
  }
}

/** No more than prompts yet: the next prompt joins them. */
function isUnanswered({ collector, notes, over, hasCopiedResponse }: OpenTurn): boolean {
  const parted = notes.some(({ kind }) => kind === 'api-error' || kind === 'interrupt' || kind === 'compaction');
  return collector.isEmpty && !over && !hasCopiedResponse && !parted;
}

/** A turn without a response is not exported; but one may be over without any: an empty answer writes no line. */
function counts({ prompts, collector, notes, over, hasCopiedResponse }: OpenTurn): boolean {
  const isAnswered = !collector.isEmpty || notes.some(({ kind }) => kind === 'api-error');
  return prompts.length > 0 && (isAnswered || over || hasCopiedResponse);
}

/** That a prompt was interrupted before it was answered says nothing of the turn that comes after it. */
function outlivesItsTurn({ kind }: Note): boolean {
  return kind !== 'interrupt' && kind !== 'max-turns';
}
