import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parseJson } from '../../shared/json.js';
import type { Line } from '../file/line.js';
import { readLines } from '../file/lines.js';
import { AgentMeta } from '../file/schema.js';
import { readAllTurns } from '../turns/read-all-turns.js';
import { type AgentThread, type Turn, toThread } from '../turns/turn.js';

export interface AgentFile {
  readonly agentId: string;
  readonly path: string;
  readonly bytes: number;
  readonly changedAt: number;
  /** Read when it is asked for. */
  readonly meta: AgentMeta;
  /** The workflow whose step it is: such an agent is started by a script, and no tool call names it. */
  readonly workflowRunId: string | undefined;
}

const AGENT_FILE = /^agent-([\w-]+)\.jsonl$/;

/** The files of a session's subagents, in the folder that bears its name; workflows keep theirs in folders of their own. */
export function findAgentFiles(transcriptPath: string): AgentFile[] {
  return agentFilesIn(join(dirname(transcriptPath), basename(transcriptPath, '.jsonl'), 'subagents'), FOLDERS_DEEP);
}

/** The file of an agent in the places where versions before 2.1 put it: beside the transcript, or in a common folder. */
export function findLegacyAgentFile(transcriptPath: string, agentId: string): AgentFile | undefined {
  const folder = dirname(transcriptPath);
  const name = `agent-${agentId}.jsonl`;
  if (!AGENT_FILE.test(name) || name.length > LONGEST_NAME) return undefined;
  return [join(folder, name), join(folder, 'subagents', name)].flatMap(agentFile)[0];
}

/** The agents beside a transcript that no tool call may ever name: 2.0 warms itself up with some. */
export function findLegacyAgentFiles(transcriptPath: string): AgentFile[] {
  return agentFilesIn(dirname(transcriptPath), 0);
}

/**
 * What the agent did, as far as its file tells; nothing where it holds no answer, or cannot be read. Lines that cannot be
 * read are told of.
 */
export function readAgent(
  { agentId, path }: AgentFile,
  onUnreadable: (line: number, reason: string) => void,
  onLine: (line: Line) => void = () => {},
): AgentThread | undefined {
  const turns: Turn[] = [];
  try {
    // Its lines need a name where they have none, and no other agent's may be the same.
    const all = readAllTurns(path, 'agent', agentId, (line) => {
      onLine(line);
      if (line.kind === 'unreadable') onUnreadable(line.location.number, line.reason);
    });
    for (const turn of all) turns.push(turn);
  } catch (error) {
    onUnreadable(0, error instanceof Error ? error.message : String(error));
  }
  return toThread(agentId, agentId, turns);
}

// A backfill asks for the agents beside a transcript once for each transcript of the folder.
const sessionsOfAgents = new Map<string, string | undefined>();

/** The session that an agent's answers name; its first line may name one that was thrown away. */
export function findAgentSession({ path }: AgentFile): string | undefined {
  if (!sessionsOfAgents.has(path)) sessionsOfAgents.set(path, sessionNamedIn(path));
  return sessionsOfAgents.get(path);
}

function sessionNamedIn(path: string): string | undefined {
  try {
    for (const line of readLines(path)) if (line.kind === 'assistant') return line.fields.sessionId;
    return undefined;
  } catch {
    return undefined;
  }
}

const FOLDERS_DEEP = 3;
const LONGEST_NAME = 200;

/** Only real folders are gone into: a link may lead in a circle. */
function agentFilesIn(folder: string, deep: number): AgentFile[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .toSorted((a, b) => a.name.localeCompare(b.name))
      .flatMap((entry) => {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) return deep > 0 ? agentFilesIn(path, deep - 1) : [];
        return entry.isFile() ? agentFile(path) : [];
      });
  } catch {
    return [];
  }
}

function agentFile(path: string): AgentFile[] {
  const [, agentId] = AGENT_FILE.exec(basename(path)) ?? [];
  const status = statusOf(path);
  if (agentId === undefined || !status?.isFile()) return [];
  const [, workflowRunId] = /\/workflows\/([^/]+)\/[^/]+$/.exec(path.replaceAll('\\', '/')) ?? [];
  let meta: AgentMeta | undefined;
  return [
    {
      agentId,
      path,
      bytes: status.size,
      changedAt: status.mtimeMs,
      workflowRunId,
      get meta() {
        meta ??= readMeta(path.replace(/\.jsonl$/, '.meta.json'));
        return meta;
      },
    },
  ];
}

function readMeta(path: string): AgentMeta {
  try {
    // A FIFO in its place would hang.
    const meta = AgentMeta.safeParse(statusOf(path)?.isFile() && parseJson(readFileSync(path, 'utf8')));
    return meta.success ? meta.data : {};
  } catch {
    return {};
  }
}

function statusOf(path: string) {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
