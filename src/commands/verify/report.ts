import { formatCount, plural, toOneLine } from '../../cli/format.js';
import { formatDollars } from '../../cli/format-cost.js';
import { ownCommand } from '../../cli/own-command.js';
import { cutToWidth, style } from '../../cli/terminal.js';
import type { WhyKept } from '../../export/export-request.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { countTokens } from './compare.js';
import { type Expected, type KeptBack, KINDS, type Kind } from './expected.js';
import { findRepair, type Repair } from './repair.js';
import type { Verified } from './verify-session.js';

/** A session that could not be compared, and why. */
export interface Unread {
  readonly session: SessionOverview;
  readonly unread: string;
}

export type Outcome = Verified | Unread;

export function isUnread(outcome: Outcome): outcome is Unread {
  return 'unread' in outcome;
}

export function isFine(outcome: Outcome): boolean {
  if (isUnread(outcome) || outcome.problem !== undefined) return false;
  const { missing, different, twice } = outcome.comparison;
  return missing.length + different.length + twice.length === 0;
}

/** What is said of the turns that are not sent, one or several. */
const REASONS: { readonly [why in WhyKept]: readonly [string, string] } = {
  open: ['is not over', 'are not over'],
  untraced: ['ran without tracing', 'ran without tracing'],
  muted: ['was said while the session was muted', 'were said while the session was muted'],
  excluded: ['is of an excluded folder', 'are of an excluded folder'],
  copied: ['was copied from another session', 'were copied from another session'],
  'another session': [
    'is also in another session, which decides about it',
    'are also in another session, which decides about them',
  ],
  'another project': ['is for another project', 'are for another project'],
  'no project': ['ran without keys', 'ran without keys'],
};

const TITLE_COLUMNS = 60;
const TURNS_SHOWN = 5;
const IDS_SHOWN = 3;

/** The lines for a session: one if nothing is wrong and nothing is kept back. */
export function describeSession(verified: Verified): string[] {
  const { sessionId, title = '' } = verified.session;
  const shown = cutToWidth(toOneLine(title), TITLE_COLUMNS);
  const name = toOneLine(sessionId) + (shown === '' ? '' : ` "${shown}"`);
  const details = [...listFaults(verified), ...listRepairs(verified), ...listNotes(verified)];
  return [`${style('bold', name)}: ${summarize(verified)}`, ...details.map((line) => `  ${line}`)];
}

function summarize(verified: Verified): string {
  const { expected, comparison, problem } = verified;
  if (isEmpty(verified)) return problem === undefined ? 'it has no answered turn' : 'it could not be compared';
  if (expected.length === 0) return 'nothing of it is to be in Langfuse';
  const { cost, modelsWithoutPrice } = comparison;
  const kinds = (['response', 'call'] as const).map((kind) => ({ kind, ...countKind(verified, kind) }));
  const shown = kinds.filter(({ all }) => all > 0);
  const what = shown.map(({ kind, found, all }) => `${formatCount(found)} of ${plural(all, kind)}`);
  const all = `${formatCount(comparison.found.length)} of ${plural(expected.length, 'observation')}`;
  const turns = expected.filter(({ kind }) => kind === 'turn').length;
  const verb = shown.length === 1 && shown[0]?.all === 1 ? 'is' : 'are';
  const figures = [
    ...(isFine(verified) && sumTokens(expected) > 0 ? ['tokens equal'] : []),
    ...(cost === undefined ? [] : [formatDollars(cost) + (modelsWithoutPrice.length > 0 ? '+' : '')]),
  ];
  const where = `${joinWords(what) || all} of ${plural(turns, 'turn')} ${verb} in Langfuse`;
  return [where, ...figures].join(', ');
}

function countKind({ expected, comparison }: Verified, wanted: Kind) {
  const count = (all: readonly Expected[]) => all.filter(({ kind }) => kind === wanted).length;
  return { found: count(comparison.found), all: count(expected) };
}

function sumTokens(expected: readonly Expected[]): number {
  return expected.reduce((sum, { usage }) => sum + countTokens(usage), 0);
}

function listFaults({ comparison, unsent, problem }: Verified): string[] {
  const { missing, different, twice } = comparison;
  const fields = [...new Set(different.flatMap((each) => each.fields))].join(', ');
  const merging = twice.filter(({ how }) => how === 'unmerged');
  const apart = twice.filter(({ how }) => how !== 'unmerged');
  const faults: [string, readonly Expected[]][] = [
    ['not sent yet', missing.filter(({ id }) => unsent.has(id))],
    ['missing', missing.filter(({ id }) => !unsent.has(id))],
    [`different (${fields})`, different.map(({ expected }) => expected)],
    ['twice, until Langfuse merges them', merging.map(({ expected }) => expected)],
    ['twice', apart.map(({ expected }) => expected)],
  ];
  const lines = faults.flatMap(([what, all]) =>
    all.length > 0 ? [`${style('red', '✗')} ${what}: ${listKinds(all)}`] : [],
  );
  return problem === undefined
    ? lines
    : [...lines, `${style('red', '✗')} not compared to the end: ${toOneLine(problem)}`];
}

/** `2 responses and 1 call of turns 3 and 7 (ids …)`. */
function listKinds(all: readonly Expected[]): string {
  const counts = KINDS.flatMap((kind) => {
    const { length } = all.filter((each) => each.kind === kind);
    return length > 0 ? [plural(length, kind)] : [];
  });
  const turns = [...new Set(all.flatMap(({ turn }) => turn ?? []))].toSorted((a, b) => a - b);
  const place = turns.length === 0 ? '' : ` of turn${turns.length === 1 ? '' : 's'} ${listSome(turns, TURNS_SHOWN)}`;
  const ids = [...new Set(all.map(({ id }) => id))];
  return `${joinWords(counts)}${place} (id${ids.length === 1 ? '' : 's'} ${listSome(ids, IDS_SHOWN)})`;
}

function listSome(all: readonly (string | number)[], shown: number): string {
  const more = all.length - shown;
  return more > 0 ? `${all.slice(0, shown).join(', ')} and ${formatCount(more)} more` : joinWords(all);
}

function joinWords(words: readonly (string | number)[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

function listRepairs(verified: Verified): string[] {
  if (isFine(verified)) return [];
  const { comparison, pending } = verified;
  return [
    ...(pending === undefined ? [] : [`the last try failed: ${toOneLine(pending)}`]),
    ...(comparison.twice.some(({ how }) => how === 'unmerged') ? [MERGING] : []),
    ...describeRepair(findRepair(verified), verified),
  ];
}

const MERGING =
  "Langfuse's sums count both rows until it has merged them, which takes minutes or longer: verify again later";

function describeRepair({ deleteTraces, command }: Repair, { comparison, unsent, keptBack }: Verified): string[] {
  const [traces, gone] = deleteTraces.length === 1 ? ['trace', 'it is gone'] : ['traces', 'they are gone'];
  const deletion = `what is sent again does not replace that: delete ${traces} ${listSome(deleteTraces, IDS_SHOWN)} in Langfuse`;
  const untraced = keptBack.find(({ why }) => why === 'untraced');
  const asks = untraced ? ` (it asks first: it also sends the ${plural(untraced.turns, 'turn')} without tracing)` : '';
  const isOnlyUnsent = comparison.different.length === 0 && comparison.missing.every(({ id }) => unsent.has(id));
  const when = deleteTraces.length > 0 ? `once ${gone}: ` : isOnlyUnsent ? 'the next hook sends the rest, or: ' : '';
  return [
    ...(deleteTraces.length > 0 ? [deletion] : []),
    ...(command === undefined ? [] : [`→ ${when}${command}${asks}`]),
  ];
}

function listNotes(verified: Verified): string[] {
  const { session, keptBack, comparison, claudeCost, exclusion } = verified;
  const { cost, others } = comparison;
  const kept = keptBack.map((each) => describeKept(each, session, exclusion));
  const isOtherCost = isFine(verified) && cost !== undefined && claudeCost !== undefined && differ(cost, claudeCost);
  return [
    ...kept,
    ...(others > 0 ? [`also in Langfuse, but not compared: ${plural(others, 'observation')}`] : []),
    ...(isOtherCost
      ? [`Claude Code's own account says ${formatDollars(claudeCost)}; it also counts requests that no transcript has`]
      : []),
  ];
}

function describeKept({ why, turns, tokens }: KeptBack, { sessionId }: SessionOverview, exclusion = ''): string {
  const [one, several] = REASONS[why];
  const more = {
    untraced: `; ${ownCommand()} backfill ${sessionId} asks, and then sends ${turns === 1 ? 'it' : 'them'}`,
    excluded: exclusion === '' ? '' : `: ${toOneLine(exclusion)}`,
    'another project': ': verify with the keys of that project',
  };
  const detail = why in more ? more[why as keyof typeof more] : '';
  const size = tokens === 0 ? '' : ` (${plural(tokens, 'token')})`;
  return `kept back: ${plural(turns, 'turn')}${size} ${turns === 1 ? one : several}${detail}`;
}

/** By more than a cent, and by more than 1 %. */
function differ(a: number, b: number): boolean {
  return Math.abs(a - b) > Math.max(0.01, 0.01 * Math.max(a, b));
}

/** The last lines: what concerns all sessions. */
export function describeAll(outcomes: readonly Outcome[]): string[] {
  const read = outcomes.filter((outcome) => !isUnread(outcome)) as Verified[];
  const models = [...new Set(read.flatMap(({ comparison }) => comparison.modelsWithoutPrice))].map(toOneLine);
  const price = `Langfuse has no price for ${joinWords(models)}; ${ownCommand()} prices learns it and defines it there`;
  return [...(outcomes.length > 1 ? [countOutcomes(outcomes, read)] : []), ...(models.length > 0 ? [price] : [])];
}

function countOutcomes(outcomes: readonly Outcome[], read: readonly Verified[]): string {
  const fine = read.filter(isFine);
  const [there, empty] = [fine.filter(({ expected }) => expected.length > 0), fine.filter(isEmpty)];
  const counts = [
    [there.length, 'in Langfuse'],
    [read.length - fine.length, 'with something missing, different or twice'],
    [fine.length - there.length - empty.length, 'kept back'],
    [empty.length, 'without an answered turn'],
    [outcomes.length - read.length, 'not read'],
  ] as const;
  const words = counts.flatMap(([count, what]) => (count > 0 ? [`${formatCount(count)} ${what}`] : []));
  return `${plural(outcomes.length, 'session')}: ${words.join(', ')}`;
}

function isEmpty({ expected, keptBack }: Verified): boolean {
  return expected.length === 0 && keptBack.length === 0;
}

export function toRecord(outcome: Outcome) {
  const { sessionId, title, path } = outcome.session;
  const about = { sessionId, title, path };
  if (isUnread(outcome)) return { ...about, state: 'unread', problem: outcome.unread };
  const { expected, keptBack, comparison, unsent, pending, claudeCost, problem } = outcome;
  const { missing, different, twice, others, cost, modelsWithoutPrice } = comparison;
  const { deleteTraces, command } = findRepair(outcome);
  return {
    ...about,
    state: isFine(outcome) ? 'fine' : 'faulty',
    problem,
    turns: expected.filter(({ kind }) => kind === 'turn').length,
    ...Object.fromEntries(
      (['response', 'call'] as const).map((kind) => {
        const { found, all } = countKind(outcome, kind);
        return [`${kind}s`, { expected: all, found }];
      }),
    ),
    observations: { expected: expected.length, found: comparison.found.length },
    tokens: sumTokens(expected),
    dollars: cost,
    claudeCodeDollars: claudeCost,
    modelsWithoutPrice,
    missing: missing.map((each) => ({ ...identify(each), acknowledged: !unsent.has(each.id) })),
    lastFailure: pending,
    different: different.map(({ expected: each, fields }) => ({ ...identify(each), fields })),
    twice: twice.map(({ expected: each, how, traceIds }) => ({ ...identify(each), how, traceIds })),
    others,
    keptBack,
    repair: isFine(outcome) ? undefined : { deleteTraces, command },
  };
}

function identify({ id, traceId, kind, turn }: Expected) {
  return { id, traceId, kind, turn };
}
