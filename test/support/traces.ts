import { basename } from 'node:path';
import type { Destination, Limits, Outgoing } from '../../src/langfuse/destination.js';
import { encodeSpan } from '../../src/langfuse/otlp/span.js';
import { TAG_KINDS } from '../../src/observations/build/tags.js';
import type { BuildOptions } from '../../src/observations/build/trace.js';
import { buildTurn } from '../../src/observations/build/turn.js';
import type { Observation } from '../../src/observations/model.js';
import { readFirstTime, readLines } from '../../src/transcript/file/lines.js';
import type { Turn } from '../../src/transcript/turns/turn.js';
import type { StoredObservation } from './langfuse-server.js';
import { assistant, grouped, groupTurns, SESSION, user } from './lines.js';

export const OPTIONS: Omit<BuildOptions, 'sessionId'> = {
  userId: undefined,
  tags: [],
  autoTags: TAG_KINDS,
  metadata: {},
  environment: undefined,
  release: undefined,
  traceName: '{repository}',
  maxChars: 200_000,
  redact: undefined,
  capture: 'full',
  scores: false,
  media: true,
  input: 'answered',
  repository: undefined,
  caller: {},
};

/** Reads the turns of a finished transcript. */
export function turnsOf(path: string, sessionId = basename(path, '.jsonl')): Turn[] {
  const { all } = grouped(readLines(path), sessionId, () => readFirstTime(path));
  return [...all];
}

/** Builds what is sent for so many turns, only the roots, in order. */
export function someOutgoing(count: number): Outgoing[] {
  return someObservations(count).map(outgoing);
}

export function someObservations(count: number): Observation[] {
  const lines = Array.from({ length: count }, (_, n) => [
    user(`question ${n}`),
    assistant(`m${n}`, `answer ${n}`),
  ]).flat();
  return groupTurns(lines).all.map((turn) => buildTurn(turn, { ...OPTIONS, sessionId: SESSION }).root);
}

export function outgoing(observation: Observation): Outgoing {
  return { observation, json: encodeSpan(observation) };
}

/** Writes traces as text to be read and compared. What all observations of a trace share is written once. */
export function describeTraces(observations: readonly StoredObservation[]): string {
  const traces = new Map<string, StoredObservation[]>();
  for (const observation of observations) {
    traces.set(observation.traceId, [...(traces.get(observation.traceId) ?? []), observation]);
  }
  const described = [...traces].map(([id, members]) => {
    // A newer server reads the trace's metadata from the root, which alone has all of it.
    const shared = new Set(members.map(({ trace: { metadata: _, ...trace } }) => JSON.stringify(trace)));
    if (shared.size > 1)
      throw new Error(`the observations of trace ${id} do not agree on it: ${[...shared].join('\n')}`);
    const first = members.find(({ parentId }) => parentId === undefined) ?? members[0];
    return { id, ...first?.trace, observations: members.toSorted(byPlace).map(describe) };
  });
  return `${JSON.stringify(
    described.toSorted((a, b) => startOf(a).localeCompare(startOf(b))),
    null,
    1,
  )}\n`;
}

function describe({ traceId: _, trace, startTime, endTime, ...rest }: StoredObservation) {
  const { id, parentId, type, name, metadata, ...more } = rest;
  const time = (ms: number) => new Date(ms).toISOString();
  const own = { metadata: withoutShared(metadata, trace.metadata) };
  return { type, name, id, parentId, start: time(startTime), end: time(endTime), ...more, ...own };
}

/** What an observation's metadata says besides the trace's, which Langfuse lays over it. */
export function withoutShared(metadata: StoredObservation['metadata'], shared: StoredObservation['metadata']) {
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => !(key in shared)));
}

function startOf({ observations: [first] }: { observations: readonly { start: string }[] }): string {
  return first?.start ?? '';
}

/** The root first, the others by time, then by id. */
function byPlace(a: StoredObservation, b: StoredObservation): number {
  const rank = ({ parentId }: StoredObservation) => (parentId === undefined ? 0 : 1);
  return rank(a) - rank(b) || a.startTime - b.startTime || a.id.localeCompare(b.id);
}

/** Sends observations; returns what became of them, and why not of all, in words. */
export async function send(destination: Pick<Destination, 'send'>, outgoing: readonly Outgoing[], limits: Limits) {
  const { failure, ...report } = await destination.send(outgoing, limits);
  return { ...report, failure: failure?.text };
}
