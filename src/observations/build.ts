import { type Json, withoutUndefined } from '../json.js';
import { textOf } from '../transcript/content.js';
import type { Note } from '../transcript/notes.js';
import type { Response, ToolCall } from '../transcript/responses.js';
import type { Turn } from '../transcript/turn.js';
import { endingOf } from './ending.js';
import { eventOf } from './events.js';
import { spanIdOf, traceIdOf } from './ids.js';
import { cut, limited } from './limits.js';
import { answerText, inputMessages, outputMessage } from './messages.js';
import type { Observation, Trace } from './model.js';
import { usageOf } from './usage.js';

/** What does not come from the transcript. */
export interface BuildOptions {
  readonly sessionId: string;
  readonly userId: string | undefined;
  readonly tags: readonly string[];
  readonly metadata: { readonly [key: string]: Json };
  readonly environment: string | undefined;
  readonly release: string | undefined;
  readonly maxChars: number;
}

export interface TurnObservations {
  /** In the order of the lines that completed them. */
  readonly children: readonly Observation[];
  readonly root: Observation;
}

const STATUS_CHARS = 500;
/** Names and the metadata that every observation of a trace carries. */
const NAME_CHARS = 200;
const CONTEXT_CHARS = 1_000;

/** What Langfuse is to show of a turn. The same turn always gives the same observations. */
export function buildTurn(turn: Turn, options: BuildOptions): TurnObservations {
  const trace = traceOf(turn, options);
  const context = { trace, maxChars: options.maxChars, rootId: spanIdOf(trace.id, 'agent', turn.key) };
  const children = [
    ...turn.notes.flatMap((note) => eventsOf(note, context)),
    ...turn.responses.flatMap((response) => generationAndTools(response, context)),
  ].toSorted((a, b) => a.line - b.line);
  return { children, root: rootOf(turn, context) };
}

/** What the observations of a turn have in common. */
interface Context {
  readonly trace: Trace;
  readonly rootId: string;
  readonly maxChars: number;
}

function traceOf({ number, key, context }: Turn, options: BuildOptions): Trace {
  const { sessionId, userId, tags, environment, release } = options;
  const metadata = {
    ...options.metadata,
    ...withoutUndefined<Json>({
      source: 'claude-code',
      turn_number: number,
      session_id: sessionId,
      prompt_id: context.promptId,
      trigger: context.trigger,
      cwd: context.cwd,
      git_branch: context.gitBranch,
      version: context.version,
      slug: context.slug,
      permission_mode: context.permissionMode,
      entrypoint: context.entrypoint,
    }),
  };
  return {
    id: traceIdOf(key),
    name: `Turn ${number}`,
    sessionId,
    userId,
    tags,
    environment,
    release,
    metadata: Object.fromEntries(
      Object.entries(metadata).map(([name, value]) => [name, limited(value, CONTEXT_CHARS).value]),
    ),
  };
}

/** An observation of the turn: its fields within their limits, its strings fit to be sent. */
function observation(
  content: Omit<Observation, 'trace' | 'input' | 'output'> & { input?: unknown; output?: unknown },
  { trace, maxChars }: Context,
): Observation {
  const { statusMessage, modelParameters } = content;
  const input = content.input === undefined ? undefined : limited(content.input, maxChars);
  const output = content.output === undefined ? undefined : limited(content.output, maxChars);
  const cutFields = withoutUndefined({ input_full_chars: input?.fullChars, output_full_chars: output?.fullChars });
  return {
    ...content,
    name: cut(content.name, NAME_CHARS),
    trace,
    input: input?.value,
    output: output?.value,
    statusMessage: statusMessage && cut(statusMessage.trimStart().split('\n', 1).join(), STATUS_CHARS),
    modelParameters: modelParameters && wellFormed(modelParameters),
    metadata: { ...content.metadata, ...cutFields },
  };
}

/** The id of a span by what the transcript calls it, or where it does not, by where it stands. */
function idOf(
  { trace }: Context,
  kind: 'generation' | 'tool' | 'event',
  nativeId: string | undefined,
  ...place: readonly number[]
): string {
  return spanIdOf(trace.id, kind, nativeId ?? [trace.sessionId, ...place].join(':'));
}

function rootOf(turn: Turn, context: Context): Observation {
  const { outcome, level, statusMessage } = endingOf(turn);
  const answer = turn.responses.map(answerText).findLast((text) => text !== '');
  const calls = turn.responses.flatMap((response) => response.calls);
  const apiErrors = turn.notes.filter(({ kind }) => kind === 'api-error');
  const startTime = turn.prompts[0].at;
  const times = [
    ...turn.responses.map(({ lastBlockAt }) => lastBlockAt),
    ...calls.map(({ at, result }) => result?.at ?? at),
    ...apiErrors.map(({ at }) => at),
  ];
  return observation(
    {
      type: 'agent',
      id: context.rootId,
      parentId: undefined,
      name: context.trace.name,
      startTime,
      endTime: times.reduce((latest, time) => Math.max(latest, time), startTime),
      input: turn.prompts.map(({ content }) => ({ role: 'user', content })),
      output: answer === undefined ? null : { role: 'assistant', content: answer },
      metadata: {
        outcome,
        tool_count: calls.length,
        error_count: calls.filter(({ result }) => result?.isError).length + apiErrors.length,
      },
      level,
      statusMessage,
      line: turn.lineOffsets.at(-1) ?? turn.prompts[0].line,
    },
    context,
  );
}

function generationAndTools(response: Response, context: Context): Observation[] {
  const { request, usage: counts, firstBlockAt, firstBlockStartedAt, firstLine: line } = response;
  const id = idOf(context, 'generation', response.id ?? response.uuid, line);
  const startTime = Math.min(request?.at ?? response.answeredAt ?? firstBlockAt, firstBlockAt);
  const model = response.model?.replace(/\[1m\]$/, '');
  const usage = usageOf(counts);
  const generation = observation(
    {
      type: 'generation',
      id,
      parentId: context.rootId,
      name: model ?? 'generation',
      startTime,
      endTime: response.lastBlockAt,
      completionStartTime: isBetween(startTime, firstBlockStartedAt, firstBlockAt) ? firstBlockStartedAt : undefined,
      input: inputMessages(response.answered),
      output: outputMessage(response),
      metadata: withoutUndefined<Json>({
        tool_count: response.calls.length,
        message_id: response.id,
        request_id: response.requestId,
        stop_reason: response.stopReason,
        model: model === response.model ? undefined : response.model,
      }),
      level: response.aborted ? 'WARNING' : 'DEFAULT',
      statusMessage: response.aborted ? 'aborted while streaming' : undefined,
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
      line: response.lastLine,
    },
    context,
  );
  return [generation, ...response.calls.map((call, index) => toolOf(call, index, id, context))];
}

function toolOf(
  { id, name, input, line, at, result }: ToolCall,
  index: number,
  parentId: string,
  context: Context,
): Observation {
  const output = result === undefined ? null : outputOf(result.content);
  return observation(
    {
      type: 'tool',
      id: idOf(context, 'tool', id, line, index),
      parentId,
      name,
      startTime: at,
      endTime: Math.max(at, result?.at ?? at),
      input: input ?? null,
      output,
      metadata: withoutUndefined<Json>({ tool_name: name, tool_id: id, denied: result?.denied }),
      level: result?.isError ? 'ERROR' : 'DEFAULT',
      statusMessage: result?.isError ? textOf(result.content) : undefined,
      line: Math.max(line, result?.line ?? line),
    },
    context,
  );
}

function outputOf(content: unknown): unknown {
  return Array.isArray(content) ? textOf(content) : (content ?? null);
}

function eventsOf(note: Note, context: Context): Observation[] {
  const event = eventOf(note);
  if (!event) return [];
  const { at, line, uuid } = note;
  const id = idOf(context, 'event', uuid, line);
  return [
    observation({ ...event, type: 'event', id, parentId: context.rootId, startTime: at, endTime: at, line }, context),
  ];
}

function isBetween(start: number, time: number | undefined, end: number): boolean {
  return time !== undefined && time >= start && time <= end;
}

function wellFormed(values: { readonly [name: string]: string | number }): { [name: string]: string | number } {
  const entries = Object.entries(values);
  return Object.fromEntries(
    entries.map(([key, value]) => [key, typeof value === 'string' ? cut(value, NAME_CHARS) : value]),
  );
}
