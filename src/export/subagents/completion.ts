import type { AgentEntry } from '../../state/entry.js';
import type { Consent } from '../../state/facts.js';
import type { AgentFile } from '../../transcript/agents/agent-files.js';
import { extractText } from '../../transcript/file/content.js';
import { readNotifiedIds } from '../../transcript/turns/notification.js';
import type { ToolCall, Turn } from '../../transcript/turns/turn.js';
import type { ExportRequest } from '../export-request.js';
import { IDLE_MS } from '../read-turns.js';

/** The last lines of an agent reach its file after the result of its call has reached the transcript, or after its session's end. */
const LAST_LINES_MS = 2_000;

/** Decides whether an agent is done: its file may still grow after the turn that started it. */
export class Completion {
  readonly #running: ReadonlySet<string>;
  readonly #sessionEndedAt: number | undefined;
  /** What a Stop has listed may have ended since. */
  readonly #isRecovered: boolean;
  readonly #idleBefore: number;
  readonly #endedBefore: number;
  /** Calls and agents whose end the transcript has recorded, and when. */
  readonly #ended: Map<string, number>;

  constructor({ occasion, continued }: ExportRequest, { stops, endedAt }: Consent) {
    const isLive = occasion === 'live';
    this.#sessionEndedAt = continued ? continued.endedAt : endedAt;
    this.#ended = new Map(continued?.ended);
    this.#isRecovered = occasion !== 'event';
    const { running = [], at = 0 } = continued ?? stops.at(-1) ?? {};
    // A call may take long, and nobody has asked for the agent yet.
    this.#idleBefore = isLive ? 0 : Date.now() - IDLE_MS;
    // What was said long ago says nothing of now.
    this.#running = new Set(at < this.#idleBefore ? [] : running);
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
    if (this.#hasSessionEnded(file)) return true;
    const isListed = this.#running.has(file.agentId) || (task !== undefined && this.#running.has(task));
    if (isListed && !(this.#isRecovered && this.#isIdle(file))) return false;
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
    return this.#hasSessionEnded(file) || this.#isIdle(file);
  }

  /** An agent that has written something since goes on in another session. */
  #hasSessionEnded({ changedAt }: AgentFile): boolean {
    return this.#sessionEndedAt !== undefined && changedAt <= this.#sessionEndedAt + LAST_LINES_MS;
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
