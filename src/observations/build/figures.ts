import { isContinuation, mayLackOutputTokens, type Response, type Turn } from '../../transcript/turns/turn.js';
import { readAnswer } from '../content/messages.js';
import type { ObservationDraft } from '../model.js';
import { countChanges } from './changes.js';
import { listUsed, type Used } from './tags.js';
import { addTime, NO_TIME, type TimeSpent } from './time-spent.js';
import { describeContext } from './usage.js';

/** What roots, tags and scores need of all responses and notes of a turn, or of several. */
export interface Figures {
  readonly calls: number;
  readonly failedCalls: number;
  readonly apiErrors: number;
  readonly linesAdded: number;
  readonly linesRemoved: number;
  /** The commits that it made, by their ids. */
  readonly commits: readonly string[];
  /** The address of the last pull request that it made or changed. */
  readonly pullRequest?: string | undefined;
  readonly compactions: number;
  /** The tokens that the last request sent: how full the context is. */
  readonly contextTokens?: number | undefined;
  readonly time: TimeSpent;
  /** How long the hooks of the user ran, by event and tool. */
  readonly hookMs: { readonly [hook: string]: number };
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
  commits: [],
  compactions: 0,
  time: NO_TIME,
  hookMs: {},
  endTime: 0,
  answer: undefined,
  used: {},
};

/** Adds those of a turn, or of a part of it, to those of the parts before. */
export function addFigures(before: Figures, turn: Turn): Figures {
  const { responses, notes, hooks, prompts } = turn;
  const calls = responses.flatMap((response) => response.calls);
  const errors = notes.filter(({ kind }) => kind === 'api-error');
  const results = notes.filter((note) => note.kind === 'command-result');
  const changed = calls.map(countChanges);
  const operations = calls.flatMap(({ result }) => result?.details?.gitOperation ?? []);
  const commits = operations.flatMap(({ commit }) => commit?.sha ?? []);
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
    commits: [...new Set([...before.commits, ...commits])],
    pullRequest: operations.findLast(({ pr }) => pr?.url !== undefined)?.pr?.url ?? before.pullRequest,
    compactions: before.compactions + notes.filter(({ kind }) => kind === 'compaction').length,
    contextTokens: countLastContext(responses) ?? before.contextTokens,
    time: addTime(before.time, turn, prompts[0].at),
    hookMs: addHooks(before.hookMs, hooks),
    endTime: times.reduce((latest, time) => Math.max(latest, time), before.endTime),
    answer: findLastAnswer(responses, before.answer) ?? joinAnswer(results.map(({ content }) => content.trim())),
    used: listUsed(turn, before.used),
    lacksOutputTokens: before.lacksOutputTokens || responses.some(mayLackOutputTokens),
  };
}

function countLastContext(responses: readonly Response[]): number | undefined {
  for (const { usage } of responses.toReversed()) {
    const { context_tokens: tokens } = describeContext(usage);
    if (tokens !== undefined) return tokens;
  }
  return undefined;
}

function addHooks(before: Figures['hookMs'], hooks: Turn['hooks']): Figures['hookMs'] {
  const sums = new Map(Object.entries(before));
  for (const { name, ms } of hooks) sums.set(name, (sums.get(name) ?? 0) + ms);
  return Object.fromEntries(sums);
}

/** Where the time of a turn went from its start on, and what came of its work, as metadata. What is 0 is not said. */
export function describeFigures({ time, hookMs, ...figures }: Figures, start: number): ObservationDraft['metadata'] {
  const { model, tool, person } = time;
  const rest = Math.max(start, figures.endTime) - start - model - tool - person;
  // By clocks that are set back, a hook can end after the turn.
  const hook = Math.min(time.hook, rest);
  return {
    model_ms: model || undefined,
    tool_ms: tool || undefined,
    person_ms: person || undefined,
    hook_ms: hook || undefined,
    other_ms: rest - hook || undefined,
    hooks: Object.keys(hookMs).length > 0 ? hookMs : undefined,
    lines_added: figures.linesAdded || undefined,
    lines_removed: figures.linesRemoved || undefined,
    commits: figures.commits.length > 0 ? figures.commits : undefined,
    pr: figures.pullRequest,
    compactions: figures.compactions || undefined,
    context_tokens: figures.contextTokens,
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
