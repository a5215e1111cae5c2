import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { attempt } from '../../shared/attempt.js';
import { parseJson } from '../../shared/json.js';
import type { Line } from '../file/line.js';
import { readLines } from '../file/lines.js';
import { AgentMeta } from '../file/schema.js';
import { readOverview } from '../sessions/overview.js';
import { readAllTurns } from '../turns/read-all-turns.js';
import { type AgentThread, type Turn, toThread } from '../turns/turn.js';

export interface AgentFile {
  readonly agentId: string;
  readonly path: string;
  readonly bytes: number;
  readonly changedAt: number;
  /** Read on first access. */
  readonly meta: AgentMeta;
  /** The workflow in which the agent is a step. A script starts such an agent, and no tool call names it. */
  readonly workflowRunId: string | undefined;
}

const AGENT_FILE = /^agent-([\w-]+)\.jsonl$/;
const MAX_DEPTH = 3;

/** The files of a session's subagents, in the folder named after the session. Workflows have subfolders there. */
export function findAgentFiles(transcriptPath: string): AgentFile[] {
  return listAgentFiles(join(dirname(transcriptPath), basename(transcriptPath, '.jsonl'), 'subagents'), MAX_DEPTH);
}

/** An agent's file where versions before 2.1 put it: next to the transcript, or in one folder for all sessions. */
export function findLegacyAgentFile(transcriptPath: string, agentId: string): AgentFile | undefined {
  const folder = dirname(transcriptPath);
  const name = `agent-${agentId}.jsonl`;
  if (!AGENT_FILE.test(name)) return undefined;
  return openAgentFile(join(folder, name)) ?? openAgentFile(join(folder, 'subagents', name));
}

/**
 * A session's agent files next to its transcript, even if no tool call names them: 2.0 starts some agents to warm up. All files there
 * must be opened for it, so newer sessions are not looked for.
 */
export function findLegacyAgentFiles(transcriptPath: string, sessionId: string): AgentFile[] {
  const { version } = attempt(() => readOverview(transcriptPath)) ?? {};
  if (version !== undefined && !isBeforeAgentFolders(version)) return [];
  return listAgentFiles(dirname(transcriptPath), 0).filter((file) => findAgentSession(file) === sessionId);
}

/** What the agent did, as far as its file can be read; undefined if it contains no answer. */
export function readAgent({ agentId, path }: AgentFile, lines?: Iterable<Line>): AgentThread | undefined {
  const turns: Turn[] = [];
  attempt(() => {
    // The agent's id names lines without a uuid, so that they do not get the same name as another agent's.
    for (const turn of readAllTurns(path, 'agent', agentId, lines)) turns.push(turn);
  });
  return toThread(turns, agentId, agentId);
}

/** Since 2.1 the files are in a folder of their session. A version that is not a number may be any. */
function isBeforeAgentFolders(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return !(major > 2 || (major === 2 && minor >= 1));
}

// A backfill asks for the agents next to a transcript once for each transcript in the folder.
const sessionsOfAgents = new Map<string, string | undefined>();

/** The session that an agent's answers name. Its first line can name one that was discarded. */
function findAgentSession({ path }: AgentFile): string | undefined {
  const session = sessionsOfAgents.has(path) ? sessionsOfAgents.get(path) : attempt(() => readSessionId(path));
  sessionsOfAgents.set(path, session);
  return session;
}

function readSessionId(path: string): string | undefined {
  for (const line of readLines(path)) if (line.kind === 'assistant') return line.fields.sessionId;
  return undefined;
}

/** Does not follow symlinks to folders, which can form a circle. */
function listAgentFiles(folder: string, depth: number): AgentFile[] {
  const entries = attempt(() => readdirSync(folder, { withFileTypes: true })) ?? [];
  return entries
    .toSorted((a, b) => a.name.localeCompare(b.name))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return depth > 0 ? listAgentFiles(path, depth - 1) : [];
      return (entry.isFile() && openAgentFile(path)) || [];
    });
}

function openAgentFile(path: string): AgentFile | undefined {
  const [, agentId] = AGENT_FILE.exec(basename(path)) ?? [];
  const status = attempt(() => lstatSync(path));
  if (agentId === undefined || !status?.isFile()) return undefined;
  const [, workflowRunId] = /\/workflows\/([^/]+)\/[^/]+$/.exec(path.replaceAll('\\', '/')) ?? [];
  let meta: AgentMeta | undefined;
  return {
    agentId,
    path,
    bytes: status.size,
    changedAt: status.mtimeMs,
    workflowRunId,
    get meta() {
      meta ??= attempt(() => readMeta(path.replace(/\.jsonl$/, '.meta.json'))) ?? {};
      return meta;
    },
  };
}

function readMeta(path: string): AgentMeta | undefined {
  // Reading would hang if this were a FIFO.
  return lstatSync(path).isFile() ? AgentMeta.parse(parseJson(readFileSync(path, 'utf8'))) : undefined;
}
