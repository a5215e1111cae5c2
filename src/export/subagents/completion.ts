import type { AgentEntry } from '../../state/entry.js';
import type { AgentFile } from '../../transcript/agents/agent-files.js';
import { extractText } from '../../transcript/file/content.js';
import { readNotifiedIds } from '../../transcript/turns/notification.js';
import type { ToolCall, Turn } from '../../transcript/turns/turn.js';
import type { AgentStatus } from '../export-request.js';
import { IDLE_MS } from '../read-turns.js';

/** Decides whether an agent is done: its file may still grow after the turn that started it. */
export class Completion {
  readonly #status: AgentStatus;
  readonly #idleBefore = Date.now() - IDLE_MS;
  /** Calls and agents whose end the transcript has recorded. */
  readonly #ended: Set<string>;

  constructor(status: AgentStatus) {
    this.#status = status;
    this.#ended = new Set(status.ended);
  }

  get ended(): ReadonlySet<string> {
    return this.#ended;
  }

  recordTurn({ prompts, notes, responses }: Turn): void {
    // The end of a background agent, or of a workflow, is a message that names its task and its call.
    const absorbed = notes.filter((note) => note.kind === 'absorbed-message');
    for (const { content } of [...prompts, ...absorbed]) for (const id of readNotifiedIds(content)) this.#ended.add(id);
    for (const call of responses.flatMap(({ calls }) => calls))
      if (call.id !== undefined && call.result && !isAsync(call)) this.#ended.add(call.id);
  }

  recordEnded(ids: readonly string[]): void {
    for (const id of ids) this.#ended.add(id);
  }

  isDone(file: AgentFile, { task, call }: AgentEntry): boolean {
    const { running, sessionEnded } = this.#status;
    if (sessionEnded) return true;
    if (running.has(file.agentId) || (task !== undefined && running.has(task))) return false;
    return this.hasEnded(file, call) || this.#isIdle(file);
  }

  /** Whether the transcript has recorded the agent's end. */
  hasEnded(file: AgentFile, call: string | undefined): boolean {
    const endsWithCall = file.meta.requestShape !== 'background' || file.workflowRunId !== undefined;
    const hasCallEnded = call !== undefined && this.#ended.has(call);
    return this.#ended.has(file.agentId) || (endsWithCall && hasCallEnded);
  }

  /** An agent that no call started is done when its session is, or when nobody works on it any more. */
  isAbandoned(file: AgentFile): boolean {
    return this.#status.sessionEnded || this.#isIdle(file);
  }

  #isIdle({ changedAt }: AgentFile): boolean {
    return changedAt < this.#idleBefore;
  }
}

/** Whether the result of a call only says that something has been started. */
export function isAsync({ result }: ToolCall): boolean {
  const { isAsync: isMarked = false, status } = result?.details ?? {};
  return isMarked || status === 'async_launched' || extractText(result?.content).startsWith('Async agent launched');
}
