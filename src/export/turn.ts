import { isDeepStrictEqual } from 'node:util';
import type { Settings } from '../config/settings.js';
import type { Conversation } from '../observations/build/conversation.js';
import type { Selection } from '../observations/build/observation.js';
import { computeScores } from '../observations/build/scores.js';
import { buildTrace } from '../observations/build/trace.js';
import { buildPart, buildTurn } from '../observations/build/turn.js';
import type { Observation } from '../observations/model.js';
import { hashText } from '../shared/hash.js';
import { type Change, mergeChanges } from '../state/entry.js';
import type { Fact } from '../state/facts.js';
import type { RunIdentity } from '../state/runs.js';
import type { Places } from '../transcript/file/place.js';
import type { SettledPart, TurnSoFar } from '../transcript/turns/resume-point.js';
import { lacksPrompt, lineOfEnd, NO_SESSION_FACTS, type Turn, type TurnGroup } from '../transcript/turns/turn.js';
import type { WhyKept } from './export-request.js';
import type { KeptTurns } from './kept-turns.js';
import { type Outbox, type OutboxItem, withStateChanges } from './outbox.js';
import { isExportedByRelative, isInAnotherSession, isOfAnotherSession, type RelatedRun } from './relatives.js';
import type { SentLines } from './sent-lines.js';
import type { SettledParts } from './settled-parts.js';
import type { Subagents } from './subagents/subagents.js';

/** A run through a session, with what it has found and sent so far. */
export interface ExportRun extends RelatedRun {
  readonly places: Places;
  readonly outbox: Outbox;
  readonly subagents: Subagents;
  readonly parts: SettledParts;
  readonly sent: SentLines;
  readonly kept: KeptTurns;
  /** The uuids of lines that were copied from a session whose transcript is gone. */
  readonly orphans: Set<string>;
  /** The last lines of the turns that this export has built, by their keys. A turn can go on after the next one has begun. */
  readonly built: Map<string, number>;
}

/**
 * Sends what is new of turns that end together: the observations that depend on a new line, in the order of their lines, then
 * those of their subagents, and last, of each turn that itself has a new line, its root. Returns whether any of the turns belongs
 * to a run for this destination, or to another session; otherwise nothing of them is sent.
 */
export async function addTurns(group: TurnGroup, run: ExportRun): Promise<boolean> {
  const { subagents, outbox, start } = run;
  const built: BuiltTurn[] = [];
  for (const turn of group.turns) built.push(...(await buildOwnTurn(turn, run)));
  // Something must not be sent as it is.
  if (outbox.failure !== undefined) return true;
  if (built.length === 0) return false;
  const children = interleaveByLine(built.map((each) => each.children));
  await outbox.add(withStateChanges(children, (line) => reachLine(line, run)));
  // If no run goes on, later lines may say that an agent went on with tracing off. They are read first.
  if (!run.lookup.isOver) await addAgents(subagents.due(), run);
  if (run.budget.isUsedUp) return true;
  const items = built.flatMap(({ root, rootHash, started, change }): OutboxItem[] => {
    const all = { ...subagents.collectEntries(started), ...change };
    const isUnchanged = rootHash !== undefined && run.writer.known.roots?.includes(rootHash);
    // Without a root, an agent's file, or the result of its call, appeared after its turn had been exported.
    return root || started.length > 0 ? [{ ...(isUnchanged ? {} : root), change: all }] : [];
  });
  const isNew = lastLineOf(group) > start.lastLine;
  if (isNew) run.sent.releaseAll();
  if (isNew) run.kept.settle();
  await outbox.add(isNew ? withLastChange(items, turnsCompleted(group, built, run)) : items);
  return true;
}

/**
 * Sends the settled part of an open turn without its root: its children, then the finished subagents. Then drops the part, also if
 * it may not be sent, unless the rest of the turn decides that.
 */
export async function addPart({ turn, drop }: SettledPart, run: ExportRun): Promise<void> {
  const { lookup, outbox, parts, subagents } = run;
  if (lookup.isUndecided(turn)) return;
  const [built] = outbox.failure === undefined ? await buildOwnTurn(turn, run, buildPartIfNew) : [];
  if (built) await addStarted(built, run);
  parts.add(turn, built?.said?.());
  const point = drop();
  const isReached = outbox.failure === undefined && !run.budget.isUsedUp;
  if (built && isReached) parts.reach(point, run.sent.line, subagents.listEnded());
}

/** Sends the final part of an open turn, and of the subagents that work for it. */
export async function addSoFar({ turn, growing }: TurnSoFar, run: ExportRun): Promise<void> {
  const { lookup, outbox, subagents } = run;
  if (lookup.isUndecided(turn) || outbox.failure !== undefined) return;
  const [built] = await buildOwnTurn(turn, run, (...args) => buildPartIfNew(...args, growing));
  if (!built) return;
  await addStarted(built, run);
  await addAgents(subagents.working(), run);
}

/** Sends children of an open turn, then the finished subagents, and saves where the others belong. */
async function addStarted({ children, started }: BuiltTurn, run: ExportRun): Promise<void> {
  const { outbox, subagents } = run;
  await outbox.add(withStateChanges(children, (line) => reachLine(line, run)));
  await addAgents(subagents.due(), run);
  await outbox.add([{ change: subagents.collectEntries(started) }]);
}

/** If a turn was passed by, sending it does not move the progress. */
function reachLine(line: number, { sent, start }: ExportRun): Change {
  return line <= start.lastLine ? {} : sent.reach(line);
}

interface Child {
  readonly observation: Observation;
  readonly settings: Settings;
}

/** What is to be sent of a turn. */
interface BuiltTurn {
  readonly children: Iterable<Child>;
  readonly root?: Pick<OutboxItem, 'observation' | 'settings' | 'isUntraced'>;
  /** A root that the server has acknowledged is not sent again if nothing of it has changed. */
  readonly rootHash?: string | undefined;
  /** The agents that it started. */
  readonly started: readonly string[];
  readonly change: Change;
  /** What was said in a part of a turn, and before. */
  readonly said?: () => Conversation;
}

const NOTHING_NEW: BuiltTurn = { children: [], started: [], change: {} };

/** Builds a turn under the settings of its run. If another session exports the turn, there is nothing to send. */
async function buildOwnTurn(turn: Turn, run: ExportRun, build = buildIfNew): Promise<BuiltTurn[]> {
  const { lookup, outbox, kept } = run;
  run.subagents.strays.note(turn);
  const note = (why: WhyKept) => run.context.observer?.onKept?.(turn, why);
  const isOrphan = turn.copied && run.orphans.has(turn.key);
  if (isOrphan && !run.request.takesAll) {
    note('copied');
    kept.keep(turn, 'copied');
    return [NOTHING_NEW];
  }
  if (!isOrphan && (turn.copied || isCopy(turn, run))) {
    note('copied');
    kept.remove(turn);
    return [NOTHING_NEW];
  }
  const isMuted = lookup.isMuted(turn);
  if (isMuted || isLeftToAnother(turn, run)) {
    run.subagents.strays.keep(turn);
    note(isMuted ? 'muted' : 'another session');
    kept.remove(turn);
    return [];
  }
  const taken = lookup.mayTake(turn) ? lookup.take(turn) : undefined;
  const prompts = promptsOf(turn);
  const runs = lookup.findRuns(prompts);
  const settings = runs && (await run.settings.find(runs));
  if (!runs || !settings) {
    run.subagents.strays.keep(turn);
    note(runs ? 'excluded' : lookup.explainNone(prompts));
    kept.keep(turn, runs ? 'excluded' : 'untraced');
    return [];
  }
  if (settings.hold !== undefined) outbox.hold(settings.hold);
  return settings.hold === undefined ? [build(turn, runs, settings, taken, run)] : [];
}

/** Whether another session decides about a turn of no run, or did when a backfill took it. */
function isLeftToAnother(turn: Turn, run: ExportRun): boolean {
  const { lookup, start, kept } = run;
  const wasTaken = lookup.wasTaken(turn) && (lineOfEnd(turn) > start.lastLine || kept.has(turn));
  return (lookup.mayTake(turn) || wasTaken) && isOfAnotherSession(turn, run);
}

/** Whether a turn without a mark was copied from another session, which may have its answer only in memory. */
function isCopy(turn: Turn, run: ExportRun): boolean {
  const isElsewhere = () => lacksPrompt(turn) || isInAnotherSession(turn, run);
  return isExportedByRelative(turn, run) || (run.lookup.mayBeCopied(turn) && isElsewhere());
}

function buildIfNew(
  turn: Turn,
  runs: readonly [RunIdentity, ...RunIdentity[]],
  settings: Settings,
  taken: Fact | undefined,
  run: ExportRun,
): BuiltTurn {
  const { options, trace, started, after } = recordTurn(turn, runs, settings, run);
  const isLate = run.kept.has(turn);
  // Every run reads the last exported turn again, and seldom finds anything new in it.
  if (lineOfEnd(turn) <= run.start.lastLine && !isLate) return { ...NOTHING_NEW, started };
  run.built.set(turn.key, lineOfEnd(turn));
  const earlier = run.parts.earlierOf(turn);
  const select = isLate ? ALL : run.sent.select({ after });
  const { children, root } = buildTurn(turn, options, trace, select, earlier);
  run.kept.remove(turn);
  return {
    children: withSettings(children, settings),
    root: { observation: root, settings, isUntraced: taken !== undefined },
    rootHash: hashRoot(root),
    started,
    change: {
      ...(options.scores && { scores: { [root.id]: computeScores(turn, root, earlier.figures) } }),
      ...(taken && { facts: [taken] }),
      ...(isLate && { kept: run.kept.list() }),
      ...(lacksPrompt(turn) && run.writer.addStray(turn.key)),
    },
  };
}

function buildPartIfNew(
  turn: Turn,
  runs: readonly [RunIdentity, ...RunIdentity[]],
  settings: Settings,
  _taken: Fact | undefined,
  run: ExportRun,
  growing?: ReadonlySet<string>,
): BuiltTurn {
  const { options, trace, started, after } = recordTurn(turn, runs, settings, run);
  const { countsFrom } = turn;
  // The next live export would send them again.
  const isLate = run.request.occasion !== 'live' && run.kept.has(turn);
  const select = isLate ? ALL : run.sent.select({ growing, after, countsFrom });
  const { children, end: said } = buildPart(turn, options, trace, select, run.parts.earlierOf(turn));
  return { ...NOTHING_NEW, started, children: withSettings(children, settings), said };
}

const ALL: Selection = (parts) => parts;

function promptsOf({ prompts }: Turn): number[] {
  return prompts.map(({ offset }) => offset);
}

function recordTurn(turn: Turn, runs: readonly [RunIdentity, ...RunIdentity[]], settings: Settings, run: ExportRun) {
  const { start, request, subagents, parts, built, writer } = run;
  const own = run.settings.buildOptions(runs, settings, turn.context.cwd);
  const options = { ...own, sessionId: request.sessionId };
  const trace = buildTrace(turn, options, parts.earlierOf(turn).figures);
  // The first cc-langfuse has sent its agents, too, under random ids.
  const isOfFirst = lineOfEnd(turn) <= Math.min(writer.known.seedLine ?? 0, start.lastLine);
  const started = isOfFirst ? [] : subagents.recordTurn(turn, trace, options, promptsOf(turn));
  // If the turn began to count only after the last line that was sent, nothing of it has been sent.
  const after = built.get(turn.key) ?? (turn.countsFrom > start.sentLine ? 0 : start.sentLine);
  return { options, trace, started, after };
}

/** Each turn's children are in the order of their lines; the lines of several turns can interleave. */
function* interleaveByLine(all: readonly Iterable<Child>[]): Generator<Child, void, undefined> {
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

/** Undefined if the root has images. An image that was not uploaded before may be now. */
function hashRoot({ line: _, media = [], ...root }: Observation): string | undefined {
  return media.length > 0 ? undefined : hashText(JSON.stringify(root)).slice(0, 16);
}

export function lastLineOf({ turns }: Pick<TurnGroup, 'turns'>): number {
  return Math.max(...turns.map(lineOfEnd));
}

/** The first byte after all of them. */
export function endOf({ turns }: Pick<TurnGroup, 'turns'>): number {
  return Math.max(...turns.map(({ end }) => end));
}

/** What the state records once the turns are acknowledged whole. */
function turnsCompleted({ turns, from }: TurnGroup, built: readonly BuiltTurn[], run: ExportRun): Change {
  const lastLine = lastLineOf({ turns });
  const end = endOf({ turns });
  const turnCount = Math.max(...turns.map(({ number }) => number));
  const last = turns.find((turn) => lineOfEnd(turn) === lastLine);
  const first = turns.find(({ number, copied }) => number === 1 && !copied);
  const forked = turns.filter((turn) => !turn.copied && isCopy(turn, run));
  const roots = built.flatMap(({ rootHash }) => rootHash ?? []);
  return {
    lastLine,
    turnCount,
    turnLine: from.line,
    offset: from.offset,
    end,
    hash: run.places.hashEnds(from.offset, end),
    turnsBefore: from.turnCount === turnCount - 1 ? undefined : from.turnCount,
    prompt: last?.key,
    prompts: run.lookup.lastPrompts(),
    roots: roots.length > 0 ? roots : undefined,
    time: from.time,
    session: isDeepStrictEqual(from.session, NO_SESSION_FACTS) ? undefined : from.session,
    sentLine: lastLine,
    held: undefined,
    kept: run.kept.list(),
    agentsSince: run.start.agentsSince,
    ...(first && { first: first.key }),
    ...(forked.length > 0 && { copiedLine: Math.max(...forked.map(lineOfEnd)) }),
  };
}

/** Adds a change to the last item, since it may be saved only when all of them are acknowledged. */
function withLastChange(items: readonly OutboxItem[], change: Change): OutboxItem[] {
  const last = items.at(-1);
  return [...items.slice(0, -1), { ...last, change: mergeChanges(change, last?.change ?? {}) }];
}
