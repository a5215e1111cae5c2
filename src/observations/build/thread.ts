import type { AgentThread, Turn } from '../../transcript/turns/turn.js';
import { answerText, buildUserMessage } from '../content/messages.js';
import type { Observation, ObservationDraft } from '../model.js';
import { determineEnding } from './ending.js';
import { buildEvent } from './events.js';
import { buildGenerationWithTools } from './generation.js';
import { type BuildContext, buildObservation } from './observation.js';

/** What Langfuse shows of a turn or of a subagent. */
export interface ObservationTree {
  /** In the order of the lines that completed them. */
  readonly children: readonly Observation[];
  /** The agent observation above them. */
  readonly root: Observation;
}

type Turns = AgentThread['turns'];

/** Builds the events, generations and tools of turns. */
export function buildChildren(turns: readonly Turn[], context: BuildContext): Observation[] {
  return turns.flatMap(({ notes, responses }) => [
    ...notes.flatMap((note) => buildEvent(note, context) ?? []),
    ...responses.flatMap((response) => buildGenerationWithTools(response, context)),
  ]);
}

/** Builds the agent observation of a turn, or of all turns of a subagent. */
export function buildAgentObservation(
  turns: Turns,
  own: Pick<ObservationDraft, 'parentId' | 'name' | 'metadata'>,
  context: BuildContext,
): Observation {
  const last = turns.at(-1) ?? turns[0];
  const { level, statusMessage } = determineEnding(last);
  const responses = turns.flatMap((turn) => turn.responses);
  const answer = responses.map(answerText).findLast((text) => text !== '');
  const startTime = turns[0].prompts[0].at;
  const times = [
    ...responses.map(({ lastBlockAt }) => lastBlockAt),
    ...responses.flatMap(({ calls }) => calls.map(({ at, result }) => result?.at ?? at)),
    ...findApiErrors(turns).map(({ at }) => at),
  ];
  return buildObservation(
    {
      ...own,
      type: 'agent',
      id: context.agentSpanId,
      startTime,
      endTime: times.reduce((latest, time) => Math.max(latest, time), startTime),
      input: turns.flatMap(({ prompts }) => prompts.map((prompt) => buildUserMessage(prompt, context))),
      output: answer === undefined ? null : { role: 'assistant', content: answer },
      level,
      statusMessage,
      line: last.lineNumbers.at(-1) ?? last.prompts[0].line,
    },
    context,
  );
}

/** Builds the metadata that a turn and a subagent both have. */
export function buildOutcomeMetadata(turns: Turns) {
  const calls = turns.flatMap(({ responses }) => responses.flatMap((response) => response.calls));
  const failed = calls.filter(({ result }) => result?.isError);
  return {
    outcome: determineEnding(turns.at(-1) ?? turns[0]).outcome,
    tool_count: calls.length,
    error_count: failed.length + findApiErrors(turns).length,
  };
}

function findApiErrors(turns: Turns) {
  return turns.flatMap(({ notes }) => notes.filter(({ kind }) => kind === 'api-error'));
}
