import type { LangfuseServer, StoredObservation } from '../support/langfuse-server.js';
import type { Served } from './messages-api.js';
import type { Held } from './transcripts.js';

/** Whatever a server does not have exactly as it was said: each response and each tool call once, and all in their places. */
export function differences(
  server: LangfuseServer,
  { responses, toolCalls }: Held,
  served: readonly Served[],
): string[] {
  const { observations, lost } = server;
  const idsOf = (type: string, field: string) =>
    observations.filter((observation) => observation.type === type).map(({ metadata }) => String(metadata[field]));
  const saidIds = [...responses, ...served.map(({ id }) => id)];
  const calledIds = [...toolCalls, ...served.flatMap(({ toolUseIds }) => toolUseIds)];
  const sentAgain = observations.filter((one) => server.timesSent(one) > timesAllowed(one));
  return [
    ...notOnce('response', saidIds, idsOf('generation', 'message_id')),
    ...notOnce('tool call', calledIds, idsOf('tool', 'tool_id')),
    ...orphansAmong(observations).map(({ type, name }) => `${type} ${name} has no parent`),
    ...sentAgain.map(({ type, name }) => `${type} ${name} was sent again`),
    ...(lost > 0 ? [`${lost} observations were refused`] : []),
  ];
}

function notOnce(what: string, expected: readonly string[], got: readonly string[]): string[] {
  const isExpected = new Set(expected);
  return [...new Set([...expected, ...got])].flatMap((id) => {
    if (!isExpected.has(id)) return [`${what} ${id} was never given`];
    const times = got.filter((each) => each === id).length;
    return times === 1 ? [] : [`${what} ${id} is there ${times} times`];
  });
}

function orphansAmong(observations: readonly StoredObservation[]): StoredObservation[] {
  const ids = new Set(observations.map(({ traceId, id }) => `${traceId} ${id}`));
  return observations.filter(({ traceId, parentId }) => parentId !== undefined && !ids.has(`${traceId} ${parentId}`));
}

/** A turn that goes on, or an agent, comes again with its new end; a compaction once more, when its cost is known. */
function timesAllowed({ type, name }: StoredObservation): number {
  if (type === 'agent') return Number.POSITIVE_INFINITY;
  return name === 'compaction' ? 2 : 1;
}
