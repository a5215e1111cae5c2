import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { replaceOwnFile } from '../shared/atomic-write.js';
import { attempt } from '../shared/attempt.js';
import { groupBy } from '../shared/group-by.js';
import { AgentFolders, findAgentFiles, findLegacyAgentFiles } from '../transcript/agents/agent-files.js';
import { findTranscripts, projectsFolder } from '../transcript/sessions/find-transcripts.js';
import { addUpResponses } from './add-up.js';
import { readCauses } from './causes/read-causes.js';
import { type SessionScan, type SessionUsage, scanSession, USED_KINDS } from './session-usage.js';

/** What is remembered of a session, as long as its files and those of its forks and parents have not changed. */
interface Remembered {
  /** Identifies the state of the session's files. */
  readonly files: string;
  /** Identifies the state of the files of all sessions that begin with the same prompt; empty if there is no other. */
  readonly relatives: string;
  readonly usage: SessionUsage;
}

type Memory = { [path: string]: Remembered };

/** Remembered files of other versions, or with other kinds of usage, are thrown away. */
const VERSION = ['3', ...USED_KINDS].join(' ');

/** Where the costs are remembered: times, counts, models, branches and folders, but nothing that was said. */
function costsPath(stateFolder: string): string {
  return join(stateFolder, 'cc-langfuse_costs.json');
}

interface Reading {
  /** Of what is not remembered, only these transcripts are read, and those from which they were forked. */
  readonly wanted?: readonly string[];
  readonly onUnreadable?: (path: string, error: unknown) => void;
  /** Whether to find out what each use was for. This takes three times as long. */
  readonly withCauses?: boolean;
}

/** Reads what the sessions on disk used. What has not changed since the last time is not read again. */
export function readAllUsage(
  claudeFolder: string,
  stateFolder: string,
  { wanted, onUnreadable = () => {}, withCauses = false }: Reading = {},
): SessionUsage[] {
  const path = costsPath(stateFolder);
  const remembered = readMemory(path);
  const memory: Memory = wanted ? { ...remembered } : {};
  const byPrompt = groupBy(wanted ? Object.entries(remembered) : [], ([, { usage }]) => usage.firstPrompt);
  const sessions: OpenSession[] = [];
  const legacy = new AgentFolders();
  const queue = new Set(wanted ?? listTranscripts(claudeFolder, onUnreadable));
  // It grows meanwhile.
  for (const transcript of queue) {
    delete memory[transcript];
    const session = attempt(() => openSession(transcript, legacy));
    if (!session) continue;
    const known = remembered[transcript];
    try {
      memory[transcript] = isKnown(known, session, withCauses) ? known : remember(session, withCauses);
    } catch (error) {
      onUnreadable(transcript, error);
      continue;
    }
    sessions.push(session);
    if (!wanted) continue;
    const { parent, firstPrompt } = memory[transcript].usage;
    for (const [relative] of firstPrompt === undefined ? [] : (byPrompt.get(firstPrompt) ?? [])) queue.add(relative);
    const parentPath = findParentPath(transcript, parent);
    if (parentPath !== undefined) queue.add(parentPath);
  }
  joinRelatives(memory, sessions, withCauses);
  // Who only wants a list creates no folder. Without one, or on a full disk, the next run reads everything again.
  if (!wanted) attempt(() => mkdirSync(stateFolder, { recursive: true, mode: 0o700 }));
  if (!isSame(memory, remembered)) attempt(() => writeMemory(path, memory));
  return dropCopies(sessions.flatMap((session) => memory[session.path]?.usage ?? []));
}

/** Reads what one session used, and the sessions from which it was forked. */
export function readUsageWithParents(path: string): SessionUsage[] {
  const seen = new Set<string>();
  const usages = scanWithParents(path).toReversed();
  return usages.map(({ scanned }) => addUpResponses(scanned, seen)).toReversed();
}

/** Reads what one session used and for what, and the sessions from which it was forked. */
export function readCausesWithParents(path: string) {
  const [own, ...parents] = scanWithParents(path);
  if (!own) return undefined;
  const seen = new Set<string>();
  const above = parents.toReversed().map(({ scanned }) => addUpResponses(scanned, seen));
  const causes = own.readCauses();
  const { responses } = own.scanned;
  return { usage: addUpResponses(own.scanned, seen, causes), parents: above, causes, responses };
}

function scanWithParents(path: string) {
  const legacy = new AgentFolders();
  const sessions: (OpenSession & { readonly scanned: SessionScan })[] = [];
  let next: string | undefined = path;
  while (next !== undefined && !sessions.some((session) => session.path === next)) {
    const current: string = next;
    const session = attempt(() => openSession(current, legacy));
    const scanned = attempt(() => session?.scan());
    if (session && scanned) sessions.push({ ...session, scanned });
    next = findParentPath(current, scanned?.parent);
  }
  return sessions;
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
  return {
    path,
    files: files.join(' '),
    scan: () => scanSession(sessionId, path, agents),
    readCauses: () => readCauses(sessionId, path, agents),
  };
}

function isKnown(known: Remembered | undefined, { files }: OpenSession, withCauses: boolean): known is Remembered {
  return known?.files === files && (known.usage.causes !== undefined || !withCauses);
}

function remember({ files, scan, readCauses }: OpenSession, withCauses: boolean): Remembered {
  return { files, relatives: '', usage: addUpResponses(scan(), new Set(), withCauses ? readCauses() : undefined) };
}

/** Counts once what forks have copied from their parents. */
function joinRelatives(memory: Memory, sessions: readonly OpenSession[], withCauses: boolean): void {
  for (const family of findFamilies(memory, sessions)) {
    const files = family.map((session) => `${session.path} ${session.files}`).toSorted();
    const state = family.length === 1 ? '' : hash(files.join('\n'));
    if (family.every(({ path }) => memory[path]?.relatives === state)) continue;
    const seen = new Set<string>();
    const scans = family.map((session) => ({ ...session, scanned: session.scan() }));
    for (const { scanned, ...session } of scans.toSorted((a, b) => compareAges(a.scanned, b.scanned)))
      memory[session.path] = {
        files: session.files,
        relatives: state,
        usage: addUpResponses(scanned, seen, withCauses ? session.readCauses() : undefined),
      };
  }
}

/** Sessions that begin with the same prompt, or that were forked from one another. */
function findFamilies(memory: Memory, sessions: readonly OpenSession[]): OpenSession[][] {
  const namesOf = ({ path }: OpenSession) => {
    const { sessionId, parent, firstPrompt } = memory[path]?.usage ?? {};
    return [sessionId, parent, firstPrompt].filter((name) => name !== undefined);
  };
  const families = new Map<string, OpenSession[]>();
  for (const session of sessions) {
    const related = new Set(namesOf(session).flatMap((name) => families.get(name) ?? []));
    const family = [...related, session];
    for (const name of family.flatMap(namesOf)) families.set(name, family);
  }
  return [...new Set(families.values())];
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

function isSame(one: Memory, other: Memory): boolean {
  const paths = Object.keys(one);
  return paths.length === Object.keys(other).length && paths.every((path) => one[path] === other[path]);
}

/** The first line has the version and a hash of the rest: a file that was damaged or edited is thrown away. */
function readMemory(path: string): Memory {
  const [head = '', body = ''] = (attempt(() => readFileSync(path, 'utf8')) ?? '').split('\n');
  return head === `${VERSION} ${hash(body)}` ? (JSON.parse(body) as Memory) : {};
}

function writeMemory(path: string, memory: Memory): void {
  const body = JSON.stringify(memory);
  replaceOwnFile(path, `${VERSION} ${hash(body)}\n${body}\n`);
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
