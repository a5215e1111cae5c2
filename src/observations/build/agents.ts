import { isRecord, type Json, withoutUndefined } from '../../shared/json.js';
import { extractText } from '../../transcript/file/content.js';
import type { AgentThread, ToolCall, Turn } from '../../transcript/turns/turn.js';
import type { Observation, Trace } from '../model.js';
import { findAgentType, requestedAgentType } from './agent-type.js';
import { deriveSpanId } from './ids.js';
import { buildObservation, type Context } from './observation.js';
import { buildAgentSpan, buildChildren, summarizeTurns } from './thread.js';

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
export function buildAgent(agent: Agent, place: AgentPlace, limits: Limits): AgentObservations {
  const { thread, type, description, isBackground } = agent;
  const { turns, key, agentId } = thread;
  const agentSpan = agentSpanOf(place.trace, key);
  const context = { ...limits, trace: place.trace, agentSpan, place: key };
  const { level, statusMessage, ...figures } = summarizeTurns(turns);
  const last = turns.at(-1) ?? turns[0];
  return {
    children: turns.flatMap((turn) => buildChildren(turn, context)).toSorted((a, b) => a.line - b.line),
    agent: buildObservation(
      {
        type: 'agent',
        id: agentSpan,
        parentId: place.parentId,
        name: place.parentId === undefined ? place.trace.name : (type ?? 'agent'),
        ...buildAgentSpan(turns, limits),
        metadata: withoutUndefined<Json>({
          agent_id: agentId,
          agent_type: type,
          description,
          background: isBackground,
          ...figures,
        }),
        level,
        statusMessage,
        line: last.lineNumbers.at(-1) ?? last.prompts[0].line,
      },
      context,
    ),
  };
}

/** A subagent of which nothing is left but what the result of its call tells. */
export function buildLostAgent(call: ToolCall, place: AgentPlace, limits: Limits): Observation | undefined {
  const { result } = call;
  const { agentId, agentType, prompt, content, totalTokens, totalDurationMs, totalToolUseCount, ...more } =
    result?.details ?? {};
  if (!result || agentId === undefined) return undefined;
  const agentSpan = agentSpanOf(place.trace, agentId);
  const output = extractText(content) || (more.result ?? '');
  return buildObservation(
    {
      type: 'agent',
      id: agentSpan,
      parentId: place.parentId,
      name: findAgentType(call) ?? more.commandName ?? 'agent',
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
    { ...limits, trace: place.trace, agentSpan, place: agentId },
  );
}

/** What of a turn's context holds for its agents, too. */
export type Limits = Pick<Context, 'maxChars' | 'fit' | 'capture' | 'media'>;

function agentSpanOf(trace: Pick<Trace, 'scope'>, agentKey: string): string {
  return deriveSpanId(trace.scope, 'agent', agentKey);
}

export function toolSpanId(trace: Pick<Trace, 'scope'>, toolUseId: string): string {
  return deriveSpanId(trace.scope, 'tool', toolUseId);
}

/** In 1.0 a subagent's lines stand in the main file, and only its prompt tells which call started it. */
export function buildSidechains({ sidechains, responses }: Turn, context: Context): Observation[] {
  const calls = responses.flatMap((response) => response.calls);
  return sidechains.flatMap((thread) => {
    const prompt = thread.turns[0].prompts[0].content;
    const place = calls.findIndex(({ input }) => isRecord(input) && input.prompt === prompt);
    const [call] = place < 0 ? [] : calls.splice(place, 1);
    const parentId = call?.id === undefined ? context.agentSpan : toolSpanId(context.trace, call.id);
    const description = isRecord(call?.input) ? call.input.description : undefined;
    const agent = {
      thread,
      type: call && requestedAgentType(call),
      description: typeof description === 'string' ? description : undefined,
      isBackground: false,
    };
    const built = buildAgent(agent, { trace: context.trace, parentId }, context);
    return [...built.children, built.agent];
  });
}
