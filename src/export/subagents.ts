import { isDeepStrictEqual } from 'node:util';
import { buildLostSubagent, buildSubagent, findAgentType } from '../observations/build/agents.js';
import { deriveSpanId } from '../observations/build/ids.js';
import { NAME_CHARS } from '../observations/build/observation.js';
import { type BuildOptions, buildAgentTrace } from '../observations/build/trace.js';
import { sanitizeText } from '../observations/content/sanitize.js';
import type { Observation, Trace } from '../observations/model.js';
import type { AgentEntry, Entry } from '../state/entry.js';
import {
  type AgentFile,
  findAgentFiles,
  findAgentSession,
  findLegacyAgentFile,
  findLegacyAgentFiles,
  readAgent,
} from '../transcript/agents/agent-files.js';
import { extractText } from '../transcript/file/content.js';
import type { Line } from '../transcript/file/line.js';
import type { AgentThread, ToolCall, Turn } from '../transcript/turns/turn.js';
import type { OptionsFor } from './build-options.js';
import { withMarks } from './marks.js';
import { keptOf, traceKept } from './stored-trace.js';

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
  /** Whether to look beside the transcript for agents that no call names: all files there are looked into. */
  readonly mayBeBeside: boolean;
  /** When a file was last changed that nobody works on any more, in ms since 1970. */
  readonly idleBefore: number;
}

interface SubagentTools {
  readonly transcriptPath: string;
  readonly known: Entry['agents'];
  /** Agents from before this moment, in ms since 1970, are not known: another exporter has seen to them. */
  readonly unknownBefore: number;
  readonly status: AgentStatus;
  readonly optionsFor: OptionsFor;
  readonly onUnreadable: (file: string, line: number, reason: string) => void;
  /** Told of each agent's file before it is read; gives who is told of its lines. */
  readonly onFile: (path: string) => (line: Line) => void;
}

/** What is kept of a call that may have started an agent. */
type Launch = Pick<AgentEntry, 'type' | 'description' | 'background' | 'task'> & { trace: Trace };

/**
 * The subagents of a session: which call started each, whether it is done, and what it has that was not sent yet. One
 * may end long after its turn, so the state keeps where it hangs.
 */
export class Subagents {
  readonly #tools: SubagentTools;
  readonly #options: BuildOptions;
  readonly #entries = new Map<string, AgentEntry>();
  /** Agents of which the state has something that cannot be read: they may have been sent. */
  readonly #leftAlone = new Set<string>();
  readonly #launches = new Map<string, Launch>();
  /** Calls and agents whose end has been told. */
  readonly #ended = new Set<string>();
  readonly #files = new Map<string, AgentFile | undefined>();
  /** What calls told of agents since they were last asked for. */
  readonly #results = new Map<string, { call: ToolCall; trace: Trace }>();
  /** Those whose files hold no answer. */
  readonly #silent = new Set<string>();
  #isListed = false;

  constructor(tools: SubagentTools) {
    const { optionsFor, known = {} } = tools;
    this.#tools = tools;
    this.#options = optionsFor(undefined);
    for (const [agentId, entry] of Object.entries(known)) {
      if (entry) this.#entries.set(agentId, entry);
      else this.#leftAlone.add(agentId);
    }
  }

  /** Takes note of a turn's calls, and of the ends that it tells of; gives the agents that it started. */
  see(turn: Turn, trace: Trace): string[] {
    for (const { content } of turn.prompts) this.#readNotification(content);
    for (const note of turn.notes) if (note.kind === 'absorbed-message') this.#readNotification(note.content);
    const started: string[] = [];
    for (const call of turn.responses.flatMap(({ calls }) => calls)) {
      if (call.id === undefined) continue;
      this.#launches.set(call.id, launchOf(call, trace, this.#options));
      if (call.result && !isAsync(call)) this.#ended.add(call.id);
      const { agentId, runId } = call.result?.details ?? {};
      if (agentId !== undefined) started.push(...this.#place(agentId, call.id));
      if (agentId !== undefined && !isAsync(call)) this.#results.set(agentId, { call, trace });
      if (runId !== undefined) started.push(...this.#place(workflowKey(runId), call.id));
    }
    for (const { agentId, meta } of this.#listed()) {
      if (meta.toolUseId !== undefined) started.push(...this.#place(agentId, meta.toolUseId));
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

  /** What the agents that are done have that was not sent, one agent after the other, and those that they started. */
  *due(): Generator<AgentItem[], void, undefined> {
    for (let isMore = true; isMore; ) {
      isMore = false;
      for (const [file, entry] of this.#doneWithNews()) {
        const thread = this.#read(file);
        this.#entries.set(file.agentId, { ...entry, bytes: file.bytes });
        if (!thread) continue;
        isMore = true;
        yield this.#itemsOf(file, thread, entry);
      }
    }
    for (const [agentId, result] of this.#results) {
      const entry = this.#entries.get(agentId);
      const file = this.#fileOf(agentId);
      // With a file that is not read yet it is still at work, or is continued.
      const isGone = file === undefined || entry?.bytes === file.bytes;
      if (entry?.last_line === 0 && !entry.lost && isGone) yield this.#lost(agentId, entry, result);
    }
    this.#results.clear();
  }

  /** An agent whose file is gone, or holds nothing, is made of what the result of its call tells. */
  #lost(agentId: string, entry: AgentEntry, { call, trace }: { call: ToolCall; trace: Trace }): AgentItem[] {
    this.#entries.set(agentId, { ...entry, lost: true });
    const observation = buildLostSubagent(call, { trace, parentId: entry.parent }, this.#options);
    return observation ? [{ observation, change: this.kept([agentId]) }] : [];
  }

  /** Those that no call started, each with a trace of its own, once nobody works on them any more. */
  *unplaced(): Generator<AgentItem[], void, undefined> {
    const { transcriptPath, status, optionsFor, unknownBefore } = this.#tools;
    const isOurs = (file: AgentFile) => findAgentSession(file) === this.#options.sessionId;
    const beside = status.mayBeBeside ? findLegacyAgentFiles(transcriptPath).filter(isOurs) : [];
    for (const file of [...this.#listed(), ...beside]) {
      const { agentId, meta, workflowRunId, changedAt } = file;
      // One that a call started hangs below that call, or waits until the call is known.
      const hasCall = meta.toolUseId !== undefined || meta.parentAgentId !== undefined || workflowRunId !== undefined;
      if (hasCall || this.#entries.has(agentId) || this.#leftAlone.has(agentId) || changedAt < unknownBefore) continue;
      if (!status.areOver && !this.#isIdle(file)) continue;
      const thread = this.#read(file);
      if (!thread) {
        this.#silent.add(agentId);
        continue;
      }
      const place = keptOf(buildAgentTrace(thread, meta.agentType, optionsFor(thread.turns[0].context.cwd)));
      yield this.#itemsOf(file, thread, { ...place, last_line: 0, type: meta.agentType });
    }
  }

  /** How long all agents' files are together, where there are any and nothing of them is left. */
  settledBytes(): number | undefined {
    const files = this.#listed();
    const isSettled = ({ agentId, bytes }: AgentFile) =>
      this.#entries.get(agentId)?.bytes === bytes || this.#silent.has(agentId) || this.#leftAlone.has(agentId);
    const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
    return total > 0 && files.every(isSettled) ? total : undefined;
  }

  *#doneWithNews(): Generator<[AgentFile, AgentEntry], void, undefined> {
    for (const agentId of this.#entries.keys()) this.#fileOf(agentId);
    for (const file of this.#listed()) {
      const entry = this.#entries.get(file.agentId) ?? this.#stepOfWorkflow(file);
      const isKnown = entry?.bytes === file.bytes || entry?.lost || this.#leftAlone.has(file.agentId);
      if (entry && !isKnown && this.#isDone(file, entry)) yield [file, entry];
    }
  }

  #itemsOf(file: AgentFile, thread: AgentThread, entry: AgentEntry): AgentItem[] {
    const { agentId, bytes, meta } = file;
    const { last_line: lastLine, sent_line: sentLine = lastLine, background = false, parent } = entry;
    const trace = traceKept(entry, this.#options);
    const description = meta.description ?? entry.description;
    const agent = { thread, type: meta.agentType ?? entry.type, description, isBackground: background };
    const built = buildSubagent(agent, { trace, parentId: parent }, this.#options);
    const started = thread.turns.flatMap((turn) => this.see(turn, trace));
    const last = built.root.line;
    this.#entries.set(agentId, { ...entry, last_line: last, sent_line: last, bytes });
    if (last <= lastLine) return [];
    const news = withMarks(
      built.children.filter(({ line }) => line > sentLine),
      (line) => ({ agents: { [agentId]: { ...entry, sent_line: line } } }),
    );
    return [
      ...news.map(({ observation, mark = {} }) => ({ observation, change: mark })),
      { observation: built.root, change: this.kept([...started, agentId]) },
    ];
  }

  /** Hangs an agent, or a workflow, below the call that started it. */
  #place(key: string, callId: string): string[] {
    const launch = this.#launches.get(callId);
    if (!launch || this.#leftAlone.has(key)) return [];
    const known = this.#entries.get(key);
    const { trace, ...details } = launch;
    if (known) {
      // The result of the call may have come after the agent was placed by its own file, and the turn may have grown.
      const news = { ...(details.background && { background: true }), trace_tags: [...trace.tags] };
      if (known.call !== callId || isDeepStrictEqual(known, { ...known, ...news })) return [];
      this.#entries.set(key, { ...known, ...news });
      return [key];
    }
    const place = { ...keptOf(trace), parent: deriveSpanId(trace, 'tool', callId), call: callId };
    this.#entries.set(key, { ...details, ...place, last_line: 0 });
    return [key];
  }

  #isDone(file: AgentFile, entry: AgentEntry): boolean {
    const { running, areOver } = this.#tools.status;
    if (areOver) return true;
    if (running.has(file.agentId) || (entry.task !== undefined && running.has(entry.task))) return false;
    const isToldByItsCall = file.meta.requestShape !== 'background' || file.workflowRunId !== undefined;
    const isCallOver = entry.call !== undefined && this.#ended.has(entry.call);
    return this.#ended.has(file.agentId) || (isToldByItsCall && isCallOver) || this.#isIdle(file);
  }

  #isIdle({ changedAt }: AgentFile): boolean {
    return changedAt < this.#tools.status.idleBefore;
  }

  #stepOfWorkflow({ workflowRunId, meta }: AgentFile): AgentEntry | undefined {
    const workflow = workflowRunId === undefined ? undefined : this.#entries.get(workflowKey(workflowRunId));
    return workflow && { ...workflow, type: meta.agentType };
  }

  /** The end of a background agent, or of a workflow, comes as a message that names its task and its call. */
  #readNotification(content: string): void {
    if (!content.startsWith('<task-notification>')) return;
    for (const [, id = ''] of content.matchAll(/<(?:task-id|tool-use-id)>([^<]+)</g)) this.#ended.add(id);
  }

  #read(file: AgentFile): AgentThread | undefined {
    const { onUnreadable, onFile } = this.#tools;
    return readAgent(file, (line, reason) => onUnreadable(file.path, line, reason), onFile(file.path));
  }

  #listed(): AgentFile[] {
    if (!this.#isListed)
      for (const file of findAgentFiles(this.#tools.transcriptPath)) this.#files.set(file.agentId, file);
    this.#isListed = true;
    return [...this.#files.values()].filter((file) => file !== undefined);
  }

  #fileOf(agentId: string): AgentFile | undefined {
    this.#listed();
    if (!this.#files.has(agentId)) this.#files.set(agentId, findLegacyAgentFile(this.#tools.transcriptPath, agentId));
    return this.#files.get(agentId);
  }
}

function workflowKey(runId: string): string {
  return `workflow ${runId}`;
}

function launchOf(call: ToolCall, trace: Trace, { redact }: BuildOptions): Launch {
  const { description, taskId } = call.result?.details ?? {};
  const textOrNone = (text: string | undefined) => text && sanitizeText(text, redact, NAME_CHARS);
  return {
    trace,
    type: textOrNone(findAgentType(call)),
    description: textOrNone(description),
    background: isAsync(call),
    task: taskId,
  };
}

/** Whether a call's result says no more than that something has been started. */
function isAsync({ result }: ToolCall): boolean {
  const { isAsync: isMarked = false, status } = result?.details ?? {};
  return isMarked || status === 'async_launched' || extractText(result?.content).startsWith('Async agent launched');
}
