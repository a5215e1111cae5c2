import type { AssistantLine, ChainLine, RequestLine, UserLine } from '../file/line.js';
import type { LineLocation, Position } from '../file/reader.js';
import type { FindUsage, IdOwners } from './responses.js';
import type { ModelRequest, SessionFacts } from './turn.js';

/** Where reading a thread starts, and what is known from the lines before. */
export interface ThreadStart extends Position {
  /** In a subagent's thread the prompt can look like one of Claude Code's own messages, and nothing counts as copied. */
  readonly thread: 'main' | 'agent';
  readonly sessionId: string;
  readonly turnCount: number;
  readonly session: SessionFacts;
  /** The time of lines before any line that has one. */
  readonly time: () => number;
  /** Whether another session's transcript has a line, so that it is a copy here. Undefined if that transcript is gone. */
  readonly isHeldBy: (sessionId: string, uuid: string | undefined) => boolean | undefined;
  readonly findUsage?: FindUsage;
  /** Shared by the threads of one file. */
  readonly idOwners?: IdOwners;
}

/** What the turns of one thread share. */
export class ThreadContext {
  readonly start: ThreadStart;
  readonly isAgent: boolean;
  readonly idOwners: IdOwners;
  session: SessionFacts;
  /** The time of the last line that had one. */
  lastTime: number | undefined;
  /** The line of the last request. */
  lastRequestLine = 0;
  /** The uuids of the prompts of earlier turns, and of lines that must not be added twice. */
  readonly seen = new Set<string>();
  /** The sessions that lines have named beside this one. Up to 2.0 the copies of their answers name this one. */
  readonly #otherSessions = new Set<string>();
  readonly #requests = new Map<string, { readonly request: ModelRequest; readonly location: LineLocation }>();

  constructor(start: ThreadStart) {
    this.start = start;
    this.isAgent = start.thread === 'agent';
    this.idOwners = start.idOwners ?? new Map();
    this.session = start.session;
  }

  /** Whether the line was seen before, since a line can be written twice. It is seen from now on. */
  isRepeated({ fields: { uuid } }: ChainLine): boolean {
    const isRepeated = uuid !== undefined && this.seen.has(uuid);
    if (uuid !== undefined) this.seen.add(uuid);
    return isRepeated;
  }

  /** Whether the line is history that another session wrote. */
  isCopied(line: UserLine | AssistantLine): boolean {
    return this.findOriginal(line) !== undefined;
  }

  /**
   * Returns `there` if another session's transcript has the line, and `gone` for a prompt that names a session without a transcript.
   * Nobody else has the answers then, so they stay in their turn.
   */
  findOriginal(line: UserLine | AssistantLine): 'there' | 'gone' | undefined {
    const { forkedFrom, sessionId, uuid } = line.fields;
    const asked = this.#askOthers(line);
    if (asked.some(({ isHeld }) => isHeld)) return 'there';
    if (line.kind !== 'user' || uuid === undefined) return undefined;
    const named = forkedFrom?.sessionId ?? sessionId;
    return asked.some(({ id, isHeld }) => isHeld === undefined && id === named) ? 'gone' : undefined;
  }

  /** Whether another session has the response of which this is a line, though not this line. */
  isResponseElsewhere({ fields: { message } }: AssistantLine): boolean {
    const { id } = message ?? {};
    const isHeld = (session: string) => this.start.isHeldBy(session, id) === true;
    return !this.isAgent && id !== undefined && [...this.#otherSessions].some(isHeld);
  }

  #askOthers({ fields }: UserLine | AssistantLine): { id: string; isHeld: boolean | undefined }[] {
    if (this.isAgent) return [];
    const { forkedFrom, sessionId, uuid } = fields;
    const requestedBy = 'requestSessionId' in fields ? fields.requestSessionId : undefined;
    const all = [forkedFrom?.sessionId, sessionId, requestedBy];
    const named = all.filter((id) => id !== undefined).filter((id) => id !== this.start.sessionId);
    for (const id of named) this.#otherSessions.add(id);
    const original = forkedFrom?.messageUuid ?? uuid;
    const asked = original === undefined ? named : [...this.#otherSessions];
    return asked.map((id) => ({ id, isHeld: this.start.isHeldBy(id, original) }));
  }

  addRequest({ fields: { id, params }, at, location }: RequestLine): void {
    this.lastRequestLine = location.number;
    if (id !== undefined) this.#requests.set(id, { request: { id, at, params, line: location.number }, location });
  }

  findRequest(id: string | undefined): ModelRequest | undefined {
    return id === undefined ? undefined : this.#requests.get(id)?.request;
  }

  /** Where the requests are from a line on, and where this one is: a request can come before the response that it follows. */
  requestsFrom(lineNumber: number, request: ModelRequest | undefined): LineLocation[] {
    const all = [...this.#requests.values()].map(({ location }) => location);
    return all.filter(({ number }) => number >= lineNumber || number === request?.line);
  }

  forgetRequestsBefore(lineNumber: number): void {
    for (const [id, { location }] of this.#requests) if (location.number < lineNumber) this.#requests.delete(id);
  }
}
