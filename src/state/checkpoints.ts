import { rmSync } from 'node:fs';
import * as z from 'zod/mini';
import type { Figures } from '../observations/build/figures.js';
import { saveOwnFile } from '../shared/atomic-write.js';
import { attempt } from '../shared/attempt.js';
import { readJsonFile } from '../shared/read-file.js';
import { count, optional } from '../shared/schema.js';
import type { ResumePoint } from '../transcript/turns/resume-point.js';
import { SessionFacts } from './entry.js';

const Position = z.object({ line: count, offset: count });
const Location = z.object({ number: count, start: count, end: count });
// There can be a hundred thousand, so they are checked without copying each.
const names = z.custom<string[]>((value) => Array.isArray(value) && value.every(isText));
const idsWithTools = z.custom<[id: string, tool: string | null][]>(
  (value) => Array.isArray(value) && value.every((each) => Array.isArray(each) && isText(each[0])),
);

const Point = z.object({
  key: z.string(),
  number: count,
  countsFrom: count,
  from: Position,
  to: Position,
  waiting: z.array(Location),
  answer: optional(Location),
  lastLine: count,
  lastLineAt: optional(z.number()),
  lastMessageAt: optional(z.number()),
  inheritedTime: optional(z.number()),
  endLine: count,
  lastTime: optional(z.number()),
  session: SessionFacts,
  ids: idsWithTools,
  uuids: names,
  seen: names,
});

const Checkpoint = z.object({
  point: Point,
  figures: z.object({
    calls: count,
    failedCalls: count,
    apiErrors: count,
    linesAdded: count,
    linesRemoved: count,
    commits: names,
    pullRequest: optional(z.string()),
    compactions: count,
    contextTokens: optional(count),
    time: z.object({ model: count, tool: count, person: count, hook: count, until: z.number() }),
    hookMs: z.record(z.string(), z.number()),
    endTime: z.number(),
    lacksOutputTokens: optional(z.boolean()),
    used: z.object({ skill: optional(names), agent: optional(names), mcp: optional(names), pr: optional(names) }),
  }),
  sentLine: count,
  ended: names,
  hash: z.string(),
});

/** How far a turn that is too long for one run has been sent, and what its later lines need from the lines before. */
export interface Checkpoint {
  readonly point: ResumePoint;
  /** What was counted up to there. */
  readonly figures: Omit<Figures, 'answer'>;
  /** The last line that an observation before the point depends on: the state must say that it is acknowledged. */
  readonly sentLine: number;
  /** Agents, and the calls that started them, whose end was recorded before the point. */
  readonly ended: readonly string[];
  /** A hash of both ends of the part that is not read again. */
  readonly hash: string;
}

const CheckpointFile = z.object({ version: z.literal(1), checkpoints: z.array(Checkpoint) });

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** A file that cannot be read is as good as none: then turns are read from their beginning. */
export function readCheckpoints(path: string): Checkpoint[] {
  return CheckpointFile.safeParse(readJsonFile(path)).data?.checkpoints ?? [];
}

/** Replaces the file, or removes it if there are none. That it could not be written only costs time. */
export function writeCheckpoints(path: string, checkpoints: readonly Checkpoint[]): void {
  const listed = checkpoints.map(({ point, ...rest }) => {
    const { ids, uuids, seen } = point;
    return { ...rest, point: { ...point, ids: [...ids], uuids: [...uuids], seen: [...seen] } };
  });
  attempt(() => {
    if (listed.length === 0) return rmSync(path, { force: true });
    saveOwnFile(path, JSON.stringify({ version: 1, checkpoints: listed }));
  });
}
