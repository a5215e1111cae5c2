import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { writeFileAtomically } from '../shared/atomic-write.js';
import { attempt } from '../shared/attempt.js';
import { AgentFolders, findAgentFiles, findLegacyAgentFiles } from '../transcript/agents/agent-files.js';
import { findTranscripts, projectsFolder } from '../transcript/sessions/find-transcripts.js';
import { addUpResponses, type SessionScan, type SessionUsage, scanSession } from './session-usage.js';

/** What is remembered of a session, as long as its files and those of its forks and parents have not changed. */
interface Remembered {
  /** Identifies the state of the session's files. */
  readonly files: string;
  /** Identifies the state of the files of all sessions that begin with the same prompt; empty if there is no other. */
  readonly relatives: string;
  readonly usage: SessionUsage;
}

type Memory = { [path: string]: Remembered };

/** Remembered files of other versions are thrown away. */
const VERSION = 1;

/** Where the costs are remembered: times, counts, models, branches and folders, but nothing that was said. */
export function costsPath(stateFolder: string): string {
  return join(stateFolder, 'cc-langfuse_costs.json');
}

interface Reading {
  /** Of what is not remembered, only these transcripts are read, and those from which they were forked. */
  readonly wanted?: readonly string[];
  readonly onUnreadable?: (path: string, error: unknown) => void;
}

/** Reads what the sessions on disk used. What has not changed since the last time is not read again. */
export function readAllUsage(
  claudeFolder: string,
  stateFolder: string,
  { wanted, onUnreadable = () => {} }: Reading = {},
): SessionUsage[] {
  const path = costsPath(stateFolder);
  const remembered = readMemory(path);
  const legacy = new AgentFolders();
  const sessions = new Map(
    listTranscripts(claudeFolder, onUnreadable).flatMap((transcript) => {
      const session = attempt(() => openSession(transcript, legacy));
      return session ? [[transcript, session] as const] : [];
    }),
  );
  const memory: Memory = {};
  let isChanged = false;
  for (const { path: known, files } of sessions.values())
    if (remembered[known]?.files === files) memory[known] = remembered[known];
    else isChanged ||= remembered[known] !== undefined;
  const queue = [...(wanted ?? sessions.keys())];
  for (const transcript of queue) {
    const session = sessions.get(transcript);
    if (!session) continue;
    let current = memory[transcript];
    try {
      current ??= remember(session);
    } catch (error) {
      onUnreadable(transcript, error);
      continue;
    }
    isChanged ||= current !== memory[transcript];
    memory[transcript] = current;
    const parent = findParentPath(transcript, current.usage.parent);
    if (wanted && parent !== undefined && !queue.includes(parent)) queue.push(parent);
  }
  const read = [...sessions.values()].filter((session) => memory[session.path]);
  isChanged = joinRelatives(memory, read) || isChanged || hasOther(remembered, memory);
  // Who only wants a list creates no folder. Without one, or on a full disk, the next run reads everything again.
  if (!wanted) attempt(() => mkdirSync(stateFolder, { recursive: true, mode: 0o700 }));
  if (isChanged) attempt(() => writeMemory(path, memory));
  return dropCopies(Object.values(memory).map(({ usage }) => usage));
}

/** Reads what one session used, and the sessions from which it was forked. */
export function readUsageWithParents(path: string): SessionUsage[] {
  const legacy = new AgentFolders();
  const scans: SessionScan[] = [];
  let next: string | undefined = path;
  while (next !== undefined && !scans.some((scan) => scan.path === next)) {
    const current: string = next;
    const scan = attempt(() => openSession(current, legacy).scan());
    if (scan) scans.push(scan);
    next = findParentPath(current, scan?.parent);
  }
  const seen = new Set<string>();
  return scans
    .toReversed()
    .map((scan) => addUpResponses(scan, seen))
    .toReversed();
}

function findParentPath(path: string, parent: string | undefined): string | undefined {
  return parent === undefined ? undefined : join(dirname(path), `${basename(parent)}.jsonl`);
}

type OpenSession = ReturnType<typeof openSession>;

function openSession(path: string, legacy: AgentFolders) {
  const { size, mtimeMs } = lstatSync(path);
  const sessionId = basename(path, '.jsonl');
  const agents = [
    ...findAgentFiles(path),
    ...(legacy.hasLegacyFiles(dirname(path)) ? findLegacyAgentFiles(path, sessionId) : []),
  ];
  const files = [[size, mtimeMs], ...agents.map(({ agentId, bytes, changedAt }) => [agentId, bytes, changedAt])];
  return { path, files: files.join(' '), scan: () => scanSession(sessionId, path, agents) };
}

function remember({ files, scan }: OpenSession): Remembered {
  return { files, relatives: '', usage: addUpResponses(scan(), new Set()) };
}

/** Counts once what forks have copied from their parents. Returns whether anything has changed. */
function joinRelatives(memory: Memory, sessions: readonly OpenSession[]): boolean {
  const families = new Map<string, OpenSession[]>();
  for (const session of sessions) {
    const prompt = memory[session.path]?.usage.firstPrompt;
    if (prompt !== undefined) families.set(prompt, [...(families.get(prompt) ?? []), session]);
  }
  let isChanged = false;
  for (const family of families.values()) {
    const state = family.length === 1 ? '' : hash(family.map(({ path, files }) => `${path} ${files}`).join('\n'));
    if (family.every(({ path }) => memory[path]?.relatives === state)) continue;
    isChanged = true;
    const seen = new Set<string>();
    const scans = family.map((session) => ({ ...session, scanned: session.scan() }));
    for (const { path, files, scanned } of scans.toSorted((a, b) => compareAges(a.scanned, b.scanned)))
      memory[path] = { files, relatives: state, usage: addUpResponses(scanned, seen) };
  }
  return isChanged;
}

/** The one whose own part began first is the parent. Forks of old versions have no mark for what they copied, and are longer. */
function compareAges(a: SessionScan, b: SessionScan): number {
  return a.ownFrom - b.ownFrom || a.endedAt - b.endedAt || a.path.localeCompare(b.path);
}

/** A session may have been copied, or moved to another project while it was read. */
function dropCopies(sessions: readonly SessionUsage[]): SessionUsage[] {
  const byId = new Map<string, SessionUsage>();
  for (const session of sessions) {
    const known = byId.get(session.sessionId);
    const uses = [...(known?.uses ?? []), ...session.uses];
    byId.set(session.sessionId, { ...(known && known.endedAt >= session.endedAt ? known : session), uses });
  }
  return [...byId.values()];
}

function listTranscripts(claudeFolder: string, onUnreadable: (path: string, error: unknown) => void): string[] {
  const folder = projectsFolder(claudeFolder);
  try {
    return [...findTranscripts(folder, onUnreadable)];
  } catch (error) {
    onUnreadable(folder, error);
    return [];
  }
}

function hasOther(remembered: Memory, memory: Memory): boolean {
  return Object.keys(remembered).some((path) => !Object.hasOwn(memory, path));
}

/** The first line has the version and a hash of the rest: a file that was damaged or edited is thrown away. */
function readMemory(path: string): Memory {
  const [head = '', body = ''] = (attempt(() => readFileSync(path, 'utf8')) ?? '').split('\n');
  return head === `${VERSION} ${hash(body)}` ? (JSON.parse(body) as Memory) : {};
}

function writeMemory(path: string, memory: Memory): void {
  const body = JSON.stringify(memory);
  writeFileAtomically(path, `${VERSION} ${hash(body)}\n${body}\n`, 0o600);
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
