import type { StoredObservation } from '../test/support/langfuse-server.js';

const TEXT_COLUMNS = 50;

/** Sessions, their turns and what happened in them, as a tree with durations and tokens. */
export function traceTree(observations: readonly StoredObservation[]): string {
  const sessions = new Set(observations.map(({ trace }) => String(trace.sessionId)));
  return [...sessions]
    .map((session) => {
      const ofSession = observations.filter(({ trace }) => trace.sessionId === session);
      const roots = ofSession.filter(({ parentId }) => parentId === undefined).toSorted(byStart);
      return [`Session ${session}`, ...branches(roots, ofSession, '')].join('\n');
    })
    .join('\n\n');
}

function branches(siblings: readonly StoredObservation[], all: readonly StoredObservation[], indent: string): string[] {
  return siblings.flatMap((observation, place) => {
    const isLast = place === siblings.length - 1;
    const children = all
      .filter(({ traceId, parentId }) => traceId === observation.traceId && parentId === observation.id)
      .toSorted(byStart);
    const below = indent + (isLast ? '   ' : '│  ');
    const line = `${indent}${isLast ? '└─ ' : '├─ '}${label(observation, all)}`;
    return [line, ...words(observation, below, children.length > 0), ...branches(children, all, below)];
  });
}

function label(observation: StoredObservation, all: readonly StoredObservation[]): string {
  const { type, name, level, statusMessage, usage, traceId, parentId, metadata } = observation;
  const members = parentId === undefined ? all.filter((other) => other.traceId === traceId) : [observation];
  const total = members.reduce((sum, member) => sum + (member.usage?.total ?? 0), 0);
  const mark = level === 'ERROR' ? ' ✗' : level === 'WARNING' ? ' !' : '';
  const reason = mark && statusMessage ? ` ${short(statusMessage)}` : '';
  const tokens = total > 0 ? ` · ${total.toLocaleString('en')} tokens${usage ? ` (${split(usage)})` : ''}` : '';
  const summary = typeof metadata.summary === 'string' ? ` ${short(metadata.summary)}` : '';
  return `${type} ${name}${summary}${mark}${reason} · ${duration(observation)}${tokens}`;
}

/** What was asked and answered, below a turn's own line. */
function words(observation: StoredObservation, indent: string, hasChildren: boolean): string[] {
  if (observation.parentId !== undefined) return [];
  const bar = hasChildren ? '│ ' : '  ';
  const asked = (observation.input as { content: string }[]).map(({ content }) => content).join(' + ');
  const answer = (observation.output as { content: string } | undefined)?.content;
  return [`${indent}${bar}user: ${short(asked)}`, ...(answer ? [`${indent}${bar}assistant: ${short(answer)}`] : [])];
}

function split(usage: { readonly [kind: string]: number }): string {
  const { input = 0, output = 0, cache_read_input_tokens: read = 0, total = 0 } = usage;
  const written = total - input - output - read;
  return `${input} in, ${read} cached, ${written} written, ${output} out`;
}

function duration({ startTime, endTime }: StoredObservation): string {
  const ms = endTime - startTime;
  return ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

function short(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > TEXT_COLUMNS ? `${line.slice(0, TEXT_COLUMNS)}…` : line;
}

function byStart(a: StoredObservation, b: StoredObservation): number {
  return a.startTime - b.startTime || a.endTime - b.endTime;
}
