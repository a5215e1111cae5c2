import type { Observation, Usage } from '../../observations/model.js';
import type { Json } from '../../shared/json.js';
import { type Attributes, encodeSpan } from './span.js';

/**
 * Encodes an observation for other backends than Langfuse, too: with its attributes, and with those of OpenTelemetry's conventions
 * for generative AI (open-telemetry/semantic-conventions-genai as of October 2026, schema gen-ai-dev/1.42.0-dev).
 *
 * Langfuse must read the span as if the conventions' attributes were not there. Where its own attribute is missing it reads
 * theirs (packages/shared/src/server/otel/OtelIngestionProcessor.ts), so none of them says more than its own do. There it also
 * drops model, usage and cost of an `invoke_agent`: no agent has any. A tool is named after `gen_ai.tool.name`.
 */
export function encodeGenAiSpan(observation: Observation): string {
  const { level, statusMessage: message } = observation;
  const attributes = describe(observation);
  const kind = attributes['gen_ai.operation.name'] === 'chat' ? { kind: CLIENT } : {};
  if (level !== 'ERROR') return encodeSpan(observation, { ...kind, attributes });
  return encodeSpan(observation, {
    ...kind,
    status: { code: ERROR, message },
    attributes: { ...attributes, 'error.type': nameError(observation) },
  });
}

const CLIENT = 3;
const ERROR = 2;

/** An event is no operation of the conventions. */
function describe(observation: Observation): Attributes {
  const conversation = { 'gen_ai.conversation.id': observation.trace.sessionId };
  switch (observation.type) {
    case 'agent':
      return { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': nameAgent(observation), ...conversation };
    case 'generation':
      return isInference(observation) ? { ...describeInference(observation), ...conversation } : {};
    case 'tool':
      return { ...describeTool(observation), ...conversation };
    case 'event':
      return {};
    default:
      return observation.type satisfies never;
  }
}

/** Otherwise it is a fee. */
function isInference({ cost }: Observation): boolean {
  return cost === undefined;
}

function nameAgent({ trace, parentId, name, metadata }: Observation): string {
  const isTurn = parentId === trace.parentId && trace.metadata.turn_number !== undefined;
  return isTurn ? 'Claude Code' : (asText(metadata.agent_type) ?? name);
}

function describeInference({ level, model, modelParameters = {}, usage, metadata }: Observation): Attributes {
  const { max_tokens: maxTokens, effort } = modelParameters;
  // What ended abnormally has a reason of its own, or none.
  const reason = asText(metadata.stop_reason) ?? (level === 'DEFAULT' ? undefined : 'error');
  return {
    'gen_ai.operation.name': 'chat',
    // On Bedrock and Vertex, too, Claude Code speaks Anthropic's API.
    'gen_ai.provider.name': 'anthropic',
    'gen_ai.request.model': model,
    'gen_ai.request.max_tokens': Number.isSafeInteger(maxTokens) ? maxTokens : undefined,
    'gen_ai.request.reasoning.level': asText(effort),
    'gen_ai.response.model': model && (asText(metadata.model) ?? model),
    'gen_ai.response.id': asText(metadata.message_id),
    'gen_ai.response.finish_reasons': reason === undefined ? undefined : [reason],
    ...(usage && describeUsage(usage)),
  };
}

/** The conventions count what was read from the cache or written to it as input, too. */
function describeUsage({ input = 0, output, cache_read_input_tokens: read, ...writes }: Usage): Attributes {
  const { cache_creation_input_tokens, input_cache_creation_5m, input_cache_creation_1h } = writes;
  const known = [cache_creation_input_tokens, input_cache_creation_5m, input_cache_creation_1h].filter(
    (tokens) => tokens !== undefined,
  );
  const written = known.length > 0 ? known.reduce((sum, tokens) => sum + tokens, 0) : undefined;
  return {
    'gen_ai.usage.input_tokens': input + (read ?? 0) + (written ?? 0),
    'gen_ai.usage.output_tokens': output,
    'gen_ai.usage.cache_read.input_tokens': read,
    'gen_ai.usage.cache_write.input_tokens': written,
    // Its name up to version 1.41, the last with a release: the one that backends know.
    'gen_ai.usage.cache_creation.input_tokens': written,
  };
}

function describeTool({ name, metadata }: Observation): Attributes {
  const id = asText(metadata.tool_id);
  return {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': name,
    'gen_ai.tool.call.id': id,
    // The API runs its own tools itself.
    'gen_ai.tool.type': id?.startsWith('srvtoolu_') ? 'extension' : 'function',
  };
}

/** Says by which of few reasons something failed: how a turn ended, why a call was denied, what the API answered. */
function nameError({ type, metadata: { outcome, denied, status } }: Observation): string {
  const known = asText(outcome) ?? asText(denied) ?? (typeof status === 'number' ? String(status) : undefined);
  return known ?? (type === 'tool' ? 'tool_error' : '_OTHER');
}

function asText(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
