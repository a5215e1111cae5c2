import { isDeepStrictEqual } from 'node:util';
import { computeScores } from '../observations/build/scores.js';
import { buildTrace } from '../observations/build/trace.js';
import { buildTurn } from '../observations/build/turn.js';
import { attempt } from '../shared/attempt.js';
import type { Entry } from '../state/entry.js';
import { readUserUuids } from '../transcript/sessions/related-sessions.js';
import { NO_SESSION_FACTS, type Turn } from '../transcript/turns/turn.js';
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
 * Sends what is new of a turn: the observations that depend on a new line, then those of its subagents, and last, if the turn
 * itself has a new line, its root.
 */
export async function addTurn(turn: Turn, run: ExportRun): Promise<void> {
  const { start, subagents, outbox } = run;
  const isNew = lineOfEnd(turn) > start.lastLine;
  run.forkedTurns ??= findForkedTurns(turn, run);
  const isForked = run.forkedTurns.has(turn.key);
  if (turn.copied || isForked) {
    if (isNew) await outbox.add([{ change: turnCompleted(turn, isForked, start.agentsSince) }]);
    return;
  }
  const options = buildOptions(run, turn.context.cwd, turn.prompts[0].line);
  const trace = buildTrace(turn, options);
  const started = subagents.recordTurn(turn, trace);
  // Every run reads the last exported turn again, and seldom finds anything new in it.
  const built = isNew ? buildTurn(turn, options, trace) : undefined;
  const children = built?.children.filter(({ line }) => line > start.sentLine) ?? [];
  await outbox.add(withStateChanges(children, (line) => ({ sentLine: line })));
  await addAgents(subagents.due(), run);
  if (run.budget.isUsedUp) return;
  if (built) {
    const scores = options.scores ? { scores: { [built.root.id]: computeScores(turn, built.root) } } : {};
    const completed = turnCompleted(turn, isForked, start.agentsSince);
    await outbox.add([
      { observation: built.root, change: { ...completed, ...subagents.collectEntries(started), ...scores } },
    ]);
  } else if (started.length > 0) {
    // An agent's file, or the result of its call, appeared after its turn had been exported.
    await outbox.add([{ change: subagents.collectEntries(started) }]);
  }
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

/** What the state records once the whole turn is acknowledged. */
function turnCompleted(turn: Turn, isForked: boolean, agentsSince: string | undefined): Partial<Entry> {
  const last = lineOfEnd(turn);
  return {
    lastLine: last,
    turnCount: turn.number,
    turnLine: turn.start.line,
    offset: turn.start.offset,
    prompt: turn.key,
    time: turn.inheritedTime,
    session: isDeepStrictEqual(turn.sessionBefore, NO_SESSION_FACTS) ? undefined : turn.sessionBefore,
    sentLine: last,
    agentsSince,
    ...(turn.number === 1 && !turn.copied && { first: turn.key }),
    ...(isForked && { copiedLine: last }),
  };
}
