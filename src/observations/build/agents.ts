import { extractText } from '../../transcript/file/content.js';
import { type AgentThread, findTextArgument, type ToolCall, type Turn } from '../../transcript/turns/turn.js';
import { answerText, buildUserMessage } from '../content/messages.js';
import type { ContentSettings, Observation, ObservationDraft, Trace } from '../model.js';
import { listNote } from './compaction.js';
import { determineEnding } from './ending.js';
import { listGenerationWithTools } from './generation.js';
import { deriveSpanId } from './ids.js';
import { type BuildContext, buildObservation, type UnbuiltObservation } from './observation.js';

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
  /** In the order of the lines that completed them. Each is built when it is asked for: all of them at once may be large. */
  readonly children: Generator<Observation, void, undefined>;
  readonly root: Observation;
}

/** An agent observation, and what is to be built below it. */
interface AgentPlan {
  readonly parts: readonly UnbuiltObservation[];
  readonly root: Observation;
}

/** Builds the children that lines after `after` completed. */
export function buildSubagent(agent: Subagent, place: Place, settings: ContentSettings, after = 0): AgentTree {
  const { parts, root } = planSubagent(agent, place, settings);
  return { children: buildChildren(parts, after), root };
}

export function* buildChildren(
  parts: readonly UnbuiltObservation[],
  after: number,
): Generator<Observation, void, undefined> {
  for (const { line, build } of parts.toSorted((a, b) => a.line - b.line)) {
    const observation = line > after ? build() : undefined;
    if (observation) yield observation;
  }
}

function planSubagent(agent: Subagent, place: Place, settings: ContentSettings): AgentPlan {
  const { thread, type, description, isBackground } = agent;
  const { parentId, trace } = place;
  const name = parentId === undefined ? trace.name : (type ?? 'agent');
  const metadata = { agent_id: thread.agentId, agent_type: type, description, background: isBackground };
  const context = subagentContext(thread.key, trace, settings);
  return planAgent(thread.turns, { parentId, name }, (figures) => ({ ...metadata, ...figures }), context);
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

/** Plans a turn, or all turns of a subagent. `addMetadata` adds its own to the figures that both have. */
export function planAgent(
  turns: AgentThread['turns'],
  { parentId, name }: Pick<Observation, 'parentId' | 'name'>,
  addMetadata: (figures: Metadata) => Metadata,
  context: BuildContext,
): AgentPlan {
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
  const parts = turns.flatMap((turn) => [
    ...turn.notes.flatMap((note) => listNote(note, context)),
    ...turn.responses.flatMap((response) => listGenerationWithTools(response, context)),
    ...listSidechains(turn, context),
  ]);
  return { root, parts };
}

/** In 1.0 a subagent's lines are in the main file. Only its prompt says which call started it. */
function listSidechains({ sidechains, responses }: Turn, context: BuildContext): UnbuiltObservation[] {
  const { trace, agentSpanId } = context;
  const calls = responses.flatMap((response) => response.calls);
  return sidechains.flatMap((thread) => {
    const prompt = thread.turns[0].prompts[0].content;
    const index = calls.findIndex((call) => findTextArgument(call, 'prompt') === prompt);
    const [call] = index < 0 ? [] : calls.splice(index, 1);
    const parentId = call?.id === undefined ? agentSpanId : deriveSpanId(trace, 'tool', call.id);
    const description = call && findTextArgument(call, 'description');
    const agent = { thread, type: call && findAgentType(call), description, isBackground: false };
    const { parts, root } = planSubagent(agent, { trace, parentId }, context);
    return [...parts.toSorted((a, b) => a.line - b.line), { line: root.line, build: () => root }];
  });
}

/** Returns the type of the agent that a call started: what the result says or, if it does not, what was asked for. */
export function findAgentType(call: ToolCall): string | undefined {
  return call.result?.details?.agentType ?? (findTextArgument(call, 'subagent_type') || undefined);
}
