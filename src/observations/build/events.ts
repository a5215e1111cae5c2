import { extractText } from '../../transcript/file/content.js';
import type { Note } from '../../transcript/turns/turn.js';
import { buildHookMessage, buildUserMessage } from '../content/messages.js';
import type { ContentSettings, Observation, ObservationDraft } from '../model.js';
import { deriveSpanId } from './ids.js';
import { type BuildContext, buildObservation, type UnbuiltObservation } from './observation.js';

export function listEvent(note: Note, context: BuildContext): UnbuiltObservation {
  const line = note.kind === 'compaction' ? (note.cost?.line ?? note.line) : note.line;
  return { line, build: () => buildEvent(note, line, context) };
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
  Partial<Pick<ObservationDraft, 'level' | 'statusMessage' | 'input' | 'metadata'>>;

/** Returns what Langfuse shows of each kind of note; undefined for those that only say how the turn ended. */
function describeEvent(note: Note, settings: ContentSettings): EventDescription | undefined {
  switch (note.kind) {
    case 'compaction':
      return {
        name: 'compaction',
        metadata: {
          compaction_trigger: note.fields.compactMetadata?.trigger,
          tokens_before: note.fields.compactMetadata?.preTokens,
          input_tokens: note.cost?.tokens.input,
          output_tokens: note.cost?.tokens.output,
          cache_read_tokens: note.cost?.tokens.cacheRead,
          cache_write_tokens: note.cost?.tokens.cacheWritten,
        },
      };
    case 'retry': {
      const { retryAttempt: attempt, maxRetries: max_attempts, retryInMs: wait_ms, error } = note.fields;
      const metadata = { attempt, max_attempts, wait_ms };
      return { name: 'api retry', level: 'WARNING', statusMessage: error?.formatted, metadata };
    }
    case 'absorbed-message':
      return { name: 'message while working', input: [buildUserMessage(note, settings)] };
    case 'stop-hook-feedback':
      return { name: 'stop hook feedback', input: [buildHookMessage(note.content, settings)] };
    case 'hook-feedback':
    case 'hook-context':
    case 'hook-stop':
      return {
        name: HOOK_EVENTS[note.kind],
        level: note.kind === 'hook-stop' ? 'WARNING' : 'DEFAULT',
        input: [buildHookMessage(note.content, settings)],
        metadata: { hook: note.hook.name, hook_tool_id: note.hook.toolUseId },
      };
    case 'model-fallback': {
      const { trigger: fallback_trigger, originalModel: from_model, fallbackModel: to_model, content } = note.fields;
      const statusMessage = extractText(content) || undefined;
      const metadata = { fallback_trigger, from_model, to_model };
      return { name: 'model fallback', level: 'WARNING', statusMessage, metadata };
    }
    case 'api-error':
      return { name: 'api error', level: 'ERROR', statusMessage: note.content, metadata: { status: note.status } };
    default:
      return undefined;
  }
}
