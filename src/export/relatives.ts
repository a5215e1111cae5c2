import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { attempt } from '../shared/attempt.js';
import { type Entry, withProgressAt } from '../state/entry.js';
import { coversLines, type Mute } from '../state/runs.js';
import {
  forksWithoutMark,
  listUserLines,
  readSharedUuids,
  readUserUuids,
} from '../transcript/sessions/related-sessions.js';
import { listTimes, type Turn } from '../transcript/turns/turn.js';
import { isMutedAt } from './ledger.js';
import type { SessionRun } from './session-run.js';

/** A session that begins with the same prompt, and has been exported: one of the two is a fork of the other. */
export interface Relative {
  readonly sessionId: string;
  /** The prompts that it has exported itself; its transcript is read for them. */
  readonly prompts: () => ReadonlySet<string>;
}

interface RelatedRun extends SessionRun {
  relatives?: readonly Relative[];
  /** The prompts of sessions on disk that begin with the same one; read when the first of them matters. */
  sharedPrompts?: ReadonlySet<string>;
  mutedPrompts?: MutedPrompts;
}

export type MutedPrompts = ReadonlyMap<string, readonly { readonly line: number; readonly mute: Mute }[]>;

/** Whether a turn is in another session's transcript, too, and nothing says which of the two it was copied to. */
export function isInAnotherSession({ key, context }: Turn, run: RelatedRun): boolean {
  if (!forksWithoutMark(context.version)) return false;
  run.sharedPrompts ??= readSharedUuids(run.request.path);
  return run.sharedPrompts.has(key);
}

/**
 * Whether a related session has exported a turn. Up to 2.1.197 nothing marks a fork, except that it begins with the same prompt as
 * another session. All that a fork copies, it copies at its beginning: so later turns need not be looked for.
 */
export function isExportedByRelative({ key, start: { offset } }: Turn, run: RelatedRun): boolean {
  const { start, writer } = run;
  const { copiedLine = 0, relatives: known } = writer.known;
  // An earlier run has found that the last exported turn is the session's own.
  if (key === start.prompt && start.lastLine > copiedLine) return false;
  run.relatives ??= findRelatives(key, run);
  const later = known && !isReadAfresh(run) && offset >= known.bytes ? known.sessions : [];
  return run.relatives.some(({ sessionId, prompts }) => !later.includes(sessionId) && prompts().has(key));
}

/** Whether the user has muted a turn in the session that an unmarked fork has copied it from, or that has copied it. */
export function isMutedElsewhere(turn: Turn, run: RelatedRun): boolean {
  if (!forksWithoutMark(turn.context.version)) return false;
  run.mutedPrompts ??= findMutedPrompts(run);
  const mutes = run.mutedPrompts.get(turn.key) ?? [];
  return mutes.some(({ line, mute }) => coversLines(mute, line, line) || isMutedAt([mute], listTimes(turn)));
}

/** The prompts of other sessions in the same folder that were muted at some time, by their uuids. */
function findMutedPrompts({ request, context }: RelatedRun): MutedPrompts {
  const prompts = new Map<string, { line: number; mute: Mute }[]>();
  for (const [sessionId, { path, mutes = [] }] of context.state.mutedSessions()) {
    if (sessionId === request.sessionId || path === undefined || dirname(path) !== dirname(request.path)) continue;
    for (const { uuid, line } of attempt(() => listUserLines(path)) ?? [])
      prompts.set(uuid, [...(prompts.get(uuid) ?? []), ...mutes.map((mute) => ({ line, mute }))]);
  }
  return prompts;
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
  return context.state.sessionsWithFirst(first, request.sessionId).flatMap(([sessionId, entry]) => {
    const { path, lastLine, copiedLine = 0 } = withProgressAt(entry, context.destinationId);
    if (path === undefined || lastLine === 0) return [];
    let prompts: ReadonlySet<string> | undefined;
    const readPrompts = () => {
      // If the file is gone, at least its first turn was exported.
      prompts ??= attempt(() => readUserUuids(path, copiedLine, lastLine)) ?? new Set([first]);
      return prompts;
    };
    return [{ sessionId, prompts: readPrompts }];
  });
}
