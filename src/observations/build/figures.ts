import { isContinuation, mayLackOutputTokens, type Response, type Turn } from '../../transcript/turns/turn.js';
import { readAnswer } from '../content/messages.js';
import { countChangedLines } from './changed-lines.js';
import { listUsed, type Used } from './tags.js';

/** What roots, tags and scores need of all responses and notes of a turn, or of several. */
export interface Figures {
  readonly calls: number;
  readonly failedCalls: number;
  readonly apiErrors: number;
  readonly linesAdded: number;
  readonly linesRemoved: number;
  /** The latest time of a response, a call or an error. */
  readonly endTime: number;
  /** The last text of the model, or the data that it has handed over. If it was cut and continued, all of its parts. */
  readonly answer: unknown;
  readonly used: Used;
  /** Whether a response may have used more output tokens than its lines say. */
  readonly lacksOutputTokens?: boolean | undefined;
}

export const NO_FIGURES: Figures = {
  calls: 0,
  failedCalls: 0,
  apiErrors: 0,
  linesAdded: 0,
  linesRemoved: 0,
  endTime: 0,
  answer: undefined,
  used: {},
};

/** Adds those of a turn, or of a part of it, to those of the parts before. */
export function addFigures(before: Figures, turn: Pick<Turn, 'responses' | 'notes' | 'skill'>): Figures {
  const { responses, notes } = turn;
  const calls = responses.flatMap((response) => response.calls);
  const errors = notes.filter(({ kind }) => kind === 'api-error');
  const results = notes.filter((note) => note.kind === 'command-result');
  const changed = calls.map(countChangedLines);
  const times = [
    ...responses.map(({ lastBlockAt }) => lastBlockAt),
    ...calls.map(({ at, result }) => result?.at ?? at),
    ...[...errors, ...results].map(({ at }) => at),
  ];
  return {
    calls: before.calls + calls.length,
    failedCalls: before.failedCalls + calls.filter(({ result }) => result?.isError).length,
    apiErrors: before.apiErrors + errors.length,
    linesAdded: changed.reduce((sum, { added }) => sum + added, before.linesAdded),
    linesRemoved: changed.reduce((sum, { removed }) => sum + removed, before.linesRemoved),
    endTime: times.reduce((latest, time) => Math.max(latest, time), before.endTime),
    answer: findLastAnswer(responses, before.answer) ?? joinAnswer(results.map(({ content }) => content.trim())),
    used: listUsed(turn, before.used),
    lacksOutputTokens: before.lacksOutputTokens || responses.some(mayLackOutputTokens),
  };
}

function findLastAnswer(responses: readonly Response[], before: unknown): unknown {
  let [answer, last] = [before, before];
  for (const response of responses) {
    const own = readAnswer(response);
    const isPart = isContinuation(response);
    last = isPart && typeof last === 'string' && typeof own === 'string' ? joinAnswer([last, own]) : own;
    answer = last || answer;
  }
  return answer;
}

/** Joins the parts of an answer. Returns undefined if all parts are empty. */
export function joinAnswer(parts: readonly (string | undefined)[]): string | undefined {
  return parts.filter((part) => part).join('\n') || undefined;
}
