import { extractText } from '../../transcript/file/content.js';
import { type Note, noteKey } from '../../transcript/turns/turn.js';
import { CLAUDE_CODE, describeAction } from '../content/capture.js';
import { buildHookMessage, buildUserMessage } from '../content/messages.js';
import type { Observation, ObservationDraft } from '../model.js';
import { deriveSpanId } from './ids.js';
import { type BuildContext, buildObservation, type UnbuiltObservation } from './observation.js';

export function listEvent(note: Note, context: BuildContext): UnbuiltObservation {
  const line = note.kind === 'compaction' ? (note.cost?.line ?? note.line) : note.line;
  return { line, key: noteKey(note), build: () => buildEvent(note, line, context) };
}

/** Builds the event of a note, if notes of its kind have one. `endLine` is the last line about it. */
function buildEvent(note: Note, endLine: number, context: BuildContext): Observation | undefined {
  const { line, at, uuid } = note;
  const event = describeEvent(note, context);
  if (!event) return undefined;
  return buildObservation(context, {
    metadata: {},
    level: 'DEFAULT',
    ...event,
    type: 'event',
    id: deriveSpanId(context.trace, 'event', uuid ?? `${context.fileId}:${line}`),
    parentId: context.agentSpanId,
    startTime: at,
    endTime: at,
    line: endLine,
  });
}

const HOOK_EVENTS = {
  'hook-feedback': 'hook feedback',
  'hook-context': 'hook context',
  'hook-stop': 'stopped by hook',
};

type EventDescription = Pick<ObservationDraft, 'name'> &
  Required<Pick<ObservationDraft, 'input' | 'output'>> &
  Partial<Pick<ObservationDraft, 'level' | 'statusMessage' | 'metadata'>>;

const PASSED_ON = describeAction('Passed on to the model.');

/**
 * Returns what Langfuse shows of each kind of note; undefined for those that have no event. The default view of
 * its session page shows only what has an input and an output.
 */
function describeEvent(note: Note, settings: BuildContext): EventDescription | undefined {
  switch (note.kind) {
    case 'compaction': {
      const { trigger, preTokens, postTokens } = note.fields.compactMetadata ?? {};
      const [before, after] = [preTokens, postTokens].map((tokens) => tokens?.toLocaleString('en-US'));
      const left = after === undefined ? '' : `, and has ${after} now`;
      const size = before === undefined ? '' : `, which had ${before} tokens${left}`;
      return {
        name: 'compaction',
        input: [describeRequest(`Compact the conversation${trigger ? ` (${trigger})` : ''}.`)],
        output: describeAction(`Compacted the conversation${size}.`),
        metadata: {
          compaction_trigger: trigger,
          tokens_before: preTokens,
          tokens_after: postTokens,
          input_tokens: note.cost?.tokens.input,
          output_tokens: note.cost?.tokens.output,
          cache_read_tokens: note.cost?.tokens.cacheRead,
          cache_write_tokens: note.cost?.tokens.cacheWritten,
        },
      };
    }
    case 'retry': {
      const { retryAttempt: attempt, maxRetries: max_attempts, retryInMs: wait_ms, error } = note.fields;
      const metadata = { attempt, max_attempts, wait_ms };
      const input = [describeRequest(`A request to the API failed: ${error?.formatted ?? 'no reason is recorded'}`)];
      const wait = wait_ms === undefined ? '' : ` after ${(wait_ms / 1_000).toFixed(1)} s`;
      const count = attempt === undefined ? '' : `, attempt ${attempt}${max_attempts ? ` of ${max_attempts}` : ''}`;
      const output = describeAction(`Tried again${wait}${count}.`);
      return { name: 'api retry', level: 'WARNING', statusMessage: error?.formatted, input, output, metadata };
    }
    case 'absorbed-message':
      return { name: 'message while working', input: [buildUserMessage(note, settings)], output: PASSED_ON };
    case 'stop-hook-feedback':
      return { name: 'stop hook feedback', input: [buildHookMessage(note.content, settings)], output: PASSED_ON };
    case 'hook-feedback':
    case 'hook-context':
    case 'hook-stop':
      return {
        name: HOOK_EVENTS[note.kind],
        level: note.kind === 'hook-stop' ? 'WARNING' : 'DEFAULT',
        input: [buildHookMessage(note.content, settings)],
        output: note.kind === 'hook-stop' ? describeAction('Stopped the turn.') : PASSED_ON,
        metadata: { hook: note.hook.name, hook_tool_id: note.hook.toolUseId },
      };
    case 'model-fallback': {
      const { trigger: fallback_trigger, originalModel: from_model, fallbackModel: to_model, content } = note.fields;
      const statusMessage = extractText(content) || undefined;
      const metadata = { fallback_trigger, from_model, to_model };
      const reason = fallback_trigger ? ` (${fallback_trigger})` : '';
      const input = [describeRequest(`${from_model ?? 'The model'} could not be used${reason}.`)];
      const output = describeAction(statusMessage ?? `Went on with ${to_model ?? 'another model'}.`);
      return { name: 'model fallback', level: 'WARNING', statusMessage, input, output, metadata };
    }
    case 'api-error':
      return {
        name: 'api error',
        level: 'ERROR',
        statusMessage: note.content,
        input: [describeRequest('A request to the API failed.')],
        output: describeAction(note.content || 'API error'),
        metadata: { status: note.status },
      };
    // How the turn ended is said by its root.
    case 'interrupt':
    case 'max-turns':
    case 'nudge':
    case 'command-result':
      return undefined;
    default:
      return note satisfies never;
  }
}

function describeRequest(content: string) {
  return { role: 'user', name: CLAUDE_CODE, content };
}
