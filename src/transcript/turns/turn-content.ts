import { extractText, type MediaBlock, parseBlocks } from '../file/content.js';
import type { AssistantLine, AttachmentLine, ChainLine, UserLine } from '../file/line.js';
import type { Position } from '../file/reader.js';
import type { ClassifiedLine, ConversationLine } from './classify-line.js';
import { parseHookRun } from './hook-message.js';
import { OpenNotes } from './open-notes.js';
import { asCommand, type OpenPrompt, openPrompt } from './prompt.js';
import { ResponseCollector } from './responses.js';
import { addNote } from './session-facts.js';
import type { ThreadContext } from './thread-context.js';
import type { AnsweredMessage, HookRun, Note, NoteContent } from './turn.js';
import { WaitingMessages } from './waiting-messages.js';

/** What the lines of a turn contain that is still open: prompts, responses, notes, and what the model has not answered yet. */
export class TurnContent {
  prompts: OpenPrompt[] = [];
  readonly responses: ResponseCollector;
  readonly notes: OpenNotes;
  readonly messages = new WaitingMessages();
  hooks: HookRun[] = [];
  /** The time that lines without one take from the lines before the turn; undefined if none of them needs it. */
  inheritedTime: number | undefined;
  hasCopiedResponse = false;
  hasSkillBody = false;
  /** Where its first response begins. */
  firstResponse: Position | undefined;
  readonly #thread: ThreadContext;
  readonly #timeBefore: number | undefined;

  constructor(thread: ThreadContext, before: { readonly time: number | undefined; readonly notes: readonly Note[] }) {
    this.#thread = thread;
    this.#timeBefore = before.time;
    this.responses = new ResponseCollector(thread.idOwners, thread.start.findUsage);
    this.notes = new OpenNotes(before.notes);
  }

  addPrompt(line: UserLine): void {
    const prompt = openPrompt(line, this.#timeOf(line), this.#thread.findOriginal(line));
    this.prompts.push(prompt);
    this.#pushPrompt(prompt);
  }

  /** Forgets all prompts but these. */
  keepPrompts(prompts: OpenPrompt[]): void {
    this.prompts = prompts;
    this.messages.clear();
    for (const prompt of prompts) this.#pushPrompt(prompt);
    this.messages.lastAt = prompts.at(-1)?.at;
  }

  dropNotesBefore(line: number): void {
    this.notes.dropBefore(line);
    this.hooks = this.hooks.filter((hook) => hook.line >= line);
  }

  #pushPrompt({ content, media, at, context: { trigger } }: OpenPrompt): void {
    this.messages.push({ role: 'user', content, media, trigger: trigger === 'human' ? undefined : trigger }, at);
  }

  /** Adds what a line of the turn says. Returns whether the line becomes part of the turn. */
  add(classified: ClassifiedLine, line: ConversationLine): boolean {
    if (line.kind === 'user' && classified.role !== 'meta') this.responses.endRun();
    const hook = parseHookRun(line);
    if (hook) this.hooks.push(hook);
    switch (classified.role) {
      case 'response':
        return this.#addResponse(classified.line);
      case 'tool-results':
        return this.#addToolResults(classified.line);
      case 'note':
        return this.#addNote(classified.line, classified.note);
      case 'bash-output':
        this.messages.push({ role: 'user', content: classified.content }, this.#timeOf(line), line.location);
        return false;
      case 'resume':
        this.#addResume(classified, line);
        return true;
      case 'changed-input':
        this.responses.changeInput(classified.changed);
        return false;
      case 'command-output':
        return this.#addCommandResult(classified.content, line);
      case 'skill-body':
        this.hasSkillBody ||= this.responses.isEmpty;
        return false;
      case 'meta':
      case 'attached-image':
        this.#addMedia(classified.line, classified.media);
        return false;
      default:
        return false;
    }
  }

  #addResponse(line: AssistantLine): boolean {
    const { message, requestRef, isApiErrorMessage, apiErrorStatus: status } = line.fields;
    if (this.prompts.length === 0) return false;
    if (this.#thread.isCopied(line)) {
      this.hasCopiedResponse = true;
      this.responses.leave(message?.id);
      return true;
    }
    if (this.#thread.isResponseElsewhere(line)) this.responses.leave(message?.id);
    if (isApiErrorMessage)
      return this.#addNote(line, { kind: 'api-error', content: extractText(line.content), status });
    if (message?.model === '<synthetic>') return false;
    const { number, start: offset } = line.location;
    return this.responses.add(line, this.#timeOf(line), () => {
      this.firstResponse ??= { line: number, offset };
      const request = this.#thread.findRequest(requestRef);
      return { ...this.messages.take(), answeredAt: this.messages.lastAt, request };
    });
  }

  #addToolResults(line: UserLine): boolean {
    const at = this.#timeOf(line);
    const { toolUseResult, toolDenialKind: denied, toolEndsTurn: endsTurn, promptId } = line.fields;
    const { permissionDecision: permission } = line.fields;
    // Some failures are reported only next to the result, as a text.
    const isFailure = typeof toolUseResult === 'string' && toolUseResult.startsWith('Error: ');
    const details = typeof toolUseResult === 'object' ? toolUseResult : undefined;
    const shared = { denied, permission, endsTurn, details, line: line.location.number, at };
    // A process that resumes a session takes a call without a result to be interrupted, even if it still runs in another one.
    const isAssumed = this.prompts.every(
      ({ context: { promptId: id } }) => id !== undefined && id !== (promptId ?? id),
    );
    let isPart = false;
    for (const block of parseBlocks(line.content)) {
      if (block.kind !== 'tool_result') continue;
      const { toolUseId, content, isError } = block;
      const result = { ...shared, content, isError: isError || isFailure };
      if (!isAssumed && this.responses.hasAssumedResult(toolUseId)) this.messages.dropResult(toolUseId);
      if (!this.responses.addResult(toolUseId, result, isAssumed)) continue;
      const toolName = this.responses.findCallName(toolUseId);
      this.messages.push({ role: 'tool', toolCallId: toolUseId, toolName, content }, at, line.location);
      isPart = true;
    }
    return isPart;
  }

  /** A command that runs as an agent is written as it was typed, and its result is the prompt's next line. */
  #addCommandResult(content: string, line: ConversationLine): boolean {
    const prompt = this.prompts.at(-1);
    const command = prompt && asCommand(prompt);
    const isNext = prompt?.uuid !== undefined && prompt.uuid === line.fields.parentUuid;
    if (!command || !isNext || !this.responses.isEmpty) return false;
    this.prompts = [...this.prompts.slice(0, -1), command];
    this.hasSkillBody = true;
    return this.#addNote(line, { kind: 'command-result', content });
  }

  #addResume({ content, after }: Extract<ClassifiedLine, { role: 'resume' }>, line: ConversationLine): void {
    if (after === 'cut') this.responses.abortLast(line.location.number);
    const message = { role: 'user', content, trigger: 'system', continuesAnswer: after !== 'refusal' } as const;
    this.messages.push(message, this.#timeOf(line), line.location);
  }

  #addNote(line: ConversationLine, note: NoteContent): boolean {
    const at = this.#timeOf(line);
    const message = toMessage(note);
    if (message) this.messages.push(message, at, line.location);
    if (note.kind === 'retry') this.messages.addRetry(line.location);
    if (note.kind === 'api-error') this.messages.dropRetries();
    if (this.#thread.isRepeated(line)) return false;
    this.#thread.session = addNote(this.#thread.session, note);
    this.notes.add({ ...note, line: line.location.number, at, uuid: line.fields.uuid });
    return true;
  }

  /** Before the first response, images and documents belong to the prompt, or to the command in it. */
  #addMedia(line: UserLine | AttachmentLine, media: readonly MediaBlock[]): void {
    if (media.length === 0 || this.#thread.isRepeated(line)) return;
    if (this.responses.isEmpty) this.prompts.at(-1)?.media.push(...media);
    // A tool's result can name a PDF that it has read; the PDF itself follows in a line of its own.
    else if (line.kind === 'user')
      this.messages.push(
        { role: 'tool', toolCallId: undefined, toolName: this.messages.lastToolName, content: line.content },
        this.#timeOf(line),
        line.location,
      );
  }

  /** A line without a time takes that of the nearest line before it that has one. */
  #timeOf({ at }: ChainLine): number {
    if (at !== undefined) return at;
    this.#thread.lastTime ??= this.#thread.start.time();
    this.inheritedTime ??= this.#timeBefore ?? this.#thread.lastTime;
    return this.#thread.lastTime;
  }
}

/** What a note told the model; undefined if it told it nothing. */
function toMessage(note: NoteContent): AnsweredMessage | undefined {
  switch (note.kind) {
    case 'absorbed-message':
      return { role: 'user', content: note.content, media: note.media };
    case 'nudge':
      return { role: 'user', content: note.content, media: [], trigger: 'system' };
    case 'stop-hook-feedback':
    case 'hook-feedback':
    case 'hook-context':
      return { role: 'user', content: note.content, isFromHook: true };
    case 'compaction':
    case 'retry':
    case 'hook-stop':
    case 'model-fallback':
    case 'interrupt':
    case 'max-turns':
    case 'api-error':
    case 'command-result':
      return undefined;
    default:
      return note satisfies never;
  }
}
