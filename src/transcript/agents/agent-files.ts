import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { attempt } from '../../shared/attempt.js';
import { identifyFile } from '../../shared/file-identity.js';
import { parseJson } from '../../shared/json.js';
import { memoize } from '../../shared/memoize.js';
import { extractText } from '../file/content.js';
import type { Line } from '../file/line.js';
import { readFirstTime, readLines } from '../file/lines.js';
import { AgentMeta, type TokenCounts } from '../file/schema.js';
import { readOverview } from '../sessions/overview.js';
import { readAllTurns, readTurnsSoFar } from '../turns/read-all-turns.js';
import { type AgentThread, type Turn, toThread } from '../turns/turn.js';
import { ForkHead } from './fork.js';
import { joinLines } from './join-lines.js';

export interface AgentFile {
  readonly agentId: string;
  /** More than one, in the order of their times, if the agent has outlived its session: it goes on in the folder of the next one. */
  readonly parts: readonly [AgentPart, ...AgentPart[]];
  readonly bytes: number;
  readonly changedAt: number;
  /** Read on first access. */
  readonly meta: AgentMeta;
  /** The workflow in which the agent is a step. A script starts such an agent, and no tool call names it. */
  readonly workflowRunId: string | undefined;
}

interface AgentPart {
  /** The session in whose folder it is. */
  readonly session: string;
  readonly path: string;
  readonly bytes: number;
  readonly inode: number;
}

const AGENT_FILE = /^agent-([\w-]+)\.jsonl$/;

/** Requests of Claude Code itself that have a file as agents have. The file of a side question begins with a copy of the conversation. */
const OWN_REQUESTS = { aside_question: 'side question', acompact: 'compaction' } as const;

function findOwnRequest(agentId: string): string | undefined {
  return Object.entries(OWN_REQUESTS).find(([name]) => agentId.startsWith(`${name}-`))?.[1];
}

/** Whether a file begins with lines of the main thread. */
export function copiesConversation({ agentId }: AgentFile): boolean {
  return findOwnRequest(agentId) === OWN_REQUESTS.aside_question;
}

/** Reads what responses of the main thread used, by message id, from files that copy them: a copy can be newer than the original. */
export function readCopiedUsage(transcriptPath: string): Map<string, TokenCounts> {
  const usages = new Map<string, TokenCounts>();
  const paths = findAgentFiles(transcriptPath)
    .filter(copiesConversation)
    .flatMap(({ parts }) => parts);
  const readOne = (path: string) => {
    for (const line of readLines(path)) {
      const { id, usage } = (line.kind === 'assistant' && line.fields.message) || {};
      if (id !== undefined && usage) usages.set(id, usage);
    }
  };
  for (const { path } of paths) attempt(() => readOne(path));
  return usages;
}

const MAX_DEPTH = 3;

/** The files of a session's subagents, in the folder named after the session. Workflows have subfolders there. */
export function findAgentFiles(transcriptPath: string): AgentFile[] {
  const session = basename(transcriptPath, '.jsonl');
  return listAgentFiles(agentsFolder(dirname(transcriptPath), session), MAX_DEPTH, session);
}

function agentsFolder(projectFolder: string, session: string): string {
  return join(projectFolder, session, 'subagents');
}

/** An agent's file where versions before 2.1 put it: next to the transcript, or in one folder for all sessions. */
export function findLegacyAgentFile(transcriptPath: string, agentId: string): AgentFile | undefined {
  const folder = dirname(transcriptPath);
  const session = basename(transcriptPath, '.jsonl');
  const name = `agent-${agentId}.jsonl`;
  if (!AGENT_FILE.test(name)) return undefined;
  return openAgentFile(join(folder, name), session) ?? openAgentFile(join(folder, 'subagents', name), session);
}

/**
 * A session's agent files next to its transcript, even if no tool call names them: 2.0 starts some agents to warm up. All files there
 * must be opened for it, so newer sessions are not looked for.
 */
export function findLegacyAgentFiles(transcriptPath: string, sessionId: string): AgentFile[] {
  const { version } = attempt(() => readOverview(transcriptPath)) ?? {};
  if (version !== undefined && !isBeforeAgentFolders(version)) return [];
  return listAgentFiles(dirname(transcriptPath), 0, sessionId).filter((file) => findAgentSession(file) === sessionId);
}

/** Which sessions of a project have a file of an agent. Only the names of files are read, once for each project. */
export class AgentFolders {
  readonly #listSessions = memoize(listSessionsOfAgents);
  /** Whether agents' files are next to the transcripts. */
  readonly hasLegacyFiles = memoize((projectFolder: string) => {
    const names = attempt(() => readdirSync(projectFolder)) ?? [];
    return names.some((name) => AGENT_FILE.test(name));
  });

  findSessions(projectFolder: string, agentId: string): readonly string[] {
    return this.#listSessions(projectFolder).get(agentId) ?? [];
  }

  /** Which sessions of a project have files of a workflow's steps. */
  findSessionsOfWorkflow(projectFolder: string, runId: string): readonly string[] {
    const sessions = attempt(() => readdirSync(projectFolder)) ?? [];
    return sessions.filter((session) => existsSync(join(agentsFolder(projectFolder, session), 'workflows', runId)));
  }

  /** The files of a session's subagents, also those of old versions, next to the transcript. */
  findAgentFiles(transcriptPath: string, sessionId = basename(transcriptPath, '.jsonl')): AgentFile[] {
    const own = findAgentFiles(transcriptPath);
    if (!this.hasLegacyFiles(dirname(transcriptPath))) return own;
    return [...own, ...findLegacyAgentFiles(transcriptPath, sessionId)];
  }
}

function listSessionsOfAgents(projectFolder: string): Map<string, string[]> {
  const sessions = new Map<string, string[]>();
  const folders = attempt(() => readdirSync(projectFolder, { withFileTypes: true })) ?? [];
  for (const { name: session } of folders.filter((entry) => entry.isDirectory())) {
    for (const name of attempt(() => readdirSync(agentsFolder(projectFolder, session))) ?? []) {
      const [, agentId] = AGENT_FILE.exec(name) ?? [];
      if (agentId !== undefined) sessions.set(agentId, [...(sessions.get(agentId) ?? []), session]);
    }
  }
  return sessions;
}

/** Joins the files that one agent has in the folders of several sessions. */
export function joinAgentFiles(first: AgentFile, ...others: readonly AgentFile[]): AgentFile {
  if (others.length === 0) return first;
  const timeOf = ({ parts: [{ path }] }: AgentFile) => attempt(() => readFirstTime(path)) ?? 0;
  const [oldest = first, ...later] = [first, ...others]
    .map((file) => ({ file, at: timeOf(file) }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ file }) => file);
  const files = [oldest, ...later];
  return {
    agentId: oldest.agentId,
    parts: [...oldest.parts, ...later.flatMap(({ parts }) => parts)],
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    changedAt: Math.max(...files.map(({ changedAt }) => changedAt)),
    workflowRunId: oldest.workflowRunId,
    get meta() {
      // Of a part, it can be missing.
      return files.find(({ meta }) => meta.toolUseId !== undefined)?.meta ?? oldest.meta;
    },
  };
}

/** What an agent was asked, and in which turn; undefined if its file says nothing, or is not its beginning. */
export function readAgentStart({ parts: [{ path }] }: AgentFile) {
  return attempt(() => {
    for (const line of readLines(path)) {
      if (line.kind !== 'user') continue;
      const { parentUuid, promptId } = line.fields;
      return parentUuid === undefined ? { prompt: extractText(line.content), promptId } : undefined;
    }
    return undefined;
  });
}

/** What the agent did, as far as its files can be read; undefined if they contain no answer. */
export function readAgent(
  { agentId, parts }: AgentFile,
  lines: Iterable<Line> = joinLines(parts.map(({ path }) => readLines(path))),
): AgentThread | undefined {
  const turns: Turn[] = [];
  const head = new ForkHead();
  attempt(() => {
    // The agent's id names lines without a uuid, so that they do not get the same name as another agent's.
    for (const turn of readAllTurns(parts[0].path, 'agent', agentId, head.drop(lines)))
      turns.push(turns.length === 0 ? head.startTurn(turn) : turn);
  });
  return toThread(turns, agentId, agentId);
}

/** What an agent has done that still works. */
export interface AgentSoFar {
  readonly thread: AgentThread;
  readonly growing: ReadonlySet<string>;
}

/** What an agent that still works has done, as far as that is certain. */
export function readAgentSoFar({ agentId, parts }: AgentFile, lines: Iterable<Line>): AgentSoFar | undefined {
  const head = new ForkHead();
  const read = attempt(() => readTurnsSoFar(parts[0].path, agentId, head.drop(lines)));
  const turns = read?.turns.map((turn, place) => (place === 0 ? head.startTurn(turn) : turn)) ?? [];
  const thread = toThread(turns, agentId, agentId);
  return read && thread && { thread, growing: read.growing };
}

/** Since 2.1 the files are in a folder of their session. A version that is not a number may be any. */
function isBeforeAgentFolders(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return !(major > 2 || (major === 2 && minor >= 1));
}

/** Whether an agent's files name what started it: a call, another agent, or a workflow. */
export function namesStarter({ meta, workflowRunId }: AgentFile): boolean {
  return meta.toolUseId !== undefined || meta.parentAgentId !== undefined || workflowRunId !== undefined;
}

/** Whether the file does not begin with the agent's beginning: its first line descends from a line of another file. */
export function isContinuation({ agentId, parts: [{ path }] }: AgentFile): boolean {
  return findOwnRequest(agentId) === undefined && attempt(() => findFirstParent(path)) !== undefined;
}

function findFirstParent(path: string): string | undefined {
  for (const line of readLines(path))
    if ('fields' in line && 'uuid' in line.fields && line.fields.uuid !== undefined) return line.fields.parentUuid;
  return undefined;
}

// A backfill asks for the agents next to a transcript once for each transcript in the folder.
const sessionsOfAgents = new Map<string, string>();

/** The session that an agent's answers name. Its first line can name one that was discarded. */
function findAgentSession({ parts: [{ path }] }: AgentFile): string | undefined {
  const session = sessionsOfAgents.get(path) ?? attempt(() => readSessionId(path));
  // It may not have answered yet.
  if (session !== undefined) sessionsOfAgents.set(path, session);
  return session;
}

function readSessionId(path: string): string | undefined {
  for (const line of readLines(path)) if (line.kind === 'assistant') return line.fields.sessionId;
  return undefined;
}

/** Does not follow symlinks to folders, which can form a circle. */
function listAgentFiles(folder: string, depth: number, session: string): AgentFile[] {
  // Most sessions have none, and an error takes ten times as long.
  if (!existsSync(folder)) return [];
  const entries = attempt(() => readdirSync(folder, { withFileTypes: true })) ?? [];
  return entries
    .toSorted((a, b) => a.name.localeCompare(b.name))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return depth > 0 ? listAgentFiles(path, depth - 1, session) : [];
      return (entry.isFile() && openAgentFile(path, session)) || [];
    });
}

function openAgentFile(path: string, session: string): AgentFile | undefined {
  const [, agentId] = AGENT_FILE.exec(basename(path)) ?? [];
  const status = attempt(() => lstatSync(path));
  if (agentId === undefined || !status?.isFile()) return undefined;
  const [, workflowRunId] = /\/workflows\/([^/]+)\/[^/]+$/.exec(path.replaceAll('\\', '/')) ?? [];
  let meta: AgentMeta | undefined;
  return {
    agentId,
    parts: [{ session, path, bytes: status.size, inode: status.ino }],
    bytes: status.size,
    changedAt: status.mtimeMs,
    workflowRunId,
    get meta() {
      meta ??= attempt(() => readMeta(metaPath(path))) ?? {
        agentType: findOwnRequest(agentId),
      };
      return meta;
    },
  };
}

function metaPath(path: string): string {
  return path.replace(/\.jsonl$/, '.meta.json');
}

/** What differs if what is said of an agent has been changed; undefined if nothing is. */
export function identifyMeta({ parts: [{ path }] }: AgentFile): string | undefined {
  return attempt(() => identifyFile(lstatSync(metaPath(path), { bigint: true })));
}

function readMeta(path: string): AgentMeta | undefined {
  // Reading would hang if this were a FIFO.
  return lstatSync(path).isFile() ? AgentMeta.parse(parseJson(readFileSync(path, 'utf8'))) : undefined;
}
