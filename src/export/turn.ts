import { isDeepStrictEqual } from 'node:util';
import type { Settings } from '../config/settings.js';
import { computeScores } from '../observations/build/scores.js';
import { buildTrace } from '../observations/build/trace.js';
import { buildTurn } from '../observations/build/turn.js';
import type { Observation } from '../observations/model.js';
import { attempt } from '../shared/attempt.js';
import { type Entry, mergeEntry, withProgressAt } from '../state/entry.js';
import type { Run } from '../state/runs.js';
import { readUserUuids } from '../transcript/sessions/related-sessions.js';
import { NO_SESSION_FACTS, type Turn, type TurnGroup } from '../transcript/turns/turn.js';
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
 * Sends what is new of turns that end together: the observations that depend on a new line, in the order of their lines, then
 * those of their subagents, and last, of each turn that itself has a new line, its root. Returns whether any of the turns belongs
 * to a run for this destination, or to another session; otherwise nothing of them is sent.
 */
export async function addTurns(group: TurnGroup, run: ExportRun): Promise<boolean> {
  const { subagents, outbox, start } = run;
  run.forkedTurns ??= findForkedTurns(group.turns[0], run);
  const built: BuiltTurn[] = [];
  for (const turn of group.turns) built.push(...(await buildOwnTurn(turn, run)));
  // Something must not be sent as it is.
  if (outbox.failure !== undefined) return true;
  if (built.length === 0) return false;
  const children = mergeByLine(built.map((each) => each.children));
  await outbox.add(withStateChanges(children, (line) => (start.isForGaps ? {} : { sentLine: line })));
  await addAgents(subagents.due(), run);
  if (run.budget.isUsedUp) return true;
  const items = built.flatMap(({ root, started, change }): OutboxItem[] => {
    // Without a root, an agent's file, or the result of its call, appeared after its turn had been exported.
    return root || started.length > 0 ? [{ ...root, change: { ...subagents.collectEntries(started), ...change } }] : [];
  });
  const isNew = lastLineOf(group) > start.lastLine && !start.isForGaps;
  await outbox.add(isNew ? withLastChange(items, turnsCompleted(group, run)) : items);
  return true;
}

interface Child {
  readonly observation: Observation;
  readonly settings: Settings;
}

/** What is to be sent of a turn. */
interface BuiltTurn {
  readonly children: Iterable<Child>;
  readonly root?: Pick<OutboxItem, 'observation' | 'settings' | 'isUntraced'>;
  /** The agents that it started. */
  readonly started: readonly string[];
  readonly change: Partial<Entry>;
}

const NOTHING_NEW: BuiltTurn = { children: [], started: [], change: {} };

/** Builds a turn under the settings of its run. Of a turn that another session exports there is nothing to be sent. */
async function buildOwnTurn(turn: Turn, run: ExportRun): Promise<BuiltTurn[]> {
  const { start, ledger, outbox, forkedTurns } = run;
  if (turn.copied || forkedTurns?.has(turn.key)) return start.isForGaps ? [] : [NOTHING_NEW];
  if (ledger.isMuted(turn)) return [];
  const taken = ledger.take(turn);
  const runs = ledger.findRuns(turn.prompts.map(({ line }) => line));
  const settings = runs && (!start.isForGaps || taken) ? await run.settings.find(runs) : undefined;
  if (!runs || !settings) return [];
  if (settings.hold !== undefined) outbox.hold(settings.hold);
  return settings.hold === undefined ? [buildIfNew(turn, runs, settings, taken, run)] : [];
}

function buildIfNew(
  turn: Turn,
  runs: readonly [Run, ...Run[]],
  settings: Settings,
  taken: Run | undefined,
  run: ExportRun,
): BuiltTurn {
  const { start, request, subagents } = run;
  const own = run.settings.buildOptions(runs, settings, turn.context.cwd);
  const options = { ...own, sessionId: request.sessionId };
  const trace = buildTrace(turn, options);
  const promptLines = turn.prompts.map(({ line }) => line);
  const started = subagents.recordTurn(turn, trace, options, promptLines);
  // Every run reads the last exported turn again, and seldom finds anything new in it.
  if (lineOfEnd(turn) <= start.lastLine) return { ...NOTHING_NEW, started };
  // What did not count when a later line was sent has not been sent at all.
  const sentLine = turn.countsFrom > start.sentLine ? 0 : start.sentLine;
  const { children, root } = buildTurn(turn, options, trace, sentLine);
  return {
    children: withSettings(children, settings),
    root: { observation: root, settings, isUntraced: taken !== undefined },
    started,
    change: {
      ...(options.scores && { scores: { [root.id]: computeScores(turn, root) } }),
      ...(taken && { runs: [taken] }),
    },
  };
}

/** Each turn's children are in the order of their lines; the lines of several turns can interleave. */
function* mergeByLine(all: readonly Iterable<Child>[]): Generator<Child, void, undefined> {
  const iterators = all.map((children) => children[Symbol.iterator]());
  const next = (children: Iterator<Child>) => {
    const { value } = children.next();
    return value ? [{ child: value as Child, children }] : [];
  };
  let heads = iterators.flatMap(next);
  for (let [first] = heads; first; [first] = heads) {
    const { child, children } = heads.reduce((a, b) => (b.child.observation.line < a.child.observation.line ? b : a));
    yield child;
    heads = heads.flatMap((head) => (head.children === children ? next(children) : [head]));
  }
}

function* withSettings(observations: Iterable<Observation>, settings: Settings): Generator<Child, void, undefined> {
  for (const observation of observations) yield { observation, settings };
}

/** Adds one agent after the other, as long as there is time to read them. */
export async function addAgents(agents: AsyncIterable<OutboxItem[]>, { outbox, budget }: ExportRun): Promise<void> {
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
