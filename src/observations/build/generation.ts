import { listAdvisorUses } from '../../transcript/file/token-kinds.js';
import { findRequestTime, mayLackOutputTokens, type Response, type WorkedFor } from '../../transcript/turns/turn.js';
import { buildInputMessages, buildOutputMessage } from '../content/messages.js';
import type { Observation, ObservationDraft } from '../model.js';
import { deriveSpanId } from './ids.js';
import { nameModel } from './model-name.js';
import { type BuildContext, buildObservation, type UnbuiltObservation } from './observation.js';
import { buildTool, findLastLine } from './tool.js';
import { countUsage, describeContext, describeGeo, isCount } from './usage.js';
import { listWebSearchFee } from './web-search.js';

/** Lists the generation of a response, and the tools that it called. */
export function listGenerationWithTools(response: Response, context: BuildContext) {
  const nativeId = response.id ?? response.uuid ?? `${context.fileId}:${response.firstLine}`;
  const id = deriveSpanId(context.trace, 'generation', nativeId);
  const generation = { line: response.lastLine, key: response.id, build: () => buildGeneration(response, id, context) };
  const others: UnbuiltObservation[] = [
    ...response.calls.map((call, index) => ({
      line: findLastLine(call),
      key: call.id,
      build: () => buildTool(call, index, id, context),
    })),
    ...listWebSearchFee(response, id, context),
    ...listAdvisors(response, id, context),
  ];
  return { generation, others };
}

function buildGeneration(response: Response, id: string, context: BuildContext): Observation {
  const { request, usage: counts, firstBlockAt, firstBlockStartedAt } = response;
  const startTime = findRequestTime(response);
  const isStartKnown =
    firstBlockStartedAt !== undefined && firstBlockStartedAt >= startTime && firstBlockStartedAt <= firstBlockAt;
  const model = response.model && nameModel(response.model);
  const usage = countUsage(counts);
  const thinkingTokens = counts?.output_tokens_details?.thinking_tokens;
  const problem = describeProblem(response);
  return buildObservation(context, {
    type: 'generation',
    id,
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
      output_tokens_uncertain: mayLackOutputTokens(response) || undefined,
      model: model === response.model ? undefined : response.model,
      web_search_requests: counts?.server_tool_use?.web_search_requests || undefined,
      ...describeWorkedFor(response.workedFor, context),
      ...describeContext(counts),
      thinking_tokens: isCount(thinkingTokens) ? thinkingTokens || undefined : undefined,
      thinking_ms: isCount(response.thinkingMs) ? response.thinkingMs : undefined,
      retries: response.retries || undefined,
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
      ...describeGeo(counts),
    },
    usage,
    requestRef: request?.id,
    line: response.lastLine,
  });
}

/** Lists a generation for each advisor that a response asked. The API runs this other model, and its advice is the call's result. */
function listAdvisors(response: Response, generation: string, context: BuildContext): UnbuiltObservation[] {
  const { usage, calls, firstBlockAt, lastBlockAt, lastLine: line } = response;
  const answered = calls.filter(({ name, result }) => name === 'advisor' && !result?.isError);
  return listAdvisorUses(usage).map((used, index) => {
    const { at = firstBlockAt, result } = answered[index] ?? {};
    const build = () =>
      buildObservation(context, {
        type: 'generation',
        id: deriveSpanId(context.trace, 'generation', `advisor:${index}:${generation}`),
        parentId: generation,
        name: 'advisor',
        startTime: at,
        endTime: Math.max(at, result?.at ?? lastBlockAt),
        metadata: describeContext(used.usage),
        level: 'DEFAULT',
        model: used.model && nameModel(used.model),
        modelParameters: describeGeo(used.usage),
        usage: countUsage(used.usage),
        line,
      });
    return { line, key: response.id, build };
  });
}

type Metadata = ObservationDraft['metadata'];

function describeWorkedFor(workedFor: WorkedFor, { agentType }: BuildContext): Metadata {
  return {
    agent_type: workedFor.attributionAgent ?? agentType,
    skill: workedFor.attributionSkill,
    plugin: workedFor.attributionPlugin,
    mcp_server: workedFor.attributionMcpServer,
    mcp_tool: workedFor.attributionMcpTool,
  };
}

function describeProblem({ aborted, stopReason }: Response): string | undefined {
  if (aborted) return 'aborted while streaming';
  if (stopReason === 'refusal') return 'the model refused';
  if (stopReason === 'model_context_window_exceeded') return 'cut at the end of the context window';
  return stopReason === 'max_tokens' ? 'cut at max_tokens' : undefined;
}
