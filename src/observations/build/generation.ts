import type { Response } from '../../transcript/turns/turn.js';
import { buildInputMessages, buildOutputMessage } from '../content/messages.js';
import type { Observation } from '../model.js';
import { deriveSpanId } from './ids.js';
import { type BuildContext, buildObservation } from './observation.js';
import { buildTool } from './tool.js';
import { countUsage } from './usage.js';

/** Builds a response's generation, and its tool calls below. */
export function buildGenerationWithTools(response: Response, context: BuildContext): Observation[] {
  const { request, usage: counts, firstBlockAt, firstBlockStartedAt, firstLine } = response;
  const nativeId = response.id ?? response.uuid ?? `${context.fileId}:${firstLine}`;
  const startTime = Math.min(request?.at ?? response.answeredAt ?? firstBlockAt, firstBlockAt);
  const isStartKnown =
    firstBlockStartedAt !== undefined && firstBlockStartedAt >= startTime && firstBlockStartedAt <= firstBlockAt;
  const model = response.model?.replace(/\[1m\]$/, '');
  const usage = countUsage(counts);
  const problem = describeProblem(response);
  const generation = buildObservation(
    {
      type: 'generation',
      id: deriveSpanId(context.trace, 'generation', nativeId),
      parentId: context.agentSpanId,
      name: model ?? 'generation',
      startTime,
      endTime: response.lastBlockAt,
      completionStartTime: isStartKnown ? firstBlockStartedAt : undefined,
      input: buildInputMessages(response.answered, context),
      output: buildOutputMessage(response, context),
      metadata: {
        tool_count: response.calls.length,
        message_id: response.id,
        request_id: response.requestId,
        stop_reason: response.stopReason,
        model: model === response.model ? undefined : response.model,
        web_search_requests: counts?.server_tool_use?.web_search_requests || undefined,
      },
      level: problem === undefined ? 'DEFAULT' : 'WARNING',
      statusMessage: problem,
      // Langfuse estimates the usage of a generation that has a model's name and no usage.
      model: usage && model,
      modelParameters: {
        max_tokens: request?.params?.max_tokens,
        thinking: request?.params?.thinking?.type,
        effort: request?.params?.output_config?.effort ?? response.effort,
        speed: counts?.speed,
        service_tier: counts?.service_tier,
      },
      usage,
      requestRef: request?.id,
      line: response.lastLine,
    },
    context,
  );
  return [generation, ...response.calls.map((call, index) => buildTool(call, index, generation.id, context))];
}

function describeProblem({ aborted, stopReason }: Response): string | undefined {
  if (aborted) return 'aborted while streaming';
  if (stopReason === 'refusal') return 'the model refused';
  return stopReason === 'max_tokens' ? 'cut at max_tokens' : undefined;
}
