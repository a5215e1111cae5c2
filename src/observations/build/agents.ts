import { extractText } from '../../transcript/file/content.js';
import {
  type AgentThread,
  findAgentType,
  findTextArgument,
  type ToolCall,
  type Turn,
} from '../../transcript/turns/turn.js';
import { buildUserMessage, CLAUDE } from '../content/messages.js';
import { sanitizeText } from '../content/sanitize.js';
import type { ContentSettings, Observation, ObservationDraft } from '../model.js';
import { listNote } from './compaction.js';
import { type Conversation, continueConversation, NOTHING_SAID } from './conversation.js';
import { BROKEN_OFF, determineEnding } from './ending.js';
import { addFigures, describeFigures, type Figures, NO_FIGURES } from './figures.js';
import { listGenerationWithTools } from './generation.js';
import { deriveSpanId } from './ids.js';
import { type BuildContext, buildObservation, type Selection, type UnbuiltObservation } from './observation.js';
import { nameLoneAgent } from './trace-name.js';

/** An agent of which no type is known. */
const AGENT = 'agent';
const DESCRIPTION_CHARS = 80;

interface Subagent {
  readonly thread: AgentThread;
  readonly type: string | undefined;
  readonly description: string | undefined;
  readonly isBackground: boolean;
}

/** The tool call that started a subagent is its parent. Without one, the subagent has a trace of its own. */
type ParentSpan = Pick<Observation, 'trace' | 'parentId'>;

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

export function buildSubagent(
  agent: Subagent,
  place: ParentSpan,
  settings: ContentSettings,
  select: Selection = (parts) => parts,
): AgentTree {
  const { parts, root } = planSubagent(agent, place, settings);
  return { children: buildChildren(parts, select), root };
}

export function* buildChildren(
  parts: readonly UnbuiltObservation[],
  select: Selection,
): Generator<Observation, void, undefined> {
  for (const { build } of select(parts.toSorted((a, b) => a.line - b.line))) {
    const observation = build();
    if (observation) yield observation;
  }
}

function planSubagent(agent: Subagent, place: ParentSpan, settings: ContentSettings): AgentPlan {
  const { thread, type, description, isBackground } = agent;
  const { parentId } = place;
  const name = parentId === undefined ? nameLoneAgent(type) : nameAgent(agent, settings);
  const metadata = { agent_id: thread.agentId, agent_type: type, description, background: isBackground };
  const names = { agentType: type, subagent: parentId && (type ?? AGENT) };
  const context = { ...subagentContext(thread.key, place, settings), ...names };
  return planAgent(thread.turns, { parentId, name }, (figures) => ({ ...metadata, ...figures }), context);
}

/**
 * Langfuse's tree and graph draw only names: without their descriptions, agents of one type look alike. What they do is content. A
 * trace of its own is named by the type alone, since traces are grouped by their names.
 */
function nameAgent(
  { type = AGENT, description }: Pick<Subagent, 'type' | 'description'>,
  { capture, redact }: ContentSettings,
) {
  // Redacted whole: half of a secret is none that could be found.
  const [line = ''] = sanitizeText(description ?? '', redact)
    .trim()
    .split('\n', 1);
  if (line === '' || capture === 'metadata') return type;
  return `${type}: ${line.length > DESCRIPTION_CHARS ? `${line.slice(0, DESCRIPTION_CHARS)}…` : line}`;
}

/** Builds a subagent whose file is gone from the result of its call, as far as that goes. */
export function buildLostSubagent(
  call: ToolCall,
  place: ParentSpan,
  settings: ContentSettings,
): Observation | undefined {
  const { result, at } = call;
  const { details } = result ?? {};
  if (!result || details?.agentId === undefined) return undefined;
  const context = subagentContext(details.agentId, place, settings);
  const type = findAgentType(call) ?? details.commandName ?? AGENT;
  const answer = extractText(details.content) || (details.result ?? '');
  const prompt = details.prompt ?? findTextArgument(call, 'prompt');
  return buildObservation(context, {
    type: 'agent',
    id: context.agentSpanId,
    parentId: place.parentId,
    name: nameAgent({ type, description: findTextArgument(call, 'description') }, settings),
    startTime: at,
    endTime: Math.max(at, result.at),
    input: prompt === undefined ? undefined : [{ role: 'user', name: CLAUDE, content: prompt }],
    output: answer === '' ? undefined : { role: 'assistant', name: type, content: answer },
    unanswered: answer === '' ? 'its answer was not recorded' : undefined,
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

function subagentContext(agentKey: string, { trace }: ParentSpan, settings: ContentSettings): BuildContext {
  return { ...settings, trace, agentSpanId: deriveSpanId(trace, 'agent', agentKey), fileId: agentKey };
}

type Metadata = ObservationDraft['metadata'];

/**
 * Plans a turn, or all turns of a subagent. `addMetadata` adds its own to the figures that both have; `earlier` is
 * about what is not in the turn any more.
 */
export function planAgent(
  turns: AgentThread['turns'],
  { parentId, name }: Pick<Observation, 'parentId' | 'name'>,
  addMetadata: (figures: Metadata) => Metadata,
  context: BuildContext,
  earlier = NOTHING_BEFORE,
): AgentPlan {
  const last = turns.at(-1) ?? turns[0];
  const figures = turns.reduce(addFigures, earlier.figures);
  const { calls, failedCalls, apiErrors, answer, endTime, lacksOutputTokens } = figures;
  const { outcome, words, ...status } = determineEnding(last, earlier.figures);
  const startTime = turns[0].prompts[0].at;
  const root = buildObservation(context, {
    type: 'agent',
    id: context.agentSpanId,
    parentId,
    name,
    startTime,
    endTime: Math.max(startTime, endTime),
    input: turns.flatMap(({ prompts }) => prompts.map((prompt) => buildUserMessage(prompt, context))),
    output: answer === undefined ? undefined : { role: 'assistant', name: context.subagent ?? CLAUDE, content: answer },
    unanswered: answer === undefined ? words : undefined,
    brokenOff: BROKEN_OFF.includes(outcome) ? words : undefined,
    metadata: addMetadata({
      outcome,
      tool_count: calls,
      error_count: failedCalls + apiErrors,
      output_tokens_uncertain: lacksOutputTokens || undefined,
      ...describeFigures(figures, startTime),
    }),
    ...status,
    line: last.lineNumbers.at(-1) ?? last.prompts[0].line,
  });
  return { root, parts: listParts(turns, context, earlier.said).parts };
}

/** What was in a turn before the part of it that is still in memory. */
export interface Earlier {
  readonly figures: Figures;
  readonly said: Conversation;
}

export const NOTHING_BEFORE: Earlier = { figures: NO_FIGURES, said: NOTHING_SAID };

/** Lists what is to be built below the agent observation of a turn, or of an agent; `said` is what was said before. */
export function listParts(turns: readonly Turn[], context: BuildContext, said = NOTHING_SAID) {
  const listed = turns.flatMap(({ responses }) => responses.map((each) => listGenerationWithTools(each, context)));
  const own = listed.map(({ generation }) => generation.build);
  const isContinued = context.input === 'turn';
  const { builds, end } = isContinued
    ? continueConversation(own, said, context.maxChars)
    : { builds: own, end: () => said };
  const parts = [
    ...turns.flatMap(({ notes }) => notes.flatMap((note) => listNote(note, context))),
    ...listed.flatMap(({ generation, others }, place) => [
      { ...generation, build: builds[place] ?? generation.build },
      ...others,
    ]),
    ...turns.flatMap((turn) => listSidechains(turn, context)),
  ];
  return { parts, end };
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
    return [...parts.toSorted((a, b) => a.line - b.line), { line: root.line, key: undefined, build: () => root }];
  });
}
