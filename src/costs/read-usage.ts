import { mkdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { attempt } from '../shared/attempt.js';
import { groupBy } from '../shared/group-by.js';
import { hashText } from '../shared/hash.js';
import { type AgentFile, AgentFolders, identifyMeta } from '../transcript/agents/agent-files.js';
import { findTranscripts, projectsFolder } from '../transcript/sessions/find-transcripts.js';
import { recallFirstPrompts } from '../transcript/sessions/overview.js';
import { FirstPrompts } from '../transcript/sessions/related-sessions.js';
import { SessionIndex } from '../transcript/sessions/session-index.js';
import { addUpResponses } from './add-up.js';
import { readCauses } from './causes/read-causes.js';
import {
  type PackedCauses,
  type PackedUsage,
  packCauses,
  packUsage,
  unpackCauses,
  unpackUsage,
} from './packed-uses.js';
import { scanSession } from './scan-session.js';
import { type SessionScan, type SessionUsage, USED_KINDS } from './session-usage.js';

/** What is remembered beside what a session used, to find its forks and what it was forked from without reading the rest. */
interface Relations extends Pick<SessionUsage, 'sessionId' | 'parent' | 'firstPrompt'> {
  /** Identifies the state of the files of all sessions that begin with the same prompt; empty if there is no other. */
  readonly family: string;
}

/** What other versions remembered, or with other kinds of usage, is not used. */
const VERSION = `8.${hash(USED_KINDS.join(' '))}`;

interface ReadingOptions {
  /** Of what is not remembered, only these transcripts are read, and those from which they were forked. */
  readonly wanted?: readonly string[];
  readonly onUnreadable?: (path: string, error: unknown) => void;
  /** The caller saves it. */
  readonly index?: SessionIndex;
  /** Is called before each transcript with how many have been looked at, and how many there are. */
  readonly onRead?: (done: number, all: number) => void;
  /** Whether to find out what caused each use. The first time, this takes four times as long. */
  readonly withCauses?: boolean;
}

/** What is the same for all transcripts that are read. */
interface Reading {
  readonly index: SessionIndex;
  readonly agentFolders: AgentFolders;
  /** Where causes are remembered; undefined if they are not asked for. */
  readonly causes: SessionIndex | undefined;
  /** Says that a file cannot be read: once, although those of forks are read twice. */
  readonly report: (path: string, error: unknown) => void;
  /** Leaves out a transcript that cannot be read. */
  readonly tryRead: (path: string, read: () => void) => void;
}

/** Reads what the sessions on disk used. What has not changed since the last time is not read again. */
export function readAllUsage(
  claudeFolder: string,
  stateFolder: string,
  { wanted, onUnreadable = () => {}, index: opened, onRead, withCauses = false }: ReadingOptions = {},
): SessionUsage[] {
  const index = opened ?? new SessionIndex(stateFolder);
  const causes = withCauses ? new SessionIndex(stateFolder, 'causes') : undefined;
  const reported = new Set<string>();
  const report = (path: string, error: unknown) => {
    // Without projects there is nothing to read, and Claude Code deletes old transcripts.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' && !reported.has(path)) onUnreadable(path, error);
    reported.add(path);
  };
  const tryRead = (path: string, read: () => void) => {
    try {
      read();
    } catch (error) {
      index.forget(path);
      causes?.forget(path);
      report(path, error);
    }
  };
  const reading = { index, agentFolders: new AgentFolders(), causes, report, tryRead };
  const findRelatives = wanted && createRelativeFinder(index);
  const sessions: KnownSession[] = [];
  const queue = new Set(wanted ?? listTranscripts(claudeFolder, report));
  let done = 0;
  // It grows meanwhile.
  for (const transcript of queue) {
    onRead?.(done, queue.size);
    done += 1;
    tryRead(transcript, () => {
      const session = readSession(transcript, reading);
      sessions.push(session);
      for (const relative of findRelatives?.(session) ?? []) queue.add(relative);
    });
  }
  joinRelatives(sessions, reading);
  if (!wanted) {
    index.keepOnly([...queue]);
    causes?.keepOnly([...queue]);
    // Who only wants a list creates no folder.
    attempt(() => mkdirSync(stateFolder, { recursive: true, mode: 0o700 }));
  }
  if (!opened) index.save();
  causes?.save();
  return dropCopies(sessions.flatMap((session) => recall(session, reading)));
}

/** Returns a function that lists the transcripts with which a session may share responses: as far as is remembered, and its parent. */
function createRelativeFinder(index: SessionIndex): (session: KnownSession) => string[] {
  const known = [...index.readAll<Relations>('relations')];
  const names = known.flatMap(([path, relations]) => listNames(relations).map((name) => ({ name, path })));
  const all = [...names, ...recallFirstPrompts(index)];
  const [byName, byPath] = [groupBy(all, ({ name }) => name), groupBy(all, ({ path }) => path)];
  return ({ path, relations }) => {
    const own = [...listNames(relations), ...(byPath.get(path) ?? []).map(({ name }) => name)];
    const alike = own.flatMap((name) => byName.get(name) ?? []);
    return [...alike.map((each) => each.path), findParentPath(path, relations.parent) ?? []].flat();
  };
}

/** Reads what one session used, and the sessions from which it was forked. */
export function readUsageWithParents(path: string): SessionUsage[] {
  const seen = new Set<string>();
  return scanRelatives(path).map(({ scan }) => addUpResponses(scan, seen));
}

/**
 * Reads what one session used, what caused that, and the sessions from which it was forked, also if only their first prompts say so.
 * Undefined if its transcript cannot be read.
 */
export function readCausesWithRelatives(path: string) {
  const scans = scanRelatives(path, new FirstPrompts());
  const own = scans.find(({ scan }) => scan.path === path);
  if (!own) return undefined;
  const causes = readCauses(path, own.agents);
  const seen = new Set<string>();
  const sessions = scans.map(({ scan }) => addUpResponses(scan, seen, scan === own.scan ? causes : undefined));
  return { sessions, causes, responses: own.scan.responses };
}

/** Reads a session, its parents and, if asked for, those beside it that begin with the same prompt: the oldest first. */
function scanRelatives(path: string, firstPrompts?: FirstPrompts) {
  const folders = new AgentFolders();
  const scans: { readonly scan: SessionScan; readonly agents: readonly AgentFile[] }[] = [];
  const queue = new Set([path]);
  // It grows meanwhile.
  for (const current of queue) {
    const agents = folders.findAgentFiles(current);
    const scan = attempt(() => scanSession(current, agents));
    if (!scan) continue;
    scans.push({ scan, agents });
    for (const relative of firstPrompts?.findRelated(current) ?? []) queue.add(relative);
    const parent = findParentPath(current, scan.parent);
    if (parent !== undefined) queue.add(parent);
  }
  return scans.toSorted((a, b) => compareAges(a.scan, b.scan));
}

function findParentPath(path: string, parent: string | undefined): string | undefined {
  return parent === undefined ? undefined : join(dirname(path), `${basename(parent)}.jsonl`);
}

/** A session as its files are now. */
type OpenSession = ReturnType<typeof openSession>;
type KnownSession = OpenSession & { readonly relations: Relations };

function openSession(path: string, { index, agentFolders, causes }: Reading) {
  const agents = agentFolders.findAgentFiles(path);
  const ofAgents = agents.map(({ agentId, parts: [{ inode }], bytes, changedAt: at }) => [agentId, inode, bytes, at]);
  const files = [VERSION, index.identify(path), ...(agents.length > 0 ? [hash(ofAgents.join(' '))] : [])];
  return {
    path,
    files: files.join(' '),
    meta: causes ? hash(agents.map(identifyMeta).join(' ')) : '',
    scan: () => scanSession(path, agents),
    readCauses: () => readCauses(path, agents),
  };
}

function readSession(path: string, reading: Reading): KnownSession {
  const { index, causes } = reading;
  const session = openSession(path, reading);
  const known = index.read<Relations>(path, 'relations', session.files);
  const isKnown = known && (!causes || causes.has(path, 'causes', causesKey(session, known)));
  return {
    ...session,
    relations: isKnown ? known : remember(session, session.scan(), { key: '', seen: new Set() }, reading),
  };
}

/** How far related sessions have been added up. */
interface Family {
  readonly key: Relations['family'];
  /** The ids of their responses. */
  readonly seen: Set<string>;
}

/** Adds up what a session used beside its family, and remembers it. */
function remember(session: OpenSession, scan: SessionScan, { key, seen }: Family, reading: Reading): Relations {
  const { path, files } = session;
  const { index, causes: remembered } = reading;
  for (const { path: agentPath, error } of scan.unreadable) reading.report(agentPath, error);
  if (scan.unreadable.length > 0) for (const each of [index, remembered]) each?.leaveUnsaved(path);
  const { causes, ...usage } = addUpResponses(scan, seen, remembered && session.readCauses());
  const { sessionId, parent, firstPrompt } = scan;
  const relations = { sessionId, parent, firstPrompt, family: key };
  index.write(path, 'usage', files, packUsage(usage));
  if (causes) remembered?.write(path, 'causes', causesKey(session, relations), packCauses(causes));
  return index.write(path, 'relations', files, relations);
}

/** The causes are not always remembered with the rest, which changes with the family. They have the types of agents. */
function causesKey({ files, meta }: OpenSession, { family }: Relations): string {
  return `${files} ${meta} ${family}`;
}

function recall(session: OpenSession, { index, causes }: Reading): SessionUsage[] {
  const { path, files } = session;
  const packed = index.read<PackedUsage>(path, 'usage', files);
  const relations = index.read<Relations>(path, 'relations', files);
  if (!packed || !relations) return [];
  const usage = unpackUsage(packed);
  const key = causesKey(session, relations);
  // The causes of all sessions at once would take much memory.
  return [
    {
      ...usage,
      get causes() {
        const known = causes?.read<PackedCauses>(path, 'causes', key);
        return known && unpackCauses(known);
      },
    },
  ];
}

/** Counts once what forks have copied from their parents. */
function joinRelatives(sessions: readonly KnownSession[], reading: Reading): void {
  for (const members of findFamilies(sessions)) {
    const files = members.map((session) => `${session.path} ${session.files}`).toSorted();
    const family = { key: members.length === 1 ? '' : hash(files.join('\n')), seen: new Set<string>() };
    if (members.every(({ relations }) => relations.family === family.key)) continue;
    const scans: { readonly session: KnownSession; readonly scan: SessionScan }[] = [];
    // A transcript that is remembered may no longer be readable.
    for (const session of members) reading.tryRead(session.path, () => scans.push({ session, scan: session.scan() }));
    const sorted = scans.toSorted((a, b) => compareCopies(a.scan, b.scan));
    const copies = [...groupBy(sorted, ({ scan }) => scan.sessionId).values()];
    for (const { session, scan } of copies.toSorted(([a], [b]) => compareAges(a.scan, b.scan)).flat())
      reading.tryRead(session.path, () => remember(session, scan, family, reading));
  }
}

/** Sessions that have one of these in common are related. */
function listNames({ sessionId, parent, firstPrompt }: Relations): string[] {
  return [sessionId, parent, firstPrompt].filter((name) => name !== undefined);
}

/** Sessions that begin with the same prompt, or that were forked from one another. */
function findFamilies(sessions: readonly KnownSession[]): KnownSession[][] {
  const namesOf = ({ relations }: KnownSession) => listNames(relations);
  const families = new Map<string, KnownSession[]>();
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

/** Of all copies of a session, the one that goes furthest comes first: its account may include what the others end with. */
function compareCopies(a: Copy, b: Copy): number {
  return b.endedAt - a.endedAt || b.points.length - a.points.length;
}
type Copy = Pick<SessionUsage, 'endedAt' | 'points'>;

/** A session may have been copied, or moved to another project while it was read. */
function dropCopies(sessions: readonly SessionUsage[]): SessionUsage[] {
  const byId = groupBy(sessions, ({ sessionId }) => sessionId);
  return [...byId.values()].map((copies) => {
    const [latest = copies[0]] = copies.toSorted(compareCopies);
    return copies.length === 1 ? latest : joinCopies(latest, copies);
  });
}

function joinCopies(latest: SessionUsage, copies: readonly SessionUsage[]): SessionUsage {
  const uses = copies.flatMap((copy) => copy.uses);
  const causes = copies.flatMap((copy) => copy.causes ?? []);
  if (causes.length === 0) return { ...latest, uses };
  const [tasks, parts] = [causes.flatMap((each) => each.tasks), causes.flatMap((each) => each.parts)];
  return { ...latest, uses, causes: { tasks, parts } };
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

function hash(text: string): string {
  return hashText(text).slice(0, 16);
}
