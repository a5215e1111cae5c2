import { formatCount, formatElapsed, plural } from '../src/cli/format.js';
import { describeOutcome } from '../src/commands/preview/text.js';
import type { ShownObservation, ShownTurn } from '../src/commands/preview/view-model.js';
import type { ObservationKey } from '../src/observations/metadata-keys.js';
import { isRecord, type Json } from '../src/shared/json.js';

type Fact = readonly [name: string, value: string];

/** What is said of an observation in words, before its input and output. */
export function listFacts(observation: ShownObservation, turn: ShownTurn): Fact[] {
  const { startTime, endTime, completionStartTime, model, modelParameters = {}, metadata } = observation;
  const facts: [string, string | undefined][] = [
    ['start', `+${formatElapsed(startTime - turn.startTime)}`],
    ['duration', formatElapsed(endTime - startTime)],
    ['first token', completionStartTime === undefined ? undefined : formatElapsed(completionStartTime - startTime)],
    ['model', model],
    ...Object.entries(modelParameters).map(([name, value]): [string, string] => [
      name.replaceAll('_', ' '),
      String(value),
    ]),
    ['result', describeOutcome(observation)],
    ...FACTS.map(([name, key, format]): [string, string | undefined] => {
      const value = metadata[key];
      return [name, value === undefined || value === null ? undefined : format(value)];
    }),
  ];
  return facts.flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, value]]));
}

type Format = (value: Json) => string;

const asText: Format = (value) => (typeof value === 'string' ? value.replaceAll('_', ' ') : JSON.stringify(value));
const asTime: Format = (value) => (typeof value === 'number' ? formatElapsed(value) : asText(value));
const asTokens: Format = (value) => (typeof value === 'number' ? plural(value, 'token') : asText(value));
const asCount: Format = (value) => (typeof value === 'number' && value > 0 ? formatCount(value) : '');
const asShare: Format = (value) => (typeof value === 'number' ? `${(value * 100).toFixed(0)}%` : asText(value));
const asTimes: Format = (value) =>
  isRecord(value)
    ? Object.entries(value)
        .map(([name, ms]) => `${name} ${asTime(ms as Json)}`)
        .join(', ')
    : asText(value);

/** The metadata that gets a label here. The details list every field below. */
const FACTS: readonly (readonly [name: string, key: ObservationKey, format: Format])[] = [
  ['permission', 'permission', asText],
  ['refused', 'denied', asText],
  ['waited for a person', 'waited_ms', asTime],
  ['exit code', 'exit_code', asText],
  ['files changed', 'files_changed', asCount],
  ['input changed by', 'input_changed_by', asText],
  ['changed arguments', 'input_changed', asText],
  ['agent', 'agent_type', asText],
  ['skill', 'skill', asText],
  ['plugin', 'plugin', asText],
  ['MCP server', 'mcp_server', asText],
  ['context', 'context_tokens', asTokens],
  ['from the cache', 'cache_share', asShare],
  ['thinking', 'thinking_tokens', asTokens],
  ['thinking time', 'thinking_ms', asTime],
  ['retries', 'retries', asCount],
  ['web searches', 'web_search_requests', asCount],
  ['ended with', 'stop_reason', asText],
  ['tool calls', 'tool_count', asCount],
  ['errors', 'error_count', asCount],
  ['compactions', 'compactions', asCount],
  ['hooks', 'hooks', asTimes],
];
