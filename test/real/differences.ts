import type { LangfuseServer, StoredObservation } from '../support/langfuse-server.js';
import type { Served } from './messages-api.js';
import type { TranscriptContent } from './transcripts.js';

/** Lists what a server does not have as it should: each response and each tool call once, and everything in its place. */
export function differences(
  server: LangfuseServer,
  { responses, toolCalls, states }: TranscriptContent,
  served: readonly Served[],
): string[] {
  const { observations, lost } = server;
  const idsOf = (type: string, field: string) =>
    observations.filter((observation) => observation.type === type).map(({ metadata }) => String(metadata[field]));
  const responseIds = [...responses, ...served.map(({ id }) => id)];
  const toolCallIds = [...toolCalls, ...served.flatMap(({ toolUseIds }) => toolUseIds)];
  const sentAgain = observations.filter((one) => server.timesSent(one) > timesAllowed(one, states));
  return [
    ...notOnce('response', responseIds, idsOf('generation', 'message_id')),
    ...notOnce('tool call', toolCallIds, idsOf('tool', 'tool_id')),
    ...orphansAmong(observations).map(({ type, name }) => `${type} ${name} has no parent`),
    ...sentAgain.map(({ type, name }) => `${type} ${name} was sent again`),
    ...(lost > 0 ? [`${lost} observations were refused`] : []),
  ];
}

function notOnce(what: string, expected: readonly string[], got: readonly string[]): string[] {
  const isExpected = new Set(expected);
  return [...new Set([...expected, ...got])].flatMap((id) => {
    if (!isExpected.has(id)) return [`${what} ${id} was never made`];
    const times = got.filter((each) => each === id).length;
    return times === 1 ? [] : [`${what} ${id} is there ${times} times`];
  });
}

function orphansAmong(observations: readonly StoredObservation[]): StoredObservation[] {
  const ids = new Set(observations.map(({ traceId, id }) => `${traceId} ${id}`));
  return observations.filter(({ traceId, parentId }) => parentId !== undefined && !ids.has(`${traceId} ${parentId}`));
}

/**
 * Turns and agents that continue are sent again with their new end, a compaction once more when its cost is known, and a
 * tool call in each of its states.
 */
function timesAllowed({ type, name, metadata }: StoredObservation, states: TranscriptContent['states']): number {
  if (type === 'agent') return Number.POSITIVE_INFINITY;
  if (type === 'tool') return states.get(String(metadata.tool_id)) ?? 1;
  return name === 'compaction' ? 2 : 1;
}
