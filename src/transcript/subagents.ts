import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parseJson } from '../json.js';
import { toLine } from './line.js';
import { TranscriptReader } from './reader.js';
import { AgentMeta } from './schema.js';
import { type AgentThread, NO_FACTS, type Turn } from './turn.js';
import { TurnGrouper } from './turn-grouper.js';

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
export function agentFilesOf(transcriptPath: string): AgentFile[] {
  const folder = join(dirname(transcriptPath), basename(transcriptPath, '.jsonl'), 'subagents');
  return listed(folder, true).flatMap((name) => agentFile(join(folder, name)));
}

/** The file of an agent in the places where versions before 2.1 put it: beside the transcript, or in a common folder. */
export function olderAgentFile(transcriptPath: string, agentId: string): AgentFile | undefined {
  const folder = dirname(transcriptPath);
  const name = `agent-${agentId}.jsonl`;
  if (!AGENT_FILE.test(name)) return undefined;
  return [join(folder, name), join(folder, 'subagents', name)].flatMap(agentFile)[0];
}

/** The agents beside a transcript that no tool call may ever name: 2.0 warms itself up with some. */
export function agentFilesBeside(transcriptPath: string): AgentFile[] {
  const folder = dirname(transcriptPath);
  return listed(folder, false).flatMap((name) => agentFile(join(folder, name)));
}

/** What the agent did, as far as its file tells: nothing where it holds no answer. */
export function readAgent({ agentId, path }: AgentFile, sessionId: string): AgentThread | undefined {
  const reader = TranscriptReader.open(path);
  try {
    const time = () => reader.firstTime() ?? reader.status.bornAt;
    const grouper = new TurnGrouper({
      session: NO_FACTS,
      thread: 'agent',
      sessionId,
      turnCount: 0,
      line: 1,
      offset: 0,
      time,
    });
    const turns: Turn[] = [];
    for (const source of reader.lines()) {
      const line = toLine(source);
      const ended = line && grouper.push(line);
      if (ended) turns.push(ended);
    }
    const open = grouper.open();
    const [first, ...more] = open ? [...turns, open] : turns;
    return first && { key: agentId, agentId, turns: [first, ...more] };
  } finally {
    reader.close();
  }
}

/** The session that an agent's answers name; its first line may name one that was thrown away. */
export function sessionOfAgent({ path }: AgentFile): string | undefined {
  const reader = TranscriptReader.open(path);
  try {
    for (const source of reader.lines()) {
      const line = toLine(source);
      if (line?.kind === 'assistant') return line.fields.sessionId;
    }
    return undefined;
  } finally {
    reader.close();
  }
}

function agentFile(path: string): AgentFile[] {
  const [, agentId] = AGENT_FILE.exec(basename(path)) ?? [];
  const status = lstatSync(path, { throwIfNoEntry: false });
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
    const meta = AgentMeta.safeParse(parseJson(readFileSync(path, 'utf8')));
    return meta.success ? meta.data : {};
  } catch {
    return {};
  }
}

function listed(folder: string, recursive: boolean): string[] {
  try {
    return readdirSync(folder, { recursive, encoding: 'utf8' }).toSorted();
  } catch {
    return [];
  }
}
