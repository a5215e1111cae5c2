import type { OtlpSpan } from './langfuse-server.js';

// What OpenTelemetry's conventions for generative AI say about the spans that a Collector gets. Written by hand from
// model/gen-ai/registry.yaml, model/gen-ai/spans.yaml, docs/gen-ai/client-inference.md and
// docs/gen-ai/non-normative/migration.md of open-telemetry/semantic-conventions-genai, main of October 2026 (schema
// gen-ai-dev/1.42.0-dev, on version 1.44.0 of the core). That repository has no release yet. `error.type` is the core's
// (model/error/registry.yaml).

/** A list has the well-known values. All types that the spans below could use are there, also those that we do not send. */
type AttributeType = 'string' | 'string[]' | 'int' | 'double' | 'boolean' | readonly string[];

const REGISTRY: { readonly [key: string]: AttributeType } = {
  'error.type': 'string',
  'gen_ai.agent.description': 'string',
  'gen_ai.agent.name': 'string',
  'gen_ai.conversation.compacted': 'boolean',
  'gen_ai.conversation.id': 'string',
  'gen_ai.operation.name': ['chat', 'execute_tool', 'generate_content', 'invoke_agent', 'invoke_workflow', 'plan'],
  'gen_ai.provider.name': ['anthropic', 'aws.bedrock', 'azure.ai.inference', 'gcp.vertex_ai', 'openai'],
  'gen_ai.request.max_tokens': 'int',
  'gen_ai.request.model': 'string',
  'gen_ai.request.reasoning.level': 'string',
  'gen_ai.request.stream': 'boolean',
  'gen_ai.response.finish_reasons': 'string[]',
  'gen_ai.response.id': 'string',
  'gen_ai.response.model': 'string',
  'gen_ai.response.time_to_first_chunk': 'double',
  'gen_ai.tool.call.id': 'string',
  'gen_ai.tool.description': 'string',
  'gen_ai.tool.name': 'string',
  // Free text, of which the registry describes three.
  'gen_ai.tool.type': ['function', 'extension', 'datastore'],
  'gen_ai.usage.cache_read.input_tokens': 'int',
  'gen_ai.usage.cache_write.input_tokens': 'int',
  'gen_ai.usage.input_tokens': 'int',
  'gen_ai.usage.output_tokens': 'int',
  'gen_ai.usage.reasoning.output_tokens': 'int',
};

/** Names of the registry of version 1.41 of the core, and those that they have now. */
const RENAMED: { readonly [key: string]: string } = {
  'gen_ai.usage.cache_creation.input_tokens': 'gen_ai.usage.cache_write.input_tokens',
};

interface SpanType {
  readonly kind: number;
  readonly required: readonly string[];
  /** Required under a condition, or recommended. What is opt-in is content, and missing here. */
  readonly others: readonly string[];
}

const INTERNAL = 1;
const CLIENT = 3;
const ERROR = 2;

const SPAN_TYPES: { readonly [operation: string]: SpanType } = {
  // gen_ai.client.inference, with the refinement for Anthropic.
  chat: {
    kind: CLIENT,
    required: ['gen_ai.operation.name', 'gen_ai.provider.name'],
    others: [
      'error.type',
      'gen_ai.conversation.compacted',
      'gen_ai.conversation.id',
      'gen_ai.request.max_tokens',
      'gen_ai.request.model',
      'gen_ai.request.reasoning.level',
      'gen_ai.request.stream',
      'gen_ai.response.finish_reasons',
      'gen_ai.response.id',
      'gen_ai.response.model',
      'gen_ai.response.time_to_first_chunk',
      'gen_ai.usage.cache_read.input_tokens',
      'gen_ai.usage.cache_write.input_tokens',
      'gen_ai.usage.input_tokens',
      'gen_ai.usage.output_tokens',
      'gen_ai.usage.reasoning.output_tokens',
    ],
  },
  // gen_ai.execute_tool.internal
  execute_tool: {
    kind: INTERNAL,
    required: ['gen_ai.operation.name', 'gen_ai.tool.name'],
    others: [
      'error.type',
      'gen_ai.agent.name',
      'gen_ai.conversation.id',
      'gen_ai.tool.call.id',
      'gen_ai.tool.description',
      'gen_ai.tool.type',
    ],
  },
  // gen_ai.invoke_agent.internal: without a provider, an agent's id, or tokens of the cache.
  invoke_agent: {
    kind: INTERNAL,
    required: ['gen_ai.operation.name'],
    others: [
      'error.type',
      'gen_ai.agent.description',
      'gen_ai.agent.name',
      'gen_ai.conversation.id',
      'gen_ai.request.max_tokens',
      'gen_ai.request.model',
      'gen_ai.response.finish_reasons',
      'gen_ai.usage.input_tokens',
      'gen_ai.usage.output_tokens',
    ],
  },
};

type Attributes = ReadonlyMap<string, NonNullable<OtlpSpan['attributes'][number]['value']>>;

/** Reads a span as a backend does that knows only the conventions. Returns what is wrong with it. */
export function findViolations({ name, kind, status = { code: 0 }, attributes: list }: OtlpSpan): string[] {
  const ofConventions = list.filter(({ key }) => /^(?:gen_ai|error)\./.test(key));
  const attributes: Attributes = new Map(ofConventions.map(({ key, value }) => [key, value ?? {}]));
  const operation = attributes.get('gen_ai.operation.name')?.stringValue;
  const type = operation === undefined ? undefined : SPAN_TYPES[operation];
  const isError = attributes.has('error.type');
  const violations = [
    ...(attributes.size < ofConventions.length ? ['an attribute is there twice'] : []),
    ...(operation !== undefined && type === undefined ? [`no span type for the operation ${operation}`] : []),
    ...[...attributes].flatMap(([key, value]) => findAttributeViolation(key, value, type) ?? []),
    ...(type?.required.filter((key) => !attributes.has(key)).map((key) => `${key} is missing`) ?? []),
    ...(kind === (type?.kind ?? INTERNAL) ? [] : [`its kind is ${kind}`]),
    // general/recording-errors.md of the core.
    ...(isError === (status.code === ERROR) ? [] : [`its status is ${status.code}`]),
    ...(status.message !== undefined && !isError ? ['a message without an error'] : []),
    ...findUsageViolation(attributes),
  ];
  return violations.map((violation) => `${name}: ${violation}`);
}

function findAttributeViolation(
  name: string,
  value: NonNullable<OtlpSpan['attributes'][number]['value']>,
  type: SpanType | undefined,
): string | undefined {
  const key = RENAMED[name] ?? name;
  const expected = REGISTRY[key];
  if (expected === undefined) return `${name} is not in the registry`;
  const isOnSpan = type ? [...type.required, ...type.others].includes(key) : key === 'error.type';
  if (!isOnSpan) return `${name} is not an attribute of this span`;
  return hasType(value, expected) ? undefined : `${name} is ${JSON.stringify(value)}`;
}

function hasType(value: NonNullable<OtlpSpan['attributes'][number]['value']>, expected: AttributeType): boolean {
  const { stringValue, intValue, arrayValue } = value;
  // As JSON a 64-bit number is a string.
  if (expected === 'int') return typeof intValue === 'string' && /^\d+$/.test(intValue);
  if (expected === 'string[]')
    return (arrayValue?.values ?? []).length > 0 && !!arrayValue?.values.every((each) => each.stringValue);
  if (expected === 'double' || expected === 'boolean') return false;
  return !!stringValue && (expected === 'string' || expected.includes(stringValue));
}

/** What was read from the cache or written to it is a part of the input. */
function findUsageViolation(attributes: Attributes): string[] {
  const tokens = (kind: string) => Number(attributes.get(`gen_ai.usage.${kind}input_tokens`)?.intValue ?? 0);
  return tokens('cache_read.') + tokens('cache_write.') > tokens('') ? ['more cached than input tokens'] : [];
}
