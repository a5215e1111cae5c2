import type { AgentEntry } from '../../state/entry.js';
import type { AgentFile } from '../../transcript/agents/agent-files.js';
import { extractText } from '../../transcript/file/content.js';
import { readNotifiedIds } from '../../transcript/turns/notification.js';
import type { ToolCall, Turn } from '../../transcript/turns/turn.js';
import type { ExportRequest } from '../export-request.js';
import { IDLE_MS } from '../read-turns.js';

/** The last lines of an agent reach its file after the result of its call has reached the transcript. */
const LAST_LINES_MS = 2_000;

/** Decides whether an agent is done: its file may still grow after the turn that started it. */
export class Completion {
  readonly #status: ExportRequest['agents'];
  readonly #idleBefore: number;
  readonly #endedBefore: number;
  /** Calls and agents whose end the transcript has recorded, and when. */
  readonly #ended: Map<string, number>;

  constructor({ agents, closing }: ExportRequest) {
    const isLive = closing.kind === 'live';
    this.#status = agents;
    this.#ended = new Map(agents.ended);
    // A call may take long, and nobody has asked for the agent yet.
    this.#idleBefore = isLive ? 0 : Date.now() - IDLE_MS;
    this.#endedBefore = isLive ? Date.now() - LAST_LINES_MS : Number.POSITIVE_INFINITY;
  }

  get ended(): ReadonlyMap<string, number> {
    return this.#ended;
  }

  recordTurn({ prompts, notes, responses }: Turn): void {
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

  isDone(file: AgentFile, { task, call }: AgentEntry): boolean {
    const { running, sessionEnded } = this.#status;
    if (sessionEnded) return true;
    if (running.has(file.agentId) || (task !== undefined && running.has(task))) return false;
    return this.hasEnded(file, call) || this.#isIdle(file);
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
