import { isDeepStrictEqual } from 'node:util';
import type { Settings } from '../config/settings.js';
import { computeScores } from '../observations/build/scores.js';
import { buildTrace } from '../observations/build/trace.js';
import { buildTurn } from '../observations/build/turn.js';
import { attempt } from '../shared/attempt.js';
import { type Entry, withProgressAt } from '../state/entry.js';
import type { Run } from '../state/runs.js';
import { readUserUuids } from '../transcript/sessions/related-sessions.js';
import { NO_SESSION_FACTS, type Turn } from '../transcript/turns/turn.js';
import { type Outbox, type OutboxItem, withStateChanges } from './outbox.js';
import type { SessionRun } from './session-run.js';
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
 * itself has a new line, its root. Returns whether the turn belongs to a run; otherwise nothing of it is sent.
 */
export async function addTurn(turn: Turn, run: ExportRun): Promise<boolean> {
  const { start, ledger, outbox } = run;
  const isNew = lineOfEnd(turn) > start.lastLine;
  run.forkedTurns ??= findForkedTurns(turn, run);
  const isForked = run.forkedTurns.has(turn.key);
  if (turn.copied || isForked) {
    if (isNew && !start.isForGaps) await outbox.add([{ change: turnCompleted(turn, isForked, start.agentsSince) }]);
    return true;
  }
  if (ledger.isMuted(turn)) return false;
  const taken = ledger.claim(turn);
  const runs = ledger.findRuns(turn.prompts.map(({ line }) => line));
  const settings = runs && (!start.isForGaps || taken) ? await run.settings.find(runs) : undefined;
  if (!runs || !settings) return false;
  if (settings.hold !== undefined) outbox.hold(settings.hold);
  else await addOwnTurn(turn, runs, settings, taken, isNew, run);
  return true;
}

async function addOwnTurn(
  turn: Turn,
  runs: readonly [Run, ...Run[]],
  settings: Settings,
  taken: Run | undefined,
  isNew: boolean,
  run: ExportRun,
): Promise<void> {
  const { start, request, subagents, outbox } = run;
  const options = {
    ...run.settings.buildOptions(runs, settings, turn.context.cwd),
    sessionId: request.sessionId,
  };
  const trace = buildTrace(turn, options);
  const promptLines = turn.prompts.map(({ line }) => line);
  const started = subagents.recordTurn(turn, trace, options, promptLines);
  // Every run reads the last exported turn again, and seldom finds anything new in it.
  const built = isNew ? buildTurn(turn, options, trace) : undefined;
  const children = built?.children.filter(({ line }) => line > start.sentLine) ?? [];
  await outbox.add(withStateChanges(children, settings, (line) => (start.isForGaps ? {} : { sentLine: line })));
  await addAgents(subagents.due(), run);
  if (run.budget.isUsedUp) return;
  if (built) {
    const scores = options.scores ? { scores: { [built.root.id]: computeScores(turn, built.root) } } : {};
    const completed = start.isForGaps ? {} : turnCompleted(turn, false, start.agentsSince);
    const change = {
      ...completed,
      ...subagents.collectEntries(started),
      ...scores,
      ...(taken && { runs: [taken] }),
    };
    await outbox.add([{ observation: built.root, settings, change }]);
  } else if (started.length > 0) {
    // An agent's file, or the result of its call, appeared after its turn had been exported.
    await outbox.add([{ change: subagents.collectEntries(started) }]);
  }
}

/** Adds one agent after the other, as long as there is time to read them. */
export async function addAgents(
  agents: AsyncIterable<OutboxItem[]>,
  { outbox, budget }: Pick<ExportRun, 'outbox' | 'budget'>,
): Promise<void> {
  if (budget.isUsedUp) return;
  for await (const items of agents) {
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
  const exported = related.flatMap(([, entry]) => {
    const { path, lastLine, copiedLine = 0 } = withProgressAt(entry, destinationId);
    if (path === undefined || lastLine === 0) return [];
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
