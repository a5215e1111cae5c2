import { lstatSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { attempt } from '../../shared/attempt.js';
import { groupBy } from '../../shared/group-by.js';
import { memoize } from '../../shared/memoize.js';
import { isOlder } from '../../shared/version.js';
import { readLines } from '../file/lines.js';
import { classifyLine } from '../turns/classify-line.js';

/** The name of a session, and so of its transcript. */
export const SESSION_ID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const MAX_HEAD_LINES = 20;

/** A transcript that was moved to another project's folder, as a worktree's is, keeps its name. */
export function locateTranscript(path: string, sessionId: string): string | undefined {
  if (isFile(path)) return path;
  if (!SESSION_ID.test(sessionId)) return undefined;
  const projects = dirname(dirname(path));
  const folders = attempt(() => lstatSync(projects).isDirectory()) ? readdirSync(projects) : [];
  return folders.map((name) => join(projects, name, `${sessionId}.jsonl`)).find(isFile);
}

function isFile(path: string): boolean {
  return attempt(() => lstatSync(path, { throwIfNoEntry: false })?.isFile()) ?? false;
}

/**
 * The session that a transcript continues, whose last Stop may never have fired: the transcript's first line, or its
 * first user line, still has that session's id. The id becomes part of a path, so it must be a UUID.
 */
export function findPreviousSession(path: string, sessionId: string): { sessionId: string; path: string } | undefined {
  const previous = findForeignSessionId(path, sessionId);
  if (previous === undefined || !SESSION_ID.test(previous)) return undefined;
  const previousPath = join(dirname(path), `${previous}.jsonl`);
  const isFile = lstatSync(previousPath, { throwIfNoEntry: false })?.isFile();
  return isFile ? { sessionId: previous, path: previousPath } : undefined;
}

function findForeignSessionId(path: string, sessionId: string): string | undefined {
  for (const line of readLines(path)) {
    const { number } = line.location;
    const named = 'fields' in line && 'sessionId' in line.fields ? line.fields.sessionId : undefined;
    const isFirst = line.kind === 'user' || number === 1;
    if (isFirst && named !== undefined && named !== sessionId) return named;
    if (line.kind === 'user' || line.kind === 'assistant' || number >= MAX_HEAD_LINES) return undefined;
  }
  return undefined;
}

/** The uuid of the first prompt: a fork has the same. Reads as far as necessary, since an image can make it very long. */
export function findFirstPromptUuid(path: string): string | undefined {
  for (const line of readLines(path))
    if (line.kind === 'user' && classifyLine(line).role === 'prompt') return line.fields.uuid;
  return undefined;
}

export interface UserLinePlace {
  readonly uuid: string;
  readonly line: number;
  /** The session that the line names. */
  readonly named: string | undefined;
  /** Its first byte, and the one after it. */
  readonly start: number;
  readonly end: number;
}

/** The user lines of a transcript up to a line, with their uuids. */
export function listUserLines(path: string, upToLine = Number.POSITIVE_INFINITY): UserLinePlace[] {
  const found: UserLinePlace[] = [];
  for (const line of readLines(path)) {
    const { number, start, end } = line.location;
    if (number > upToLine) break;
    if (line.kind === 'user' && line.fields.uuid !== undefined)
      found.push({ uuid: line.fields.uuid, line: number, named: line.fields.sessionId, start, end });
  }
  return found;
}

/** The newest version in which nothing but equal uuids marks what a fork has copied. */
const LAST_WITHOUT_MARK = '2.1.197';

/** Whether a fork that this version of Claude Code makes may have no mark. */
export function forksWithoutMark(version = ''): boolean {
  return !isOlder(LAST_WITHOUT_MARK, version);
}

/** The first prompts of the transcripts in each folder, read once. */
export class FirstPrompts {
  readonly #read = memoize(readFirstPrompts);

  /** The transcripts beside this one that begin with the same prompt: one is a fork of the other. */
  findRelated(path: string): string[] {
    const known = this.#read(dirname(path));
    const own = attempt(() => findFirstPromptUuid(path));
    return (known.get(own ?? '') ?? []).filter((other) => other !== path);
  }
}

/** The paths by the uuids of the first prompts, and those without one under `undefined`. */
function readFirstPrompts(folder: string) {
  const names = readdirSync(folder).filter((each) => each.endsWith('.jsonl') && !each.startsWith('agent-'));
  const paths = names.map((name) => join(folder, name));
  return groupBy(paths, (path) => attempt(() => findFirstPromptUuid(path)));
}
