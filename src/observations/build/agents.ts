import { isRecord } from '../../shared/json.js';
import { extractText } from '../../transcript/file/content.js';
import type { AgentThread, ToolCall, Turn } from '../../transcript/turns/turn.js';
import type { ContentRules } from '../content/rules.js';
import type { Observation, Trace } from '../model.js';
import { deriveSpanId } from './ids.js';
import { type BuildContext, buildObservation } from './observation.js';
import { buildAgentObservation, buildChildren, buildOutcomeMetadata, type ObservationTree } from './thread.js';

/** A subagent: what it did, and what else is known about it. */
export interface Agent {
  readonly thread: AgentThread;
  readonly type: string | undefined;
  readonly description: string | undefined;
  readonly isBackground: boolean;
}

/** The tool call that started a subagent is its parent. Without one, the subagent has a trace of its own. */
export interface AgentPlace {
  readonly trace: Trace;
  readonly parentId: string | undefined;
}

/** Builds what Langfuse shows of a subagent: an agent observation with generations and tools of its own. */
export function buildAgent(agent: Agent, place: AgentPlace, rules: ContentRules): ObservationTree {
  const { thread, type, description, isBackground } = agent;
  const context = createAgentContext(thread.key, place.trace, rules);
  const name = place.parentId === undefined ? place.trace.name : (type ?? 'agent');
  const metadata = {
    agent_id: thread.agentId,
    agent_type: type,
    description,
    background: isBackground,
    ...buildOutcomeMetadata(thread.turns),
  };
  return {
    children: buildChildren(thread.turns, context).toSorted((a, b) => a.line - b.line),
    root: buildAgentObservation(thread.turns, { parentId: place.parentId, name, metadata }, context),
  };
}

/** Builds a subagent whose file is gone from the result of its call, as far as that goes. */
export function buildLostAgent(call: ToolCall, place: AgentPlace, rules: ContentRules): Observation | undefined {
  const { result, at } = call;
  const { details } = result ?? {};
  if (!result || details?.agentId === undefined) return undefined;
  const context = createAgentContext(details.agentId, place.trace, rules);
  const output = extractText(details.content) || (details.result ?? '');
  return buildObservation(
    {
      type: 'agent',
      id: context.agentSpanId,
      parentId: place.parentId,
      name: findAgentType(call) ?? details.commandName ?? 'agent',
      startTime: at,
      endTime: Math.max(at, result.at),
      input: details.prompt === undefined ? undefined : [{ role: 'user', content: details.prompt }],
      output: output === '' ? null : { role: 'assistant', content: output },
      metadata: {
        agent_id: details.agentId,
        agent_type: details.agentType,
        total_tokens: details.totalTokens,
        total_duration_ms: details.totalDurationMs,
        tool_count: details.totalToolUseCount,
      },
      level: result.isError ? 'ERROR' : 'DEFAULT',
      line: result.line,
    },
    context,
  );
}

/** In 1.0 a subagent's lines are in the main file. Only its prompt says which call started it. */
export function buildSidechains({ sidechains, responses }: Turn, context: BuildContext): Observation[] {
  const calls = responses.flatMap((response) => response.calls);
  return sidechains.flatMap((thread) => {
    const prompt = thread.turns[0].prompts[0].content;
    const index = calls.findIndex(({ input }) => isRecord(input) && input.prompt === prompt);
    const [call] = index < 0 ? [] : calls.splice(index, 1);
    const parentId = call?.id === undefined ? context.agentSpanId : deriveSpanId(context.trace, 'tool', call.id);
    const description = isRecord(call?.input) ? call.input.description : undefined;
    const agent = {
      thread,
      type: call && findRequestedType(call),
      description: typeof description === 'string' ? description : undefined,
      isBackground: false,
    };
    const { children, root } = buildAgent(agent, { trace: context.trace, parentId }, context);
    return [...children, root];
  });
}

/** Returns the type of the agent that a call started: what the result says or, if it does not, what was asked for. */
export function findAgentType(call: ToolCall): string | undefined {
  return call.result?.details?.agentType ?? findRequestedType(call);
}

function findRequestedType({ input }: ToolCall): string | undefined {
  const type = isRecord(input) ? input.subagent_type : undefined;
  return typeof type === 'string' && type !== '' ? type : undefined;
}

function createAgentContext(agentKey: string, trace: Trace, rules: ContentRules): BuildContext {
  return { ...rules, trace, agentSpanId: deriveSpanId(trace, 'agent', agentKey), fileId: agentKey };
}
