import { buildAgent, buildLostAgent, subagentTypeOf, toolSpanOf } from './observations/agents.js';
import { type Fit, fitting } from './observations/limits.js';
import type { Observation, Trace } from './observations/model.js';
import { type BuildOptions, toTrace, traceOfAgent } from './observations/trace.js';
import type { AgentEntry, Entry } from './state/store.js';
import { textOf } from './transcript/content.js';
import type { ToolCall } from './transcript/responses.js';
import {
  type AgentFile,
  agentFilesBeside,
  agentFilesOf,
  olderAgentFile,
  readAgent,
  sessionOfAgent,
} from './transcript/subagents.js';
import type { AgentThread, Turn } from './transcript/turn.js';

/** Something of a subagent that is to be sent, and what is true of the state then. */
export interface AgentItem {
  readonly observation: Observation;
  readonly change: Partial<Entry>;
}

/** What the event tells of a session's subagents. */
export interface AgentStatus {
  /** Agents and workflows that Claude Code says are at work. */
  readonly running: ReadonlySet<string>;
  /** The session is over: what its agents have written is all there will be. */
  readonly areOver: boolean;
  /** When a file was last changed that nobody works on any more, in ms since 1970. */
  readonly idleBefore: number;
}

/**
 * The subagents of a session: which call started each, whether it is done, and what it has that was not sent yet. One
 * may end long after its turn, so the state keeps where it hangs.
 */
export class Subagents {
  readonly #transcriptPath: string;
  readonly #status: AgentStatus;
  readonly #options: BuildOptions;
  readonly #limits: { readonly maxChars: number; readonly fit: Fit };
  readonly #entries: Map<string, AgentEntry>;
  readonly #calls = new Map<string, { trace: Trace; call: ToolCall }>();
  /** Calls and agents whose end has been told. */
  readonly #ended = new Set<string>();
  #listed: AgentFile[] | undefined;

  constructor(transcriptPath: string, known: Entry['agents'], status: AgentStatus, options: BuildOptions) {
    this.#transcriptPath = transcriptPath;
    this.#status = status;
    this.#options = options;
    this.#limits = { maxChars: options.maxChars, fit: fitting(options.redact) };
    const entries = Object.entries(known ?? {}).filter(
      (entry): entry is [string, AgentEntry] => entry[1] !== undefined,
    );
    this.#entries = new Map(entries);
  }

  /** Takes note of a turn's calls, and of the ends that it tells of; gives the agents that it started. */
  see(turn: Turn, trace: Trace): string[] {
    const absorbed = turn.notes.flatMap((note) => (note.kind === 'absorbed-message' ? [note.content] : []));
    for (const content of [...turn.prompts.map((prompt) => prompt.content), ...absorbed])
      this.#readNotification(content);
    const started: string[] = [];
    for (const call of turn.responses.flatMap(({ calls }) => calls)) {
      if (call.id === undefined) continue;
      this.#calls.set(call.id, { trace, call });
      if (call.result && !isAsync(call)) this.#ended.add(call.id);
      const { agentId, runId } = call.result?.details ?? {};
      if (agentId !== undefined) started.push(...this.#place(agentId, call.id));
      if (runId !== undefined) started.push(...this.#place(workflowKey(runId), call.id));
    }
    for (const file of this.#files()) {
      if (this.#entries.has(file.agentId)) continue;
      const { toolUseId } = file.meta;
      if (toolUseId !== undefined) started.push(...this.#place(file.agentId, toolUseId));
    }
    return started;
  }

  /** What the state is to keep of agents, as far as they have come. */
  kept(agentIds: readonly string[]): Partial<Entry> {
    const entries = agentIds.flatMap((agentId) => {
      const entry = this.#entries.get(agentId);
      return entry ? [[agentId, entry] as const] : [];
    });
    return entries.length > 0 ? { agents: Object.fromEntries(entries) } : {};
  }

  /** What the results of a turn's calls tell of agents whose files are gone. */
  lost(turn: Turn, trace: Trace): Observation[] {
    const files = this.#files();
    return turn.responses.flatMap(({ calls }) =>
      calls.flatMap((call) => {
        const agentId = call.result?.details?.agentId;
        if (call.id === undefined || isAsync(call) || files.some((file) => file.agentId === agentId)) return [];
        return buildLostAgent(call, { trace, parentId: toolSpanOf(trace, call.id) }, this.#limits) ?? [];
      }),
    );
  }

  /** What the agents that are done have that was not sent, those that they started in turn included. */
  due(): AgentItem[] {
    const items: AgentItem[] = [];
    for (let more = this.#dueNow(); more.length > 0; more = this.#dueNow()) items.push(...more);
    return items;
  }

  /** Those that no call started, each with a trace of its own, once nobody works on them any more. */
  unplaced(): AgentItem[] {
    const beside = this.#status.areOver
      ? agentFilesBeside(this.#transcriptPath).filter((file) => sessionOfAgent(file) === this.#options.sessionId)
      : [];
    return [...this.#files(), ...beside].flatMap((file) => {
      const isPlaced = this.#entries.has(file.agentId) || this.#workflowOf(file) !== undefined;
      if (isPlaced || !(this.#status.areOver || this.#isIdle(file))) return [];
      const thread = readAgent(file, this.#options.sessionId);
      if (!thread) return [];
      const { agentType, description } = file.meta;
      const trace = traceOfAgent(thread, agentType, this.#options);
      const place = { trace: trace.id, trace_name: trace.name, trace_metadata: trace.metadata };
      const entry = { ...place, last_line: 0, type: agentType, description };
      this.#entries.set(file.agentId, entry);
      return this.#itemsOf(file, thread, entry);
    });
  }

  #dueNow(): AgentItem[] {
    return this.#files().flatMap((file) => {
      const workflow = this.#workflowOf(file);
      const entry = this.#entries.get(file.agentId) ?? (workflow && { ...workflow, type: file.meta.agentType });
      if (!entry || entry.bytes === file.bytes || !this.#isDone(file, entry)) return [];
      const thread = readAgent(file, this.#options.sessionId);
      return thread ? this.#itemsOf(file, thread, entry) : [];
    });
  }

  #itemsOf(file: AgentFile, thread: AgentThread, entry: AgentEntry): AgentItem[] {
    const { agentId, bytes, meta } = file;
    const { last_line: lastLine, sent_line: sentLine = lastLine, background = false, parent } = entry;
    const { trace_tags: tags = this.#options.tags } = entry;
    const trace = toTrace(entry.trace, entry.trace_name, entry.trace_metadata, { ...this.#options, tags });
    const type = meta.agentType ?? entry.type;
    const agent = { thread, type, description: meta.description ?? entry.description, isBackground: background };
    const built = buildAgent(agent, { trace, parentId: parent }, this.#limits);
    const started = thread.turns.flatMap((turn) => this.see(turn, trace));
    const last = built.agent.line;
    const done = { ...entry, last_line: last, sent_line: last, bytes };
    this.#entries.set(agentId, done);
    if (last <= lastLine) return [];
    const news = built.children.filter(({ line }) => line > sentLine);
    return [
      ...news.map((observation, place) => ({
        observation,
        change:
          news[place + 1]?.line === observation.line
            ? {}
            : { agents: { [agentId]: { ...entry, sent_line: observation.line } } },
      })),
      { observation: built.agent, change: this.kept([...started, agentId]) },
    ];
  }

  /** Hangs an agent, or a workflow, below the call that started it. */
  #place(key: string, callId: string): string[] {
    const known = this.#calls.get(callId);
    if (!known || this.#entries.has(key)) return [];
    const { trace, call } = known;
    const { agentType, description, taskId } = call.result?.details ?? {};
    const entry = {
      last_line: 0,
      trace: trace.id,
      trace_name: trace.name,
      trace_metadata: trace.metadata,
      trace_tags: [...trace.tags],
      parent: toolSpanOf(trace, callId),
      call: callId,
      task: taskId,
      type: agentType ?? subagentTypeOf(call),
      description,
      background: isAsync(call),
    };
    this.#entries.set(key, entry);
    return [key];
  }

  #isDone(file: AgentFile, entry: AgentEntry): boolean {
    const { running, areOver } = this.#status;
    if (areOver || this.#isIdle(file)) return true;
    if (running.has(file.agentId) || (entry.task !== undefined && running.has(entry.task))) return false;
    const isToldByItsCall = file.meta.requestShape !== 'background' || file.workflowRunId !== undefined;
    const isCallOver = entry.call !== undefined && this.#ended.has(entry.call);
    return this.#ended.has(file.agentId) || (isToldByItsCall && isCallOver);
  }

  #isIdle({ changedAt }: AgentFile): boolean {
    return changedAt < this.#status.idleBefore;
  }

  #workflowOf({ workflowRunId }: AgentFile): AgentEntry | undefined {
    return workflowRunId === undefined ? undefined : this.#entries.get(workflowKey(workflowRunId));
  }

  /** The end of a background agent, or of a workflow, comes as a message that names its task and its call. */
  #readNotification(content: string): void {
    if (!content.startsWith('<task-notification>')) return;
    for (const [, id = ''] of content.matchAll(/<(?:task-id|tool-use-id)>([^<]+)</g)) this.#ended.add(id);
  }

  #files(): AgentFile[] {
    this.#listed ??= agentFilesOf(this.#transcriptPath);
    const listed = this.#listed;
    const older = [...this.#entries.keys()].flatMap((agentId) => {
      if (listed.some((file) => file.agentId === agentId) || agentId.startsWith('workflow ')) return [];
      return olderAgentFile(this.#transcriptPath, agentId) ?? [];
    });
    return [...listed, ...older];
  }
}

function workflowKey(runId: string): string {
  return `workflow ${runId}`;
}

/** Whether a call's result says no more than that something has been started. */
function isAsync({ result }: ToolCall): boolean {
  const { isAsync: isMarked = false, status } = result?.details ?? {};
  return isMarked || status === 'async_launched' || textOf(result?.content).startsWith('Async agent launched');
}
