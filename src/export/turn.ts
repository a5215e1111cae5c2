import { isDeepStrictEqual } from 'node:util';
import { computeScores } from '../observations/build/scores.js';
import { buildTrace } from '../observations/build/trace.js';
import { buildTurn } from '../observations/build/turn.js';
import { attempt } from '../shared/attempt.js';
import { type Entry, mergeEntry } from '../state/entry.js';
import { readUserUuids } from '../transcript/sessions/related-sessions.js';
import { NO_SESSION_FACTS, type Turn, type TurnGroup } from '../transcript/turns/turn.js';
import { type Outbox, type OutboxItem, withStateChanges } from './outbox.js';
import { buildOptions, type SessionRun } from './session-run.js';
import type { Subagents } from './subagents/subagents.js';

/** A run through a session, with what it has found and sent so far. */
export interface ExportRun extends SessionRun {
  readonly outbox: Outbox;
  readonly subagents: Subagents;
  /** Turns that related sessions have exported; found when the first turn is known. */
  forkedTurns?: ReadonlySet<string>;
}

/**
 * Sends what is new of turns that end together: the observations that depend on a new line, in the order of their lines, then
 * those of their subagents, and last, of each turn that itself has a new line, its root.
 */
export async function addTurns({ turns, from }: TurnGroup, run: ExportRun): Promise<void> {
  const { subagents, outbox, start } = run;
  run.forkedTurns ??= findForkedTurns(turns[0], run);
  const built = turns.map((turn) => buildIfNew(turn, run));
  const children = built.flatMap((each) => each.children).toSorted((a, b) => a.line - b.line);
  await outbox.add(withStateChanges(children, (line) => ({ sentLine: line })));
  await addAgents(subagents.due(), run);
  if (run.budget.isUsedUp) return;
  const items = built.flatMap(({ root, started, scores }): OutboxItem[] => {
    // Without a root, an agent's file, or the result of its call, appeared after its turn had been exported.
    const change = { ...subagents.collectEntries(started), ...scores };
    return root || started.length > 0 ? [{ change, ...(root && { observation: root }) }] : [];
  });
  const isNew = lastLineOf({ turns }) > start.lastLine;
  await outbox.add(isNew ? withLastChange(items, turnsCompleted({ turns, from }, run)) : items);
}

/** What is to be sent of a turn. A turn that was exported elsewhere has nothing. */
function buildIfNew(turn: Turn, run: ExportRun) {
  const { start, subagents, forkedTurns } = run;
  if (turn.copied || forkedTurns?.has(turn.key)) return { children: [], root: undefined, started: [], scores: {} };
  const options = buildOptions(run, turn.context.cwd, turn.prompts[0].line);
  const trace = buildTrace(turn, options);
  const started = subagents.recordTurn(turn, trace);
  // Every run reads the last exported turn again, and seldom finds anything new in it.
  if (lineOfEnd(turn) <= start.lastLine) return { children: [], root: undefined, started, scores: {} };
  const { children, root } = buildTurn(turn, options, trace);
  // What did not count when a later line was sent has not been sent at all.
  const sentLine = turn.countsFrom > start.sentLine ? 0 : start.sentLine;
  const scores = options.scores ? { scores: { [root.id]: computeScores(turn, root) } } : {};
  return { children: children.filter(({ line }) => line > sentLine), root, started, scores };
}

/** Adds one agent after the other, as long as there is time to read them. */
export async function addAgents(agents: Iterable<OutboxItem[]>, { outbox, budget }: ExportRun): Promise<void> {
  if (budget.isUsedUp) return;
  for (const items of agents) {
    await outbox.add(items);
    if (outbox.failure !== undefined || budget.check()) return;
  }
}

/**
 * Finds the prompts of turns that related sessions have exported. Up to 2.1.197 nothing marks a fork, except that it begins with
 * the same prompt as another session.
 */
function findForkedTurns({ key }: Turn, { request, context, writer }: ExportRun): ReadonlySet<string> {
  const { state, destinationId } = context;
  const { first = key } = writer.known;
  const related = state.sessionsWithFirst(first, request.sessionId);
  const exported = related.flatMap(([, { destination, path, lastLine, copiedLine = 0 }]) => {
    if (destination !== destinationId || path === undefined) return [];
    // If the file is gone, at least its first turn was exported.
    return [...(attempt(() => readUserUuids(path, copiedLine, lastLine)) ?? [first])];
  });
  return new Set(exported);
}

function lineOfEnd({ lineNumbers }: Turn): number {
  return lineNumbers.at(-1) ?? 0;
}

export function lastLineOf({ turns }: Pick<TurnGroup, 'turns'>): number {
  return Math.max(...turns.map(lineOfEnd));
}

/** What the state records once the turns are acknowledged whole. */
function turnsCompleted({ turns, from }: TurnGroup, { forkedTurns, start }: ExportRun): Partial<Entry> {
  const lastLine = lastLineOf({ turns });
  const turnCount = Math.max(...turns.map(({ number }) => number));
  const last = turns.find((turn) => lineOfEnd(turn) === lastLine);
  const first = turns.find(({ number, copied }) => number === 1 && !copied);
  const forked = turns.filter(({ key }) => forkedTurns?.has(key));
  return {
    lastLine,
    turnCount,
    turnLine: from.line,
    offset: from.offset,
    turnsBefore: from.turnCount === turnCount - 1 ? undefined : from.turnCount,
    prompt: last?.key,
    time: from.time,
    session: isDeepStrictEqual(from.session, NO_SESSION_FACTS) ? undefined : from.session,
    sentLine: lastLine,
    agentsSince: start.agentsSince,
    ...(first && { first: first.key }),
    ...(forked.length > 0 && { copiedLine: Math.max(...forked.map(lineOfEnd)) }),
  };
}

/** Adds a change to the last item, since it may be saved only when all of them are acknowledged. */
function withLastChange(items: readonly OutboxItem[], change: Partial<Entry>): OutboxItem[] {
  const last = items.at(-1);
  return [...items.slice(0, -1), { ...last, change: mergeEntry(change, last?.change ?? {}) }];
}
