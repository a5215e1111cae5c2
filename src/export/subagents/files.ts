import { basename, dirname, join } from 'node:path';
import { groupBy } from '../../shared/group-by.js';
import { isMutedNow, listRuns, type Mute } from '../../state/runs.js';
import {
  type AgentFile,
  AgentFolders,
  findAgentFiles,
  findLegacyAgentFile,
  joinAgentFiles,
  namesStarter,
  readAgentStart,
} from '../../transcript/agents/agent-files.js';
import { findTextArgument, type Prompt, type ToolCall } from '../../transcript/turns/turn.js';
import type { SessionRun } from '../session-run.js';

type AgentFileOrNone = AgentFile | undefined;

/** An agent whose file names no call, and how it begins. */
interface UnnamedAgent {
  readonly file: AgentFile;
  readonly prompt: string;
  readonly promptId: string | undefined;
}

/** The tools that start agents, the older one included. */
const STARTS_AGENT = ['Agent', 'Task'];

/** The files of a session's subagents, listed once. */
export class AgentFiles {
  /** The session as its agents' folder names it. */
  readonly session: string;
  readonly #run: Pick<SessionRun, 'request' | 'context'>;
  readonly #folders: AgentFolders;
  #byId: Map<string, AgentFileOrNone> | undefined;
  /** The agents' files of the sessions in which agents of this one went on, by session. */
  readonly #elsewhere = new Map<string, readonly AgentFile[]>();
  #byCall: ReadonlyMap<string | undefined, readonly AgentFile[]> | undefined;
  /** Those whose files name no call. */
  #unnamed: readonly UnnamedAgent[] | undefined;
  /** When those sessions were muted. */
  mutesElsewhere: readonly Mute[] = [];

  constructor(run: Pick<SessionRun, 'request' | 'context'>) {
    const { path, continued } = run.request;
    this.session = basename(path, '.jsonl');
    this.#run = run;
    this.#folders = run.context.agentFolders ?? new AgentFolders();
    if (continued) this.#lookInto(continued.in);
  }

  /** The files in the session's own folder, without what agents went on to write elsewhere. */
  listOwn(): AgentFile[] {
    return [...this.#files().values()].filter((file) => file !== undefined);
  }

  /** The files of all known agents. If an agent of this session went on in another one, they include all files there. */
  list(): AgentFile[] {
    const files = groupBy([...this.listOwn(), ...[...this.#elsewhere.values()].flat()], ({ agentId }) => agentId);
    return [...files.values()].map((parts) => joinAgentFiles(...parts));
  }

  /** Also looks where versions before 2.1 put an agent's file. */
  find(agentId: string): AgentFile | undefined {
    const files = this.#files();
    if (!files.has(agentId)) files.set(agentId, findLegacyAgentFile(this.#run.request.path, agentId));
    return files.get(agentId);
  }

  /** Looks whether an agent went on in other sessions. */
  follow(agentId: string): void {
    const { path, continued } = this.#run.request;
    for (const folder of new Set([path, continued?.in ?? path].map(dirname)))
      for (const session of this.#folders.findSessions(folder, agentId))
        if (session !== this.session) this.#lookInto(join(folder, `${session}.jsonl`));
  }

  /** Looks for steps of a workflow that went on in other sessions. */
  followWorkflow(runId: string): void {
    const folder = dirname(this.#run.request.path);
    for (const session of this.#folders.findSessionsOfWorkflow(folder, runId))
      if (session !== this.session) this.#lookInto(join(folder, `${session}.jsonl`));
  }

  /** The other sessions of the project that have a file of an agent, or of the workflow in which it is a step. */
  findOtherSessions({ agentId, workflowRunId }: AgentFile): string[] {
    const project = dirname(this.#run.request.path);
    const sessions =
      workflowRunId === undefined
        ? this.#folders.findSessions(project, agentId)
        : this.#folders.findSessionsOfWorkflow(project, workflowRunId);
    return sessions.filter((session) => session !== this.session);
  }

  /** Whether the run is for this agent, or for all. */
  isWanted({ parts }: AgentFile): boolean {
    const { continued } = this.#run.request;
    return !continued || parts.some(({ session }) => session === basename(continued.in, '.jsonl'));
  }

  #lookInto(transcriptPath: string): void {
    const session = basename(transcriptPath, '.jsonl');
    if (this.#elsewhere.has(session) || !this.#mayRead(session)) return;
    this.#elsewhere.set(session, findAgentFiles(transcriptPath));
    this.#byCall = undefined;
  }

  /** A muted session is never read. One with tracing off is read only by a backfill. */
  #mayRead(session: string): boolean {
    const { request, context } = this.#run;
    const known = context.state.readSession(session);
    const { mutes = [] } = known ?? {};
    this.mutesElsewhere = [...this.mutesElsewhere, ...mutes];
    const isTraced = known !== undefined && listRuns(known).length > 0;
    return !isMutedNow(mutes) && (isTraced || request.takesAll === true);
  }

  /** The agents whose files name this call as the one that started them. */
  startedBy(callId: string): readonly string[] {
    this.#byCall ??= groupBy(this.list(), ({ meta }) => meta.toolUseId);
    return (this.#byCall.get(callId) ?? []).map(({ agentId }) => agentId);
  }

  /**
   * The agent that was asked what a call asks for: if a call was interrupted or rejected, neither its result nor its agent's file names
   * the other. `isFree` says whether no other call has started it.
   */
  askedBy(call: ToolCall, isFree: (agentId: string) => boolean): readonly string[] {
    const prompt = STARTS_AGENT.includes(call.name) ? findTextArgument(call, 'prompt') : undefined;
    if (prompt === undefined || call.result?.details?.agentId !== undefined) return [];
    const asked = this.#listUnnamed().filter((agent) => agent.prompt === prompt && isFree(agent.file.agentId));
    return asked.slice(0, 1).map(({ file }) => file.agentId);
  }

  /** The agent that a command has started: its file begins with the id of the command's prompt, and names no call. */
  startedByCommand({ promptId }: Pick<Prompt, 'promptId'>): readonly AgentFile[] {
    if (promptId === undefined) return [];
    return this.#listUnnamed().flatMap((agent) => (agent.promptId === promptId ? [agent.file] : []));
  }

  /** The first lines of files are read for it, but only if a session has such agents. */
  #listUnnamed(): readonly UnnamedAgent[] {
    this.#unnamed ??= this.listOwn().flatMap((file) => {
      if (namesStarter(file)) return [];
      const start = readAgentStart(file);
      return start ? [{ file, ...start }] : [];
    });
    return this.#unnamed;
  }

  #files(): Map<string, AgentFileOrNone> {
    this.#byId ??= new Map(findAgentFiles(this.#run.request.path).map((file) => [file.agentId, file]));
    return this.#byId;
  }
}
