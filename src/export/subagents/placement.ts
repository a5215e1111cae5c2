import { isDeepStrictEqual } from 'node:util';
import { deriveSpanId } from '../../observations/build/ids.js';
import { NAME_CHARS } from '../../observations/build/observation.js';
import { assembleTrace, type BuildOptions } from '../../observations/build/trace.js';
import { nameTrace } from '../../observations/build/trace-name.js';
import { sanitizeText } from '../../observations/content/sanitize.js';
import type { Trace } from '../../observations/model.js';
import type { Json } from '../../shared/json.js';
import type { AgentEntry, Entry } from '../../state/entry.js';
import type { AgentFile } from '../../transcript/agents/agent-files.js';
import { findAgentType, type ToolCall, type Turn } from '../../transcript/turns/turn.js';
import { isAsync } from './completion.js';

/** The turn or agent that made a call. */
interface Launcher {
  readonly trace: Trace;
  readonly options: BuildOptions;
  readonly prompts: number[] | undefined;
}

/** What is kept of a call that started an agent. */
type Launch = Pick<AgentEntry, 'type' | 'description' | 'background' | 'task' | 'prompts' | 'parent'> & {
  trace: Trace;
};

/** Knows below which call each subagent belongs. The state keeps it, since an agent may end long after its turn. */
export class Placement {
  /** The entry of an agent is undefined if it cannot be read: the agent may have been sent already. */
  readonly entries: Map<string, AgentEntry | undefined>;

  constructor(known: Entry['agents'] = {}) {
    this.entries = new Map(Object.entries(known));
  }

  isUnreadable(key: string): boolean {
    return this.entries.has(key) && this.entries.get(key) === undefined;
  }

  /** The entry of an agent. A step of a workflow has the workflow's entry. */
  find({ agentId, workflowRunId, meta }: AgentFile): AgentEntry | undefined {
    if (this.entries.has(agentId) || workflowRunId === undefined) return this.entries.get(agentId);
    const workflow = this.entries.get(workflowKey(workflowRunId));
    return workflow && { ...workflow, type: meta.agentType };
  }

  /** The workflows that calls have started. */
  listWorkflows(): string[] {
    return [...this.entries.keys()].flatMap((key) => (key.startsWith(WORKFLOW) ? key.slice(WORKFLOW.length) : []));
  }

  /** Whether an agent is unknown, or belongs to this call. */
  mayBeStartedBy(agentId: string, callId: string | undefined): boolean {
    return !this.entries.has(agentId) || this.entries.get(agentId)?.call === callId;
  }

  /**
   * Places below a call the agent or workflow that its result names, and the agents whose files name the call; returns what is
   * news for the state.
   */
  addCall(callId: string, call: ToolCall, agentIds: readonly string[], by: Launcher): string[] {
    const { agentId, runId } = call.result?.details ?? {};
    const workflow = runId === undefined ? undefined : workflowKey(runId);
    const keys = [agentId, workflow, ...agentIds].filter((key) => key !== undefined);
    if (keys.length === 0) return [];
    const parent = deriveSpanId(by.trace, 'tool', callId);
    const launch = { ...describeLaunch(call, by.options), trace: by.trace, prompts: by.prompts, parent };
    return keys.flatMap((key) => this.#place(key, callId, launch));
  }

  /** Places below a turn the agents that its command has waited for. One in the background has a trace of its own. */
  addCommand({ key }: Turn, agents: readonly AgentFile[], { trace, prompts }: Launcher): string[] {
    const parent = deriveSpanId(trace, 'agent', key);
    const waitedFor = agents.filter(({ meta }) => meta.requestShape !== 'background');
    return waitedFor.flatMap(({ agentId }) => this.#place(agentId, key, { trace, prompts, parent, background: false }));
  }

  #place(key: string, callId: string, launch: Launch): string[] {
    if (this.isUnreadable(key)) return [];
    const known = this.entries.get(key);
    const { trace, ...details } = launch;
    if (!known) {
      this.entries.set(key, { ...details, ...serializeTrace(trace), call: callId, lastLine: 0 });
      return [key];
    }
    // The agent may have been placed by its own file before the result of its call came, and the turn may have grown since.
    const news = { ...(details.background && { background: true }), traceTags: [...trace.tags] };
    if (known.call !== callId || isDeepStrictEqual(known, { ...known, ...news })) return [];
    this.entries.set(key, { ...known, ...news });
    return [key];
  }
}

const WORKFLOW = 'workflow ';

function workflowKey(runId: string): string {
  return WORKFLOW + runId;
}

function describeLaunch(call: ToolCall, { redact }: BuildOptions) {
  const { description, taskId } = call.result?.details ?? {};
  const sanitize = (text: string | undefined) => text && sanitizeText(text, redact, NAME_CHARS);
  return {
    type: sanitize(findAgentType(call)),
    description: sanitize(description),
    background: isAsync(call),
    task: taskId,
  };
}

/** The trace of an agent as the state keeps it: the run that sends the agent does not read its turn again. */
export function serializeTrace({ id, parentId, scope, name, metadata, tags, userId }: Trace) {
  return {
    trace: id,
    traceParent: parentId,
    traceScope: scope === id ? undefined : scope,
    traceName: name,
    traceMetadata: metadata,
    traceTags: [...tags],
    traceUser: userId,
  };
}

export function deserializeTrace(entry: AgentEntry, options: BuildOptions): Trace {
  const { trace: id, traceParent: parentId, traceScope: scope = id } = entry;
  const { traceTags: tags = options.tags, traceUser: userId = options.userId } = entry;
  return assembleTrace({ id, parentId, scope, tags, userId, ...restrictStored(entry, options) }, options);
}

/** More may be forbidden by now than when the turn was built, whose name can contain its prompt. */
function restrictStored({ traceName: name, traceMetadata: metadata }: AgentEntry, options: BuildOptions) {
  if (options.capture !== 'metadata') return { name, metadata };
  const { ide: _, ...rest } = metadata;
  const { turn_number: number, cwd, git_repository: repository } = rest;
  const text = (value: Json | undefined) => (typeof value === 'string' ? value : undefined);
  const turn = { number: Number(number), cwd: text(cwd), repository: text(repository) };
  return { name: number === undefined ? name : nameTrace(options.traceName, turn), metadata: rest };
}
