import { isDeepStrictEqual } from 'node:util';
import { computeScores } from '../observations/build/scores.js';
import { buildTrace } from '../observations/build/trace.js';
import { buildTurn } from '../observations/build/turn.js';
import type { Entry } from '../state/entry.js';
import { NO_SESSION_FACTS, type Turn } from '../transcript/turns/turn.js';
import type { ReadingBudget } from './budget.js';
import type { OptionsFor } from './build-options.js';
import type { EntryWriter } from './entry-writer.js';
import type { ExportContext, ExportRequest } from './export-request.js';
import { type Outbox, type OutboxItem, withStateChanges } from './outbox.js';
import { findTurnsOfRelatedForks } from './related-forks.js';
import { migratedAt, type Start } from './start-position.js';
import type { Subagents } from './subagents/subagents.js';

/** One run through a session. */
export interface SessionRun {
  readonly start: Start;
  readonly request: ExportRequest;
  readonly context: ExportContext;
  readonly writer: EntryWriter;
  readonly outbox: Outbox;
  readonly subagents: Subagents;
  readonly optionsFor: OptionsFor;
  readonly budget: ReadingBudget;
  /** Turns that related sessions have exported; found when the first turn is known. */
  forkedTurns?: ReadonlySet<string>;
}

/**
 * Sends what is new of a turn: the observations that depend on a new line, then those of its subagents, and last, if the turn
 * itself has a new line, its root.
 */
export async function addTurn(turn: Turn, run: SessionRun): Promise<void> {
  const { start, subagents, outbox } = run;
  const isNew = isBeyond(turn, start);
  const isForked = findForkedTurns(turn, run).has(turn.key);
  if (turn.copied || isForked) {
    if (isNew) await outbox.add([{ change: turnCompleted(turn, isForked, run) }]);
    return;
  }
  const options = run.optionsFor(turn.context.cwd, turn.prompts[0].line);
  const trace = buildTrace(turn, options);
  const started = subagents.observe(turn, trace);
  // Every run reads the last exported turn again, and seldom finds anything new in it.
  const built = isNew ? buildTurn(turn, options, trace) : undefined;
  const children = built?.children.filter(({ line }) => line > start.sentLine) ?? [];
  await outbox.add(withStateChanges(children, (line) => ({ sentLine: line })));
  await addAgents(subagents.due(), run);
  if (run.budget.isUsedUp) return;
  if (built) {
    const scores = options.scores ? { scores: { [built.root.id]: computeScores(turn, built.root) } } : {};
    const change = { ...turnCompleted(turn, isForked, run), ...subagents.collectEntries(started), ...scores };
    await outbox.add([{ observation: built.root, change }]);
  } else if (started.length > 0) {
    // An agent's file, or the result of its call, appeared after its turn had been exported.
    await outbox.add([{ change: subagents.collectEntries(started) }]);
  }
}

/** Adds one agent after the other, as long as there is time to read them. */
export async function addAgents(
  agents: Iterable<readonly OutboxItem[]>,
  { outbox, budget }: SessionRun,
): Promise<void> {
  for (const items of agents) {
    await outbox.add(items);
    if (outbox.failure !== undefined || budget.check()) return;
  }
}

function isBeyond(turn: Turn, { lastLine }: Start): boolean {
  return lineOfEnd(turn) > lastLine;
}

function lineOfEnd({ lineNumbers }: Turn): number {
  return lineNumbers.at(-1) ?? 0;
}

function findForkedTurns({ key }: Turn, run: SessionRun): ReadonlySet<string> {
  const { writer, request, context } = run;
  run.forkedTurns ??= findTurnsOfRelatedForks(writer.known.first ?? key, request.sessionId, context);
  return run.forkedTurns;
}

/** What the state records once the whole turn is acknowledged. */
function turnCompleted(turn: Turn, isForked: boolean, { writer }: SessionRun): Partial<Entry> {
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
    agentsSince: migratedAt(writer.known),
    ...(turn.number === 1 && !turn.copied && { first: turn.key }),
    ...(isForked && { copiedLine: last }),
  };
}
