import { buildLostSubagent, buildSubagent } from '../../observations/build/agents.js';
import { type BuildOptions, buildAgentTrace } from '../../observations/build/trace.js';
import type { Trace } from '../../observations/model.js';
import { attempt } from '../../shared/attempt.js';
import type { AgentEntry, Entry } from '../../state/entry.js';
import {
  type AgentFile,
  type AgentSoFar,
  findLegacyAgentFiles,
  isContinuation,
  readAgentSoFar,
} from '../../transcript/agents/agent-files.js';
import type { AgentThread, ToolCall, Turn } from '../../transcript/turns/turn.js';
import { type OutboxItem, withStateChanges } from '../outbox.js';
import { SentLines } from '../sent-lines.js';
import type { SessionRun } from '../session-run.js';
import { readAgentLines, readAgentThread } from './agent-lines.js';
import { Completion, isAsync } from './completion.js';
import { AgentFiles } from './files.js';
import { deserializeTrace, Placement, serializeTrace } from './placement.js';
import { findProgress, measureParts } from './progress.js';
import { isKeptBack, Strays } from './strays.js';

/** The session that started an agent, and what the state knows of the agent there. */
interface Starter {
  readonly sessionId: string;
  readonly entry: AgentEntry;
}

/** The subagents of a session: which call started each, whether it is done, and what of it has not been sent yet. */
export class Subagents {
  readonly #run: SessionRun;
  readonly #files: AgentFiles;
  readonly #placement: Placement;
  readonly #completion: Completion;
  /** Results that calls returned for agents since `due` was last called. */
  readonly #results = new Map<string, { call: ToolCall; trace: Trace }>();
  /** Agents that no call started, and that are not sent: they have no answer, or were written while the session was muted. */
  readonly #unsent = new Set<string>();
  readonly strays: Strays;

  constructor(run: SessionRun) {
    this.#run = run;
    this.#files = new AgentFiles(run);
    this.#placement = new Placement(run.start.agents);
    this.#completion = new Completion(run.request, run.writer.known);
    this.strays = new Strays(run, this.#files, this.#placement);
  }

  /** Takes note of a turn's calls, and of the ends that it records; returns the agents that it started. */
  recordTurn(turn: Turn, trace: Trace, options: BuildOptions, prompts?: number[]): string[] {
    this.#completion.recordTurn(turn);
    const launcher = { trace, options, prompts };
    const isCommand = turn.notes.some(({ kind }) => kind === 'command-result');
    const agents = isCommand ? turn.prompts.flatMap((prompt) => this.#files.startedByCommand(prompt)) : [];
    const started = this.#placement.addCommand(turn, agents, launcher);
    for (const call of turn.responses.flatMap(({ calls }) => calls)) {
      if (call.id === undefined) continue;
      const named = this.#files.startedBy(call.id);
      const isFree = (agentId: string) => this.#placement.mayBeStartedBy(agentId, call.id);
      const agentIds = named.length > 0 ? named : this.#files.askedBy(call, isFree);
      started.push(...this.#placement.addCall(call.id, call, agentIds, launcher));
      const { agentId, status } = call.result?.details ?? {};
      // A teammate has only begun to work.
      const hasWorked = !isAsync(call) && status !== 'teammate_spawned';
      if (agentId !== undefined && hasWorked) this.#results.set(agentId, { call, trace });
    }
    return started;
  }

  /** Calls and agents whose end has been recorded so far, and when. */
  get ended(): ReadonlyMap<string, number> {
    return this.#completion.ended;
  }

  /** Returns the ends that a later run needs in order to know whether agents are done. */
  listEnded(): string[] {
    const ids = [...this.#placement.entries].flatMap(([agentId, entry]) => [agentId, entry?.call, entry?.task]);
    return ids.filter((id) => id !== undefined && this.ended.has(id)) as string[];
  }

  /** Takes note of ends that an earlier run has read. */
  recordEnded(ids: readonly string[]): void {
    this.#completion.recordEnded(ids);
  }

  /** Returns the sessions whose agents went on in this one, if such an agent is done and has something new. */
  findStarters(): Set<string> {
    const starters = this.#files.listOwn().flatMap((file) => {
      const starter = this.#findStarter(file);
      const isDue = starter && !isSentBy(starter, file) && this.#completion.isDone(file, starter.entry);
      return isDue ? [starter.sessionId] : [];
    });
    return new Set(starters);
  }

  /** What the state is to keep of these agents. */
  collectEntries(agentIds: readonly string[]): Pick<Entry, 'agents'> {
    const entries = agentIds.flatMap((agentId) => {
      const entry = this.#placement.entries.get(agentId);
      return entry ? [[agentId, entry] as const] : [];
    });
    return entries.length > 0 ? { agents: Object.fromEntries(entries) } : {};
  }

  /** Yields the unsent part of each finished agent, then of the agents that those started. */
  async *due(): AsyncGenerator<OutboxItem[], void, undefined> {
    for (let isMore = true; isMore; ) {
      isMore = false;
      for (const [file, entry] of this.#findDone()) {
        const options = await this.#findOptions(entry);
        const progress = findProgress(entry, file, this.#files.session);
        if (!options || !progress) continue;
        const thread = this.#read(file);
        this.#placement.entries.set(file.agentId, { ...entry, bytes: file.bytes });
        if (!thread) continue;
        isMore = true;
        if (this.#isKept(thread)) yield [{ change: this.collectEntries([file.agentId]) }];
        else yield this.#buildItems(file, thread, { ...entry, ...progress }, options);
      }
    }
    yield* this.#lost();
  }

  /** Yields the final part of each agent that still works, then of the agents that those started. */
  async *working(): AsyncGenerator<OutboxItem[], void, undefined> {
    const { agentsRead = new Map<string, number>() } = this.#run.context;
    for (let isMore = true; isMore; ) {
      isMore = false;
      for (const file of this.#files.listOwn()) {
        const { agentId, bytes, parts } = file;
        const entry = this.#placement.find(file);
        const isKnown = !entry || entry.lost || entry.bytes === bytes || agentsRead.get(agentId) === bytes;
        if (isKnown || parts.length > 1 || this.#completion.isDone(file, entry)) continue;
        agentsRead.set(agentId, bytes);
        const options = await this.#findOptions(entry);
        const soFar = options && readAgentSoFar(file, readAgentLines(file, this.#run));
        if (!options || !soFar || this.#isKept(soFar.thread)) continue;
        isMore = true;
        yield this.#buildSoFar(file, soFar, entry, options);
      }
    }
  }

  /** Yields agents below no known call, each in its own trace, when nobody works on them any more; then the agents they started. */
  async *unplaced(): AsyncGenerator<OutboxItem[], void, undefined> {
    const { request } = this.#run;
    const legacy = request.includeLegacyFiles ? findLegacyAgentFiles(request.path, request.sessionId) : [];
    for (let isMore = true; isMore; ) {
      isMore = false;
      for (const file of [...this.#files.listOwn(), ...legacy]) {
        const items = await this.#buildUnplaced(file);
        if (!items) continue;
        isMore = true;
        yield items;
      }
      if (isMore) yield* this.due();
    }
  }

  async #buildUnplaced(file: AgentFile): Promise<OutboxItem[] | undefined> {
    const { agentId, meta, changedAt } = file;
    // The first cc-langfuse has sent the agents before it was replaced.
    const isOld = changedAt < (Date.parse(this.#run.start.agentsSince ?? '') || 0);
    const isKnown = this.#placement.entries.has(agentId) || this.#unsent.has(agentId);
    if (isKnown || isOld || !this.#completion.isAbandoned(file)) return undefined;
    const kind = this.strays.judge(file);
    if (kind === undefined) return undefined;
    const whole = kind === 'stray' ? this.#joinParts(file) : file;
    const thread = this.#read(whole);
    if (!thread || this.#isKept(thread) || this.#run.lookup.isOutsideRuns(thread)) {
      this.#unsent.add(agentId);
      return undefined;
    }
    const options = await this.#findOptions({}, thread.turns[0].context.cwd);
    if (!options) return undefined;
    const trace = buildAgentTrace(thread, meta.agentType, options);
    const entry = { ...serializeTrace(trace), lastLine: 0, type: meta.agentType };
    const stray = kind === 'stray' ? [{ change: this.#run.writer.addStray(agentId) }] : [];
    return [...this.#buildItems(whole, thread, entry, options), ...stray];
  }

  /** The agent's file with what it went on to write in the folders of other sessions. */
  #joinParts(file: AgentFile): AgentFile {
    this.#files.follow(file.agentId);
    return this.#files.list().find(({ agentId }) => agentId === file.agentId) ?? file;
  }

  /** The total size of all agents' files, if there are any and all of them have been sent. */
  settledBytes(): number | undefined {
    const own = this.#files.listOwn();
    const ids = new Set(own.map(({ agentId }) => agentId));
    const total = own.reduce((sum, { bytes }) => sum + bytes, 0);
    const files = this.#files.list().filter(({ agentId }) => ids.has(agentId));
    return total > 0 && files.every((file) => this.#isSettled(file)) ? total : undefined;
  }

  #isSettled(file: AgentFile): boolean {
    const { agentId, bytes } = file;
    if (this.#placement.entries.get(agentId)?.bytes === bytes) return true;
    if (this.#unsent.has(agentId) || this.#placement.isUnreadable(agentId)) return true;
    const starter = this.#findStarter(file);
    return starter ? isSentBy(starter, file) : isContinuation(file);
  }

  /** Finds the session that started an agent which went on in this one. */
  #findStarter(file: AgentFile): Starter | undefined {
    if (this.#placement.entries.has(file.agentId)) return undefined;
    const { state, destinationId } = this.#run.context;
    const [starter] = this.#files.findOtherSessions(file).flatMap((sessionId) => {
      const { agents } = attempt(() => state.read(sessionId, destinationId)) ?? {};
      const entry = new Placement(agents).find(file);
      return entry ? [{ sessionId, entry }] : [];
    });
    return starter;
  }

  *#findDone(): Generator<[AgentFile, AgentEntry], void, undefined> {
    for (const [agentId, entry] of this.#placement.entries) if (entry) this.#files.find(agentId);
    this.#follow();
    for (const file of this.#files.list()) {
      const entry = this.#placement.find(file);
      const isSent = entry?.bytes === file.bytes || (entry?.lost && file.bytes === 0);
      if (entry && !isSent && this.#files.isWanted(file) && this.#completion.isDone(file, entry)) yield [file, entry];
    }
  }

  /** If an agent would be sent now and the transcript does not say that it ended here, looks for its rest in other sessions. */
  #follow(): void {
    const { occasion, continued } = this.#run.request;
    const followsAll = occasion === 'backfill' || continued !== undefined;
    for (const runId of followsAll ? this.#placement.listWorkflows() : []) this.#files.followWorkflow(runId);
    for (const file of this.#files.list()) {
      const entry = this.#placement.find(file);
      if (!entry || file.workflowRunId !== undefined) continue;
      const isDue = entry.bytes !== file.bytes && this.#completion.isDone(file, entry);
      const isOpen = isDue && !this.#completion.hasEnded(file, entry.call);
      if (isOpen || followsAll || entry.parts !== undefined) this.#files.follow(file.agentId);
    }
  }

  /** An agent whose file is missing or empty is built from the result of its call. */
  async *#lost(): AsyncGenerator<OutboxItem[], void, undefined> {
    for (const [agentId, { call, trace }] of this.#results) {
      const entry = this.#placement.entries.get(agentId);
      const file = this.#files.find(agentId);
      // If there is a file that has not been read, the agent is still working, or goes on.
      const isMissing = file === undefined || entry?.bytes === file.bytes;
      if (entry?.lastLine !== 0 || entry.lost || !isMissing) continue;
      const options = await this.#findOptions(entry);
      if (!options) continue;
      this.#placement.entries.set(agentId, { ...entry, lost: true });
      const observation = buildLostSubagent(call, { trace, parentId: entry.parent }, options);
      yield observation ? [{ observation, settings: options, change: this.collectEntries([agentId]) }] : [];
    }
    this.#results.clear();
  }

  /** An agent is sent under the settings of the turn that started it. If no turn is known, all the session's turns restrict it. */
  async #findOptions({ prompts }: Partial<AgentEntry>, folder?: string): Promise<BuildOptions | undefined> {
    const { lookup, settings: all, request } = this.#run;
    const runs = prompts ? lookup.findRuns(prompts) : lookup.findAllRuns();
    const settings = runs && !lookup.isMutedNow ? await all.find(runs) : undefined;
    if (!runs || !settings || settings.hold !== undefined) return undefined;
    return { ...all.buildOptions(runs, settings, folder), sessionId: request.sessionId };
  }

  #buildItems(file: AgentFile, thread: AgentThread, entry: AgentEntry, options: BuildOptions): OutboxItem[] {
    const { agentId, bytes } = file;
    const { children, root, started, sent } = this.#build(file, { thread }, entry, options);
    const last = root.line;
    const parts = measureParts(file, this.#files.session);
    const reached = { lastLine: last, sentLine: last, held: undefined };
    this.#placement.entries.set(agentId, { ...entry, ...reached, bytes, ...(parts && { parts }) });
    if (last <= entry.lastLine) return [];
    // The root of an agent whose file was missing was built from its call's result. It keeps its time.
    const rootItem = entry.lost ? {} : { observation: root, settings: options };
    return [
      ...withStateChanges(children, (line) => ({ agents: { [agentId]: { ...entry, ...sent.reach(line) } } })),
      { ...rootItem, change: this.collectEntries([...started, agentId]) },
    ];
  }

  /** The root of an agent that still works is not sent. */
  #buildSoFar(file: AgentFile, soFar: AgentSoFar, entry: AgentEntry, options: BuildOptions): OutboxItem[] {
    const { agentId } = file;
    const { children, started, sent } = this.#build(file, soFar, entry, options);
    const reach = (line: number) => {
      const reached = { ...entry, ...sent.reach(line) };
      this.#placement.entries.set(agentId, reached);
      return { agents: { [agentId]: reached } };
    };
    return [...withStateChanges(children, reach), { change: this.collectEntries(started) }];
  }

  /** Builds what has not been sent of an agent, and takes note of the agents that it started. */
  #build(
    { meta }: AgentFile,
    { thread, growing }: Pick<AgentSoFar, 'thread'> & Partial<AgentSoFar>,
    entry: AgentEntry,
    options: BuildOptions,
  ) {
    const { background: isBackground = false, parent: parentId, prompts } = entry;
    const trace = deserializeTrace(entry, options);
    const description = meta.description ?? entry.description;
    const agent = { thread, type: meta.agentType ?? entry.type, description, isBackground };
    const sent = new SentLines({ ...entry, sentLine: entry.sentLine ?? entry.lastLine });
    const { children, root } = buildSubagent(agent, { trace, parentId }, options, sent.select({ growing }));
    const observations = [...children].map((observation) => ({ observation, settings: options }));
    for (const turn of thread.turns) this.strays.note(turn);
    const started = thread.turns.flatMap((turn) => this.recordTurn(turn, trace, options, prompts));
    return { children: observations, root, started, sent };
  }

  #isKept(thread: AgentThread): boolean {
    return isKeptBack(thread, this.#run, this.#files);
  }

  #read(file: AgentFile): AgentThread | undefined {
    return readAgentThread(file, this.#run);
  }
}

/** Whether a session has agents of which nobody knows yet what started them. */
export function hasUnplacedAgents(
  run: Pick<SessionRun, 'request' | 'context'>,
  agents: Entry['agents'] | undefined,
): boolean {
  const placement = new Placement(agents);
  return new AgentFiles(run).listOwn().some((file) => placement.find(file) === undefined);
}

/** Whether the session that started an agent has sent what is in this file. */
function isSentBy({ entry }: Starter, { parts }: AgentFile): boolean {
  return parts.every(({ session, bytes }) => entry.parts?.[session] === bytes);
}
