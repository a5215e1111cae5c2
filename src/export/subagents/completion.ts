import type { AgentEntry } from '../../state/entry.js';
import type { Consent } from '../../state/facts.js';
import type { AgentFile } from '../../transcript/agents/agent-files.js';
import { extractText } from '../../transcript/file/content.js';
import { readNotifiedIds } from '../../transcript/turns/notification.js';
import type { ToolCall, Turn } from '../../transcript/turns/turn.js';
import type { ExportRequest } from '../export-request.js';
import { type AgentWhen, isDone, LAST_LINES_MS } from '../over.js';
import { IDLE_MS } from '../read-turns.js';

/** Knows whether a session's agents are done. */
export class Completion {
  readonly #running: ReadonlySet<string>;
  readonly #when: AgentWhen;
  readonly #endedBefore: number;
  /** Calls, commands and agents whose end the transcript has recorded, and when. */
  readonly #ended: Map<string, number>;

  constructor({ occasion, continued }: ExportRequest, { stops, endedAt }: Consent) {
    const isLive = occasion === 'live';
    this.#ended = new Map(continued?.ended);
    const { running = [], at = 0 } = continued ?? stops.at(-1) ?? {};
    // A call may take long, and nobody has asked for the agent yet.
    const idleBefore = isLive ? 0 : Date.now() - IDLE_MS;
    const sessionEndedAt = continued ? continued.endedAt : endedAt;
    this.#when = { sessionEndedAt, idleBefore, isRecovered: occasion !== 'event' };
    // An old list does not say what runs now.
    this.#running = new Set(at < idleBefore ? [] : running);
    this.#endedBefore = isLive ? Date.now() - LAST_LINES_MS : Number.POSITIVE_INFINITY;
  }

  get ended(): ReadonlyMap<string, number> {
    return this.#ended;
  }

  recordTurn({ key, prompts, notes, responses }: Turn): void {
    for (const { kind, at } of notes) if (kind === 'command-result') this.#ended.set(key, at);
    // The end of a background agent, or of a workflow, is a message that names its task and its call.
    const absorbed = notes.filter((note) => note.kind === 'absorbed-message');
    for (const { content, at } of [...prompts, ...absorbed])
      for (const id of readNotifiedIds(content)) this.#ended.set(id, at);
    for (const call of responses.flatMap(({ calls }) => calls))
      if (call.id !== undefined && call.result && !isAsync(call)) this.#ended.set(call.id, call.result.at);
  }

  recordEnded(ids: readonly string[]): void {
    for (const id of ids) if (!this.#ended.has(id)) this.#ended.set(id, 0);
  }

  isDone(file: AgentFile, { task = '', call }: AgentEntry): boolean {
    const isListed = this.#running.has(file.agentId) || this.#running.has(task);
    return isDone({ changedAt: file.changedAt, hasEnded: this.hasEnded(file, call), isListed }, this.#when);
  }

  /** Whether the transcript has recorded the agent's end. */
  hasEnded(file: AgentFile, call: string | undefined): boolean {
    const endsWithCall = file.meta.requestShape !== 'background' || file.workflowRunId !== undefined;
    return this.#isEnded(file.agentId) || (endsWithCall && this.#isEnded(call));
  }

  #isEnded(id: string | undefined): boolean {
    const endedAt = id === undefined ? undefined : this.#ended.get(id);
    return endedAt !== undefined && endedAt < this.#endedBefore;
  }

  /** An agent that no call started is done when its session is, or when nobody works on it any more. */
  isAbandoned({ changedAt }: AgentFile): boolean {
    return isDone({ changedAt, hasEnded: false, isListed: false }, this.#when);
  }
}

/** Whether the result of a call only says that something has been started. */
export function isAsync({ result }: ToolCall): boolean {
  const { isAsync: isMarked = false, status } = result?.details ?? {};
  return isMarked || status === 'async_launched' || extractText(result?.content).startsWith('Async agent launched');
}
