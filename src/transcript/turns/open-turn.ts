import type { MediaBlock } from '../file/content.js';
import type { LineLocation, Position } from '../file/reader.js';
import type { IdRegister } from './id-register.js';
import type { ParentChain } from './parent-chain.js';
import { ResponseCollector } from './responses.js';
import type { AgentThread, AnsweredMessage, Note, Prompt, PromptContext, SessionFacts, Turn } from './turn.js';

export interface OpenPrompt extends Prompt {
  /** Lines behind it may still bring some. */
  readonly media: MediaBlock[];
  readonly command: string | undefined;
  readonly context: PromptContext;
  readonly copied: boolean;
}

export interface TurnOpening {
  readonly start: Position;
  /** The last time that the lines before it told. */
  readonly time: number | undefined;
  readonly session: SessionFacts;
  /** Notes from before its prompt: of a turn that was never answered. */
  readonly carried: readonly Note[];
  readonly ids: IdRegister;
}

const NO_CONTEXT: PromptContext = {
  trigger: 'human',
  ide: undefined,
  promptId: undefined,
  cwd: undefined,
  gitBranch: undefined,
  version: undefined,
  slug: undefined,
  permissionMode: undefined,
  entrypoint: undefined,
};

/** A turn that still takes lines. */
export class OpenTurn {
  readonly collector: ResponseCollector;
  readonly notes: Note[] = [];
  /** The harness says that it ended, with or without an answer. */
  isOver = false;
  hasCopiedResponse = false;
  hasSkillBody = false;
  readonly #opening: TurnOpening;
  #start: Position;
  #prompts: OpenPrompt[] = [];
  /** How many prompts there are up to each of them, by its uuid: they are one another's ancestors. */
  #promptPlaces = new Map<string, number>();
  #lineOffsets: number[] = [];
  #session: SessionFacts;
  #inheritedTime: number | undefined;
  /** What was said to the model and no response has taken up yet. */
  #answered: AnsweredMessage[] = [];
  #answeredAt: number | undefined;

  constructor(opening: TurnOpening) {
    this.#opening = opening;
    this.#start = opening.start;
    this.#session = opening.session;
    this.collector = new ResponseCollector(opening.ids);
  }

  get hasPrompt(): boolean {
    return this.#prompts.length > 0;
  }

  /** No more than prompts yet: the next prompt joins them. */
  get isUnanswered(): boolean {
    const parted = this.notes.some(({ kind }) => kind === 'api-error' || kind === 'interrupt' || kind === 'compaction');
    return this.collector.isEmpty && !this.isOver && !this.hasCopiedResponse && !parted;
  }

  /** A turn without a response is not exported; but one may be over without any: an empty answer writes no line. */
  get counts(): boolean {
    const isAnswered = !this.collector.isEmpty || this.notes.some(({ kind }) => kind === 'api-error');
    return this.hasPrompt && (isAnswered || this.isOver || this.hasCopiedResponse);
  }

  /** What no later turn may bring again. */
  get promptIds(): string[] {
    return [...this.#promptPlaces.keys()];
  }

  /** Notes that go to the next turn where this one does not count; that it was interrupted says nothing of the next. */
  get outlivingNotes(): Note[] {
    const outlives = ({ kind }: Note) => kind !== 'interrupt' && kind !== 'max-turns' && kind !== 'nudge';
    return [...this.#opening.carried, ...this.notes.filter(outlives)];
  }

  hasPromptWith(uuid: string): boolean {
    return this.#promptPlaces.has(uuid);
  }

  addPrompt(prompt: OpenPrompt, offset: number): void {
    if (prompt.line < this.#start.line) this.#start = { line: prompt.line, offset };
    this.#prompts.push(prompt);
    if (prompt.uuid !== undefined) this.#promptPlaces.set(prompt.uuid, this.#prompts.length);
    this.answerNext({ role: 'user', content: prompt.content, media: prompt.media }, prompt.at);
  }

  /** A file that the newest prompt names is read for the model, behind the prompt. */
  addMedia(media: readonly MediaBlock[]): void {
    if (this.collector.isEmpty) this.#prompts.at(-1)?.media.push(...media);
  }

  /** Of a torn file the prompt may be missing; what the agent did is no less for it. */
  addLostPrompt({ number: line, start }: LineLocation, at: number): void {
    const nothing = { uuid: undefined, content: '', media: [], command: undefined, context: NO_CONTEXT, copied: false };
    this.addPrompt({ ...nothing, line, at }, start);
  }

  /**
   * A prompt that the next one does not descend from was taken back before it was answered; and a copied one that was
   * never answered is no part of a turn of our own. Where none is left the turn starts at `behind`.
   */
  dropRetracted(chain: ParentChain, next: { parentUuid: string | undefined; copied: boolean }, behind: Position): void {
    const ancestors = chain.nearestAncestor(next.parentUuid, this.#promptPlaces) ?? 0;
    const kept = this.#prompts.slice(0, ancestors).filter(({ copied }) => copied === next.copied);
    if (kept.length === this.#prompts.length) return;
    this.#prompts = kept;
    this.#promptPlaces = new Map(kept.flatMap(({ uuid }, place) => (uuid === undefined ? [] : [[uuid, place + 1]])));
    this.#lineOffsets = kept.map(({ line }) => line);
    this.#answered = kept.map(({ content, media }) => ({ role: 'user', content, media }));
    this.#answeredAt = kept.at(-1)?.at;
    if (kept.length === 0) this.#start = behind;
  }

  answerNext(answered: AnsweredMessage, at: number): void {
    this.#answered.push(answered);
    this.#answeredAt = Math.max(this.#answeredAt ?? at, at);
  }

  takeAnswered() {
    const answered = this.#answered;
    this.#answered = [];
    return { answered, answeredAt: this.#answeredAt };
  }

  /** A line of it has no time of its own and takes this one from the lines before. */
  inherit(time: number): void {
    this.#inheritedTime ??= this.#opening.time ?? time;
  }

  own(line: number, session: SessionFacts): void {
    this.#lineOffsets.push(line);
    this.#session = session;
  }

  toTurn(number: number, sessionId: string, sidechains: readonly AgentThread[]): Turn {
    const [first, ...more] = this.#prompts;
    if (!first) throw new Error('a turn has a prompt');
    const responses = this.collector.responses();
    return {
      number,
      key: first.uuid ?? `${sessionId}:${first.line}`,
      start: this.#start,
      inheritedTime: this.#inheritedTime,
      sessionBefore: this.#opening.session,
      session: this.#session,
      context: first.context,
      skill: this.hasSkillBody ? this.#prompts.findLast(({ command }) => command !== undefined)?.command : undefined,
      prompts: [first, ...more],
      responses: [...responses],
      notes: [...this.#opening.carried, ...this.notes],
      sidechains,
      copied: first.copied || (this.hasCopiedResponse && responses.length === 0),
      lineNumbers: [...this.#lineOffsets],
    };
  }
}
