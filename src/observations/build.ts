import { textOf } from '../transcript/content.js';
import type { Response, ToolCall } from '../transcript/responses.js';
import type { Turn } from '../transcript/turns.js';
import { endingOf } from './ending.js';
import { eventOf, withoutUndefined } from './events.js';
import { spanIdOf, traceIdOf } from './ids.js';
import { cut, limited } from './limits.js';
import { answerText, inputMessages, outputMessage } from './messages.js';
import type { Json, Observation, Trace } from './model.js';
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
  const [{ uuid, line }] = turn.prompts;
  const promptId = uuid ?? `${options.sessionId}:${line}`;
  const trace = traceOf(turn, traceIdOf(promptId), options);
  const rootId = spanIdOf(trace.id, 'agent', promptId);
  const build = new Builder(trace, options);
  const children = [
    ...events(turn, rootId, build),
    ...turn.responses.flatMap((response) => generationAndTools(response, rootId, build)),
  ].toSorted((a, b) => a.line - b.line);
  return { children, root: root(turn, rootId, build) };
}

function traceOf({ number, context }: Turn, id: string, options: BuildOptions): Trace {
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
    id,
    name: `Turn ${number}`,
    sessionId,
    userId,
    tags,
    environment,
    release,
    metadata: Object.fromEntries(
      Object.entries(metadata).map(([key, value]) => [key, limited(value, CONTEXT_CHARS).value]),
    ),
  };
}

/** Fills in what is the same for every observation of a trace. */
class Builder {
  readonly trace: Trace;
  readonly sessionId: string;
  readonly #maxChars: number;

  constructor(trace: Trace, { sessionId, maxChars }: BuildOptions) {
    this.trace = trace;
    this.sessionId = sessionId;
    this.#maxChars = maxChars;
  }

  observation(
    content: Omit<Observation, 'trace' | 'input' | 'output'> & { input?: unknown; output?: unknown },
  ): Observation {
    const input = content.input === undefined ? undefined : limited(content.input, this.#maxChars);
    const output = content.output === undefined ? undefined : limited(content.output, this.#maxChars);
    const cutFields = withoutUndefined({ input_full_chars: input?.fullChars, output_full_chars: output?.fullChars });
    const { statusMessage } = content;
    return {
      ...content,
      name: cut(content.name, NAME_CHARS),
      trace: this.trace,
      input: input?.value,
      output: output?.value,
      statusMessage: statusMessage && firstLine(statusMessage),
      metadata: { ...content.metadata, ...cutFields },
    };
  }

  idOf(kind: 'generation' | 'tool' | 'event', nativeId: string | undefined, line: number, index = 0): string {
    return spanIdOf(this.trace.id, kind, nativeId ?? `${this.sessionId}:${line}${index > 0 ? `:${index}` : ''}`);
  }
}

function root(turn: Turn, id: string, build: Builder): Observation {
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
  return build.observation({
    type: 'agent',
    id,
    parentId: undefined,
    name: build.trace.name,
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
  });
}

function generationAndTools(response: Response, parentId: string, build: Builder): Observation[] {
  const { request, usage: counts, firstBlockAt, firstBlockStartedAt, firstLine: line } = response;
  const id = build.idOf('generation', response.id ?? response.uuid, line);
  const startTime = Math.min(request?.at ?? response.answeredAt ?? firstBlockAt, firstBlockAt);
  const model = response.model?.replace(/\[1m\]$/, '');
  const usage = usageOf(counts);
  const generation = build.observation({
    type: 'generation',
    id,
    parentId,
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
  });
  return [generation, ...response.calls.map((call, index) => tool(call, index, id, build))];
}

function tool(
  { id, name, input, line, at, result }: ToolCall,
  index: number,
  parentId: string,
  build: Builder,
): Observation {
  const output = result === undefined ? null : outputOf(result.content);
  return build.observation({
    type: 'tool',
    id: build.idOf('tool', id, line, index),
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
  });
}

function outputOf(content: unknown): unknown {
  return Array.isArray(content) ? textOf(content) : (content ?? null);
}

function events(turn: Turn, parentId: string, build: Builder): Observation[] {
  return turn.notes.flatMap((note) => {
    const event = eventOf(note);
    if (!event) return [];
    const { at, line, uuid } = note;
    const id = build.idOf('event', uuid, line);
    return [build.observation({ ...event, type: 'event', id, parentId, startTime: at, endTime: at, line })];
  });
}

function isBetween(start: number, time: number | undefined, end: number): boolean {
  return time !== undefined && time >= start && time <= end;
}

function firstLine(text: string): string {
  const line = text.trimStart().split('\n', 1)[0] ?? '';
  return line.length > STATUS_CHARS ? `${line.slice(0, STATUS_CHARS).toWellFormed()}…` : line.toWellFormed();
}
