import { basename } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { attempt } from '../shared/attempt.js';
import { memoize } from '../shared/memoize.js';
import type { Entry } from '../state/entry.js';
import { coversBytes, findRun } from '../state/runs.js';
import {
  FirstPrompts,
  forksWithoutMark,
  listUserLines,
  type UserLinePlace,
} from '../transcript/sessions/related-sessions.js';
import { listTimes, type Turn } from '../transcript/turns/turn.js';
import { isMutedAt } from './run-lookup.js';
import type { SessionRun } from './session-run.js';

/** A session that begins with the same prompt, and has been exported: one of the two is a fork of the other. */
interface Relative {
  readonly sessionId: string;
  /** The prompts that it has exported itself; its transcript is read for them. */
  readonly prompts: () => ReadonlySet<string>;
}

/** Where each prompt is in the related transcripts beside this one, by its uuid. */
type SharedPrompts = ReadonlyMap<string, readonly SharedPrompt[]>;

interface SharedPrompt {
  readonly sessionId: string;
  readonly start: number;
  readonly end: number;
}

/** A run through a session, with what it has found of related sessions. */
export interface RelatedRun extends SessionRun {
  /** Sessions that turns of this one may be in, too; found when the first turn is known. */
  relatives?: readonly Relative[];
  /** Read when the first of them matters. */
  sharedPrompts?: SharedPrompts;
}

/** Whether a turn is also in another session's transcript, and nothing says which of the two is the copy. */
export function isInAnotherSession(turn: Turn, run: RelatedRun): boolean {
  return findShared(turn, run).length > 0;
}

/** Whether a turn is also in another session that has a run for it, or was muted then. That session decides what is sent. */
export function isOfAnotherSession(turn: Turn, run: RelatedRun): boolean {
  return findShared(turn, run).some(({ sessionId, start, end }) => {
    const known = run.context.state.readSession(sessionId);
    const { mutes = [] } = known ?? {};
    const isMuted = mutes.some((mute) => coversBytes(mute, start, end)) || isMutedAt(mutes, listTimes(turn));
    const isSent = known !== undefined && findRun(known, start) !== undefined;
    return isMuted || (isSent && isWholeIn(sessionId, turn, run));
  });
}

function findShared({ key, context }: Turn, run: RelatedRun) {
  if (!forksWithoutMark(context.version)) return [];
  run.sharedPrompts ??= readSharedPrompts(run);
  return run.sharedPrompts.get(key) ?? [];
}

/** A line there that names this session is a copy of this one's. */
function readSharedPrompts({ request, context }: RelatedRun): SharedPrompts {
  const { firstPrompts = new FirstPrompts() } = context;
  const shared = new Map<string, SharedPrompt[]>();
  for (const path of firstPrompts.findRelated(request.path))
    for (const { uuid, named, start, end } of attempt(() => listUserLines(path)) ?? []) {
      if (named === request.sessionId) continue;
      shared.set(uuid, [...(shared.get(uuid) ?? []), { sessionId: basename(path, '.jsonl'), start, end }]);
    }
  return shared;
}

/**
 * Whether a related session has exported a turn. Nothing may mark a fork, except that it begins with the same prompt as another
 * session: always so up to 2.1.197, and at times with 2.1.205. A fork copies only at its beginning, so later turns need not be
 * looked for.
 */
export function isExportedByRelative(turn: Turn, run: RelatedRun): boolean {
  if (!mayBeUnmarkedFork(turn, run)) return false;
  const { start, writer } = run;
  const { key } = turn;
  const { offset } = turn.start;
  const { copiedLine = 0, relatives: known } = writer.known;
  // An earlier run has found that the last exported turn is the session's own.
  if (key === start.prompt && start.lastLine > copiedLine) return false;
  run.relatives ??= findRelatives(key, run);
  const later = known && !isReadAfresh(run) && offset >= known.bytes ? known.sessions : [];
  const isExported = ({ sessionId, prompts }: Relative) => !later.includes(sessionId) && prompts().has(key);
  return run.relatives.some((relative) => isExported(relative) && isWholeIn(relative.sessionId, turn, run));
}

/** Whether a session has all of a turn. One of two forks can have gone on with it, under the same ids. */
function isWholeIn(sessionId: string, { responses }: Turn, { originals }: RelatedRun): boolean {
  return responses.every(({ id }) => originals.holds(sessionId, id) ?? true);
}

/** Looking at all sessions takes time, which a backfill has. Otherwise only what a newer version has resumed or forked is looked at. */
function mayBeUnmarkedFork(turn: Turn, { request, lookup }: RelatedRun): boolean {
  const { version } = turn.context;
  return request.occasion === 'backfill' || forksWithoutMark(version) || lookup.mayBeCopied(turn);
}

/** What the state is to keep of the related sessions that this run has found; undefined if it knows them. */
export function findNewRelatives(run: RelatedRun, bytes: number): Entry['relatives'] {
  if (!run.relatives) return undefined;
  const { sessions: known = [] } = run.writer.known.relatives ?? {};
  const sessions = run.relatives.map(({ sessionId }) => sessionId);
  return isDeepStrictEqual(sessions, known) && !isReadAfresh(run) ? undefined : { sessions, bytes };
}

/** Whether the transcript has been changed, so that it is read from the top. */
function isReadAfresh({ start, writer }: RelatedRun): boolean {
  return start.lastLine < writer.known.lastLine;
}

function findRelatives(firstKey: string, { request, context, writer }: RelatedRun): Relative[] {
  const { first = firstKey } = writer.known;
  return context.state.sessionsWithFirst(first, request.sessionId).flatMap(({ id: sessionId, path }) => {
    const { lastLine = 0, copiedLine = 0, kept = [] } = context.state.read(sessionId, context.destinationId) ?? {};
    if (path === undefined || lastLine === 0) return [];
    const readSent = () => {
      const notSent = new Set(kept.flatMap(({ prompts, why }) => (why === 'overlooked' ? [] : prompts)));
      const isSent = ({ line, start }: UserLinePlace) => line > copiedLine && !notSent.has(start);
      // If the file is gone, at least its first turn was exported.
      const lines = attempt(() => listUserLines(path, lastLine).filter(isSent));
      return new Set(lines?.map(({ uuid }) => uuid) ?? [first]);
    };
    return [{ sessionId, prompts: memoize(readSent) }];
  });
}
