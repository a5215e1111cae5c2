import { isRecord, type Json, withoutUndefined } from '../json.js';
import { textOf } from '../transcript/content.js';
import type { Note } from '../transcript/notes.js';
import type { Response, ToolCall } from '../transcript/responses.js';
import type { AgentThread, PromptContext, Turn } from '../transcript/turn.js';
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
  const context = { trace, maxChars: options.maxChars, agentSpan: spanIdOf(trace.id, 'agent', turn.key) };
  const children = [...childrenOf(turn, context), ...sidechainsOf(turn, context)].toSorted((a, b) => a.line - b.line);
  return { children, root: rootOf(turn, context) };
}

function childrenOf({ notes, responses }: Turn, context: Context): Observation[] {
  return [
    ...notes.flatMap((note) => eventsOf(note, context)),
    ...responses.flatMap((response) => generationAndTools(response, context)),
  ];
}

/** What the observations of a turn, or of a subagent, have in common. */
interface Context {
  readonly trace: Trace;
  /** The agent below which they hang. */
  readonly agentSpan: string;
  readonly maxChars: number;
}

function traceOf({ number, key, context }: Turn, options: BuildOptions): Trace {
  const fixed = { ...contextOf(context, options), turn_number: number, trigger: context.trigger };
  return toTrace(traceIdOf(key), `Turn ${number}`, fixed, options);
}

/** The trace of an agent that no tool call started. */
export function traceOfAgent({ turns: [first] }: AgentThread, type: string | undefined, options: BuildOptions): Trace {
  return toTrace(traceIdOf(first.key), `Agent ${type ?? ''}`.trim(), contextOf(first.context, options), options);
}

/** A trace as every one of its observations carries it. */
export function toTrace(
  id: string,
  name: string,
  fixed: { readonly [key: string]: Json },
  { sessionId, userId, tags, environment, release, metadata }: BuildOptions,
): Trace {
  const entries = Object.entries({ ...metadata, ...fixed });
  return {
    id,
    name,
    sessionId,
    userId,
    tags,
    environment,
    release,
    metadata: Object.fromEntries(entries.map(([key, value]) => [key, limited(value, CONTEXT_CHARS).value])),
  };
}

function contextOf(context: PromptContext, { sessionId }: BuildOptions) {
  return withoutUndefined<Json>({
    source: 'claude-code',
    session_id: sessionId,
    prompt_id: context.promptId,
    cwd: context.cwd,
    git_branch: context.gitBranch,
    version: context.version,
    slug: context.slug,
    permission_mode: context.permissionMode,
    entrypoint: context.entrypoint,
  });
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
  const { level, statusMessage, ...figures } = summaryOf([turn]);
  return observation(
    {
      type: 'agent',
      id: context.agentSpan,
      parentId: undefined,
      name: context.trace.name,
      ...spanOf([turn]),
      metadata: figures,
      level,
      statusMessage,
      line: turn.lineOffsets.at(-1) ?? turn.prompts[0].line,
    },
    context,
  );
}

/** A subagent, and what is known of it beside its own lines. */
export interface Agent {
  readonly thread: AgentThread;
  readonly type: string | undefined;
  readonly description: string | undefined;
  readonly isBackground: boolean;
}

/** Where a subagent hangs: below the tool call that started it, or where none did, on its own. */
export interface AgentPlace {
  readonly trace: Trace;
  readonly parentId: string | undefined;
}

export interface AgentObservations {
  /** In the order of its own file's lines. */
  readonly children: readonly Observation[];
  readonly agent: Observation;
}

/** What Langfuse is to show of a subagent: its own generations and tools, below an agent observation. */
export function buildAgent(agent: Agent, place: AgentPlace, maxChars: number): AgentObservations {
  const { thread, type, description, isBackground } = agent;
  const { turns, key, agentId } = thread;
  const agentSpan = agentSpanOf(place.trace, key);
  const context = { trace: place.trace, agentSpan, maxChars };
  const { level, statusMessage, ...figures } = summaryOf(turns);
  const last = turns.at(-1) ?? turns[0];
  return {
    children: turns.flatMap((turn) => childrenOf(turn, context)).toSorted((a, b) => a.line - b.line),
    agent: observation(
      {
        type: 'agent',
        id: agentSpan,
        parentId: place.parentId,
        name: place.parentId === undefined ? place.trace.name : (type ?? 'agent'),
        ...spanOf(turns),
        metadata: withoutUndefined<Json>({
          agent_id: agentId,
          agent_type: type,
          description,
          background: isBackground,
          ...figures,
        }),
        level,
        statusMessage,
        line: last.lineOffsets.at(-1) ?? last.prompts[0].line,
      },
      context,
    ),
  };
}

/** A subagent of which nothing is left but what the result of its call tells. */
export function buildLostAgent(call: ToolCall, place: AgentPlace, maxChars: number): Observation | undefined {
  const { result } = call;
  const { agentId, agentType, prompt, content, totalTokens, totalDurationMs, totalToolUseCount } =
    result?.details ?? {};
  if (!result || agentId === undefined) return undefined;
  const agentSpan = agentSpanOf(place.trace, agentId);
  const output = textOf(content);
  return observation(
    {
      type: 'agent',
      id: agentSpan,
      parentId: place.parentId,
      name: agentType ?? subagentTypeOf(call) ?? 'agent',
      startTime: call.at,
      endTime: Math.max(call.at, result.at),
      input: prompt === undefined ? undefined : [{ role: 'user', content: prompt }],
      output: output === '' ? null : { role: 'assistant', content: output },
      metadata: withoutUndefined<Json>({
        agent_id: agentId,
        agent_type: agentType,
        total_tokens: totalTokens,
        total_duration_ms: totalDurationMs,
        tool_count: totalToolUseCount,
      }),
      level: result.isError ? 'ERROR' : 'DEFAULT',
      line: result.line,
    },
    { trace: place.trace, agentSpan, maxChars },
  );
}

export function agentSpanOf(trace: Pick<Trace, 'id'>, agentKey: string): string {
  return spanIdOf(trace.id, 'agent', agentKey);
}

export function toolSpanOf(trace: Pick<Trace, 'id'>, toolUseId: string): string {
  return spanIdOf(trace.id, 'tool', toolUseId);
}

/** The kind of agent that a call asks for. */
export function subagentTypeOf({ input }: ToolCall): string | undefined {
  const type = isRecord(input) ? input.subagent_type : undefined;
  return typeof type === 'string' && type !== '' ? type : undefined;
}

/** In 1.0 a subagent's lines stand in the main file, and only its prompt tells which call started it. */
function sidechainsOf({ sidechains, responses }: Turn, context: Context): Observation[] {
  const calls = responses.flatMap((response) => response.calls);
  return sidechains.flatMap((thread) => {
    const prompt = thread.turns[0].prompts[0].content;
    const place = calls.findIndex(({ input }) => isRecord(input) && input.prompt === prompt);
    const [call] = place < 0 ? [] : calls.splice(place, 1);
    const parentId = call?.id === undefined ? context.agentSpan : toolSpanOf(context.trace, call.id);
    const description = isRecord(call?.input) ? String(call.input.description ?? '') : '';
    const agent = {
      thread,
      type: call && subagentTypeOf(call),
      description: description || undefined,
      isBackground: false,
    };
    const built = buildAgent(agent, { trace: context.trace, parentId }, context.maxChars);
    return [...built.children, built.agent];
  });
}

/** Input, output and times of an agent: of a turn, or of all the turns of a subagent. */
function spanOf(turns: readonly [Turn, ...Turn[]]) {
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
    input: turns.flatMap(({ prompts }) => prompts.map(({ content }) => ({ role: 'user', content }))),
    output: answer === undefined ? null : { role: 'assistant', content: answer },
  };
}

/** How it ended, and how many tools it used. */
function summaryOf(turns: readonly [Turn, ...Turn[]]) {
  const { outcome, level, statusMessage } = endingOf(turns.at(-1) ?? turns[0]);
  const calls = turns.flatMap(({ responses }) => responses.flatMap((response) => response.calls));
  const errors = turns.flatMap(({ notes }) => notes.filter(({ kind }) => kind === 'api-error'));
  const failed = calls.filter(({ result }) => result?.isError);
  return { outcome, level, statusMessage, tool_count: calls.length, error_count: failed.length + errors.length };
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
      parentId: context.agentSpan,
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
    observation(
      { ...event, type: 'event', id, parentId: context.agentSpan, startTime: at, endTime: at, line },
      context,
    ),
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
