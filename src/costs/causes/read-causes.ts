import { basename } from 'node:path';
import { attempt } from '../../shared/attempt.js';
import { isOlder } from '../../shared/version.js';
import { type AgentFile, readAgent } from '../../transcript/agents/agent-files.js';
import { joinLines } from '../../transcript/agents/join-lines.js';
import { readAllTurns } from '../../transcript/turns/read-all-turns.js';
import {
  type AgentThread,
  type AnsweredMessage,
  findAgentType,
  findTextArgument,
  type Response,
  type ToolCall,
  type Turn,
} from '../../transcript/turns/turn.js';
import type { TaskUse } from '../session-usage.js';
import { Context, type LostCache, type Shares } from './context.js';
import type { Part } from './parts.js';
import { SentRequests } from './sent-requests.js';

type Task = Pick<TaskUse, 'agent' | 'skill' | 'command' | 'turn' | 'promptAt'>;

/** What a response was for, and what it used for each part. */
export interface ResponseCause extends Task {
  readonly isExact: boolean;
  readonly shares: Shares;
  readonly lost?: LostCache;
}

/** What a call was made for, and the type of the agent that it started. */
type Caller = Task & { readonly type?: string | undefined };

const NO_TASK: Task = { agent: '', skill: '', command: '', turn: 0 };
export const NO_CAUSE: ResponseCause = { ...NO_TASK, isExact: false, shares: new Map() };

/** What the responses of a session were for, by their ids. */
export interface SessionCauses {
  readonly responses: ReadonlyMap<string, ResponseCause>;
  /** What the last request of the main thread had, in order. */
  readonly context: readonly Part[];
}

/** Reads what the responses of a session and its subagents were for. Throws if the transcript cannot be read. */
export function readCauses(path: string, agents: readonly AgentFile[]): SessionCauses {
  const reader = new CauseReader();
  reader.readMain(path);
  reader.readAgents(agents);
  reader.addRepeated();
  return reader;
}

class CauseReader implements SessionCauses {
  readonly responses = new Map<string, ResponseCause>();
  readonly #requests = new SentRequests();
  readonly #main = new Context();
  /** What calls were made for, by the ids of the calls and of what they started: agents, and runs of workflows. */
  readonly #callers = new Map<string, Caller>();
  /** The names of the tools that were called, by the ids of the calls. */
  readonly #tools = new Map<string, string>();
  readonly #turns: { readonly at: number; readonly task: Task }[] = [];

  get context(): readonly Part[] {
    return this.#main.parts;
  }

  readMain(path: string): void {
    for (const turn of readAllTurns(path, 'main', basename(path, '.jsonl'), this.#requests.readLines(path))) {
      const [{ at, offset: promptAt }] = turn.prompts;
      const task = { agent: '', skill: turn.skill ?? '', command: findCommand(turn), turn: turn.number, promptAt };
      this.#turns.push({ at, task });
      this.#addTurn(turn, this.#main, task);
      for (const sidechain of turn.sidechains) this.#addSidechain(sidechain, turn, task);
    }
    for (const { agentId, callId } of this.#requests.repeated.values()) {
      const caller = this.#callers.get(callId);
      if (caller) this.#callers.set(agentId, caller);
    }
  }

  /** An agent may have been started by another one, whose file comes later. */
  readAgents(files: readonly AgentFile[]): void {
    let left = [...files];
    while (left.length > 0) {
      const known = left.filter((file) => this.#findCaller(file) !== undefined);
      const next = known.length > 0 ? known : left;
      for (const file of next) attempt(() => this.#readAgent(file));
      left = left.filter((file) => !next.includes(file));
    }
  }

  /** Adds the responses of agents whose files are gone. */
  addRepeated(): void {
    for (const [id, { callId }] of this.#requests.repeated) {
      const { type = UNNAMED_AGENT, ...task }: Caller = this.#callers.get(callId) ?? NO_TASK;
      if (!this.responses.has(id)) this.responses.set(id, { ...NO_CAUSE, ...task, agent: type });
    }
  }

  #readAgent(file: AgentFile): void {
    const lines = joinLines(file.parts.map(({ path }) => this.#requests.readLines(path)));
    const agent = readAgent(file, lines);
    if (!agent) return;
    const { type, ...task } = this.#findCaller(file) ?? this.#findCallerAt(agent.turns[0].prompts[0].at);
    this.#addThread(agent, { ...task, agent: type ?? file.meta.agentType ?? UNNAMED_AGENT });
  }

  #findCaller({ agentId, workflowRunId = '', meta: { toolUseId = '' } }: AgentFile): Caller | undefined {
    return this.#callers.get(toolUseId) ?? this.#callers.get(agentId) ?? this.#callers.get(workflowRunId);
  }

  #findCallerAt(time: number): Caller {
    return this.#turns.findLast(({ at }) => at <= time)?.task ?? NO_TASK;
  }

  /** What an old version wrote into the file of the main thread. The call that started it has its prompt. */
  #addSidechain(sidechain: AgentThread, { responses }: Turn, task: Task): void {
    const [{ content }] = sidechain.turns[0].prompts;
    const calls = responses.flatMap((response) => response.calls);
    const call = calls.find((each) => findTextArgument(each, 'prompt') === content);
    this.#addThread(sidechain, { ...task, agent: (call && findAgentType(call)) ?? UNNAMED_AGENT });
  }

  #addThread({ turns }: AgentThread, task: Task): void {
    const context = new Context();
    for (const turn of turns) this.#addTurn(turn, context, task);
  }

  #addTurn(turn: Turn, context: Context, task: Task): void {
    const compactions = turn.notes.flatMap(({ kind, line }) => (kind === 'compaction' ? [line] : []));
    let called = task.skill;
    let read = 0;
    for (const response of turn.responses) {
      if (compactions.some((line) => line > read && line < response.firstLine)) context.compact();
      read = response.firstLine;
      const sent = this.#requests.find(response.request?.id);
      const { attributionSkill: skill = called, attributionAgent = task.agent } = response.workedFor;
      const cause = { ...task, skill, agent: task.agent === '' ? '' : attributionAgent };
      called = findCalledSkill(response) ?? called;
      const answered = response.answered.map((each) => this.#nameTool(each));
      const used = context.add({ ...response, answered }, sent);
      const id = response.id ?? response.uuid;
      // In an agent's file, it may be the copy of a response of the main thread.
      if (id !== undefined && !this.responses.has(id))
        this.responses.set(id, { ...cause, isExact: sent !== undefined, ...used });
      for (const call of response.calls) this.#addCall(call, cause);
    }
    if (compactions.some((line) => line > read)) context.compact();
  }

  #addCall(call: ToolCall, task: Task): void {
    const { id, name, result } = call;
    const caller = { ...task, type: findAgentType(call) };
    const started = [id, result?.details?.agentId, result?.details?.runId].filter((each) => each !== undefined);
    for (const each of started) this.#callers.set(each, caller);
    if (id !== undefined) this.#tools.set(id, name);
  }

  /** A turn that was written again does not have the calls of all its results. */
  #nameTool(message: AnsweredMessage): AnsweredMessage {
    if (message.role !== 'tool' || message.toolName !== undefined) return message;
    return { ...message, toolName: this.#tools.get(message.toolCallId ?? '') };
  }
}

/** The name of an agent whose type no file says. */
export const UNNAMED_AGENT = '(agent)';

function findCommand({ context: { trigger }, prompts: [{ content }] }: Turn): string {
  return (trigger === 'command' && /^\/(\S+)/.exec(content)?.[1]) || '';
}

/** The first version that is known to say of each response whether it follows a skill. */
const FIRST_TO_NAME_SKILLS = '2.1.197';

/** Up to the end of its turn, an old version follows the skill that the model has called. */
function findCalledSkill({ calls, version }: Response): string | undefined {
  if (version === undefined || !isOlder(version, FIRST_TO_NAME_SKILLS)) return undefined;
  const call = calls.findLast(({ name }) => name === 'Skill');
  return call && (findTextArgument(call, 'skill') ?? findTextArgument(call, 'command'));
}
