import { extractText } from '../../transcript/file/content.js';
import { type AgentThread, findTextArgument, type ToolCall, type Turn } from '../../transcript/turns/turn.js';
import { answerText, buildUserMessage } from '../content/messages.js';
import type { ContentSettings, Observation, ObservationDraft, Trace } from '../model.js';
import { determineEnding } from './ending.js';
import { buildEvent } from './events.js';
import { buildGenerationWithTools } from './generation.js';
import { deriveSpanId } from './ids.js';
import { type BuildContext, buildObservation } from './observation.js';

interface Subagent {
  readonly thread: AgentThread;
  readonly type: string | undefined;
  readonly description: string | undefined;
  readonly isBackground: boolean;
}

/** The tool call that started a subagent is its parent. Without one, the subagent has a trace of its own. */
type Place = Pick<Observation, 'trace' | 'parentId'>;

/** What Langfuse shows of a turn or of a subagent: an agent observation and everything below it. */
export interface AgentTree {
  /** In the order of the lines that completed them. */
  readonly children: readonly Observation[];
  readonly root: Observation;
}

export function buildSubagent(agent: Subagent, place: Place, settings: ContentSettings): AgentTree {
  const { thread, type, description, isBackground } = agent;
  const { parentId, trace } = place;
  const name = parentId === undefined ? trace.name : (type ?? 'agent');
  const metadata = { agent_id: thread.agentId, agent_type: type, description, background: isBackground };
  const context = subagentContext(thread.key, trace, settings);
  return buildAgentTree(thread.turns, { parentId, name }, (figures) => ({ ...metadata, ...figures }), context);
}

/** Builds a subagent whose file is gone from the result of its call, as far as that goes. */
export function buildLostSubagent(call: ToolCall, place: Place, settings: ContentSettings): Observation | undefined {
  const { result, at } = call;
  const { details } = result ?? {};
  if (!result || details?.agentId === undefined) return undefined;
  const context = subagentContext(details.agentId, place.trace, settings);
  const output = extractText(details.content) || (details.result ?? '');
  return buildObservation(context, {
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
  });
}

function subagentContext(agentKey: string, trace: Trace, settings: ContentSettings): BuildContext {
  return { ...settings, trace, agentSpanId: deriveSpanId(trace, 'agent', agentKey), fileId: agentKey };
}

type Metadata = ObservationDraft['metadata'];

/** Builds a turn, or all turns of a subagent. `addMetadata` adds its own to the figures that both have. */
export function buildAgentTree(
  turns: AgentThread['turns'],
  { parentId, name }: Pick<Observation, 'parentId' | 'name'>,
  addMetadata: (figures: Metadata) => Metadata,
  context: BuildContext,
): AgentTree {
  const last = turns.at(-1) ?? turns[0];
  const { outcome, level, statusMessage } = determineEnding(last);
  const responses = turns.flatMap((turn) => turn.responses);
  const calls = responses.flatMap((response) => response.calls);
  const errors = turns.flatMap(({ notes }) => notes.filter(({ kind }) => kind === 'api-error'));
  const answer = responses.map(answerText).findLast((text) => text !== '');
  const startTime = turns[0].prompts[0].at;
  const times = [
    ...responses.map(({ lastBlockAt }) => lastBlockAt),
    ...calls.map(({ at, result }) => result?.at ?? at),
    ...errors.map(({ at }) => at),
  ];
  const root = buildObservation(context, {
    type: 'agent',
    id: context.agentSpanId,
    parentId,
    name,
    startTime,
    endTime: times.reduce((latest, time) => Math.max(latest, time), startTime),
    input: turns.flatMap(({ prompts }) => prompts.map((prompt) => buildUserMessage(prompt, context))),
    output: answer === undefined ? null : { role: 'assistant', content: answer },
    metadata: addMetadata({
      outcome,
      tool_count: calls.length,
      error_count: calls.filter(({ result }) => result?.isError).length + errors.length,
    }),
    level,
    statusMessage,
    line: last.lineNumbers.at(-1) ?? last.prompts[0].line,
  });
  const children = turns.flatMap((turn) => [
    ...turn.notes.flatMap((note) => buildEvent(note, context) ?? []),
    ...turn.responses.flatMap((response) => buildGenerationWithTools(response, context)),
    ...buildSidechains(turn, context),
  ]);
  return { root, children: children.toSorted((a, b) => a.line - b.line) };
}

/** In 1.0 a subagent's lines are in the main file. Only its prompt says which call started it. */
function buildSidechains({ sidechains, responses }: Turn, context: BuildContext): Observation[] {
  const { trace, agentSpanId } = context;
  const calls = responses.flatMap((response) => response.calls);
  return sidechains.flatMap((thread) => {
    const prompt = thread.turns[0].prompts[0].content;
    const index = calls.findIndex((call) => findTextArgument(call, 'prompt') === prompt);
    const [call] = index < 0 ? [] : calls.splice(index, 1);
    const parentId = call?.id === undefined ? agentSpanId : deriveSpanId(trace, 'tool', call.id);
    const description = call && findTextArgument(call, 'description');
    const agent = { thread, type: call && findAgentType(call), description, isBackground: false };
    const { children, root } = buildSubagent(agent, { trace, parentId }, context);
    return [...children, root];
  });
}

/** Returns the type of the agent that a call started: what the result says or, if it does not, what was asked for. */
export function findAgentType(call: ToolCall): string | undefined {
  return call.result?.details?.agentType ?? (findTextArgument(call, 'subagent_type') || undefined);
}
