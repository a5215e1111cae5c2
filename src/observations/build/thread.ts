import { isRecord, type Json, withoutUndefined } from '../../shared/json.js';
import { extractParts, extractText } from '../../transcript/file/content.js';
import type { Note, Response, ToolCall, Turn } from '../../transcript/turns/turn.js';
import { buildContent, type MediaRules } from '../content/media.js';
import { answerText, buildInputMessages, buildOutputMessage, buildUserMessage } from '../content/messages.js';
import type { Observation } from '../model.js';
import { determineEnding } from './ending.js';
import { buildEvent } from './events.js';
import { buildObservation, type Context, observationId } from './observation.js';
import { summarizeCall } from './summary.js';
import { computeUsage } from './usage.js';

/** Events, generations and tools of a turn, below its agent. */
export function buildChildren({ notes, responses }: Turn, context: Context): Observation[] {
  return [
    ...notes.flatMap((note) => eventsOf(note, context)),
    ...responses.flatMap((response) => generationAndTools(response, context)),
  ];
}

/** Input, output and times of an agent: of a turn, or of all the turns of a subagent. */
export function buildAgentSpan(turns: readonly [Turn, ...Turn[]], rules: MediaRules) {
  const responses = turns.flatMap((turn) => turn.responses);
  const answer = responses.map(answerText).findLast((text) => text !== '');
  const startTime = turns[0].prompts[0].at;
  const times = [
    ...responses.map(({ lastBlockAt }) => lastBlockAt),
    ...responses.flatMap(({ calls }) => calls.map(({ at, result }) => result?.at ?? at)),
    ...turns.flatMap(({ notes }) => notes.filter(({ kind }) => kind === 'api-error').map(({ at }) => at)),
  ];
  return {
    startTime,
    endTime: times.reduce((latest, time) => Math.max(latest, time), startTime),
    input: turns.flatMap(({ prompts }) => prompts.map((prompt) => buildUserMessage(prompt, rules))),
    output: answer === undefined ? null : { role: 'assistant', content: answer },
  };
}

/** How it ended, and how many tools it used. */
export function summarizeTurns(turns: readonly [Turn, ...Turn[]]) {
  const { outcome, level, statusMessage } = determineEnding(turns.at(-1) ?? turns[0]);
  const calls = turns.flatMap(({ responses }) => responses.flatMap((response) => response.calls));
  const errors = turns.flatMap(({ notes }) => notes.filter(({ kind }) => kind === 'api-error'));
  const failed = calls.filter(({ result }) => result?.isError);
  return { outcome, level, statusMessage, tool_count: calls.length, error_count: failed.length + errors.length };
}

function generationAndTools(response: Response, context: Context): Observation[] {
  const { request, usage: counts, firstBlockAt, firstBlockStartedAt, firstLine: line } = response;
  const id = observationId(context, 'generation', response.id ?? response.uuid, line);
  const startTime = Math.min(request?.at ?? response.answeredAt ?? firstBlockAt, firstBlockAt);
  const model = response.model?.replace(/\[1m\]$/, '');
  const usage = computeUsage(counts);
  const flaw = flawOf(response);
  const generation = buildObservation(
    {
      type: 'generation',
      id,
      parentId: context.agentSpan,
      name: model ?? 'generation',
      startTime,
      endTime: response.lastBlockAt,
      completionStartTime: isBetween(startTime, firstBlockStartedAt, firstBlockAt) ? firstBlockStartedAt : undefined,
      input: buildInputMessages(response.answered, context),
      output: buildOutputMessage(response, context.fit),
      metadata: withoutUndefined<Json>({
        tool_count: response.calls.length,
        message_id: response.id,
        request_id: response.requestId,
        stop_reason: response.stopReason,
        model: model === response.model ? undefined : response.model,
        web_search_requests: counts?.server_tool_use?.web_search_requests || undefined,
      }),
      level: flaw === undefined ? 'DEFAULT' : 'WARNING',
      statusMessage: flaw,
      // A generation with a model's name and no usage would get an estimated one.
      model: usage && model,
      modelParameters: withoutUndefined<string | number>({
        max_tokens: request?.params?.max_tokens,
        thinking: request?.params?.thinking?.type,
        effort: request?.params?.output_config?.effort ?? response.effort,
        speed: counts?.speed,
        service_tier: counts?.service_tier,
      }),
      usage,
      request: request?.id,
      line: response.lastLine,
    },
    context,
  );
  return [generation, ...response.calls.map((call, index) => toolOf(call, index, id, context))];
}

/** What is wrong with a response, in words. */
function flawOf({ aborted, stopReason }: Response): string | undefined {
  if (aborted) return 'aborted while streaming';
  if (stopReason === 'refusal') return 'the model refused';
  return stopReason === 'max_tokens' ? 'cut at max_tokens' : undefined;
}

function toolOf(call: ToolCall, index: number, parentId: string, context: Context): Observation {
  const { id, name, input, line, at, result } = call;
  const output = result === undefined ? null : outputOf(result.content, context);
  return buildObservation(
    {
      type: 'tool',
      id: observationId(context, 'tool', id, line, index),
      parentId,
      name,
      startTime: at,
      endTime: Math.max(at, result?.at ?? at),
      input: input ?? null,
      output,
      metadata: withoutUndefined<Json>({
        tool_name: name,
        tool_id: id,
        summary: summarizeCall(call, context.fit),
        denied: result?.denied,
        stored_path: result?.details?.persistedOutputPath,
        stored_size: result?.details?.persistedOutputSize,
      }),
      level: result?.isError ? 'ERROR' : 'DEFAULT',
      statusMessage: result?.isError ? extractText(result.content) : undefined,
      line: Math.max(line, result?.line ?? line),
    },
    context,
  );
}

function outputOf(content: unknown, rules: MediaRules): unknown {
  // A single block, a document for one, is drawn as a list of one.
  const blocks = isRecord(content) && typeof content.type === 'string' ? [content] : content;
  return Array.isArray(blocks) ? buildContent(extractParts(blocks), rules) : (blocks ?? null);
}

function eventsOf(note: Note, context: Context): Observation[] {
  const event = buildEvent(note, context);
  if (!event) return [];
  const { at, uuid } = note;
  const id = observationId(context, 'event', uuid, note.line);
  const line = note.kind === 'compaction' ? (note.cost?.line ?? note.line) : note.line;
  return [
    buildObservation(
      { ...event, type: 'event', id, parentId: context.agentSpan, startTime: at, endTime: at, line },
      context,
    ),
  ];
}

function isBetween(start: number, time: number | undefined, end: number): boolean {
  return time !== undefined && time >= start && time <= end;
}
