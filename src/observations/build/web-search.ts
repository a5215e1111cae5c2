import type { Response } from '../../transcript/turns/turn.js';
import { deriveSpanId } from './ids.js';
import { type BuildContext, buildObservation, type UnbuiltObservation } from './observation.js';

/** What Claude Code's own account counts for one search, in dollars. */
const FEE = 0.01;

/**
 * Lists the observation that has the fee for the searches of a response, if there were any. It has one of its own, since Langfuse
 * computes nothing for an observation with a given cost: the tokens of the response would cost nothing.
 */
export function listWebSearchFee(response: Response, generation: string, context: BuildContext): UnbuiltObservation[] {
  const { usage, firstBlockAt, lastBlockAt, lastLine } = response;
  const searches = usage?.server_tool_use?.web_search_requests ?? 0;
  if (!Number.isSafeInteger(searches) || searches <= 0) return [];
  const fee = searches * FEE;
  const build = () =>
    buildObservation(context, {
      type: 'generation',
      id: deriveSpanId(context.trace, 'generation', `web search:${generation}`),
      parentId: generation,
      name: 'web search fee',
      startTime: firstBlockAt,
      endTime: lastBlockAt,
      metadata: { web_search_requests: searches },
      level: 'DEFAULT',
      cost: { web_search_requests: fee, total: fee },
      line: lastLine,
    });
  return [{ line: lastLine, key: response.id, build }];
}
