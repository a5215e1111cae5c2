import { describeStrays, describeUnsent, describeUntraced, formatMoment, plural, toOneLine } from '../../cli/format.js';
import { describeCosts, toCostRecord } from '../../cli/format-cost.js';
import { ownCommand } from '../../cli/own-command.js';
import { cutToWidth, fitColumn, style } from '../../cli/terminal.js';
import type { Costs } from '../../costs/cost-book.js';
import { EXPIRING } from '../../export/deletion.js';
import { formatAge } from '../doctor/checks/sessions.js';
import { wrapText } from '../doctor/report.js';
import type { SentTurn } from './last-turn.js';
import { isMuteAlone, type Status } from './status.js';

const LABEL_COLUMNS = 14;
const TITLE_COLUMNS = 60;
const PENDING_SHOWN = 5;

type Row = readonly [label: string, texts: readonly string[]];

/** The status for a person, on one screen. */
export function formatStatus(status: Status, home: string, now: number): string[] {
  const rows: readonly Row[] = [
    ['version', [status.version]],
    ['tracing', describeTracing(status)],
    ['sends to', [status.sendsTo]],
    ['last turn here', describeHere(status, now)],
    ['last of all', describeNewest(status, now)],
    ['pending', describePending(status, now)],
    ...listSpent(status),
    ...listUnsent(status, now),
  ];
  return rows.flatMap(([label, texts]) =>
    texts
      .flatMap((text) => wrapText(text, home, LABEL_COLUMNS + 2))
      .map((line, place) => `${style('bold', fitColumn(place === 0 ? label : '', LABEL_COLUMNS))}  ${line}`),
  );
}

function describeTracing({ tracing: { message, fix, problems }, here }: Status): string[] {
  if (problems.length === 0) return fix === undefined ? [message] : [message, `→ ${fix}`];
  const lines = [message, ...problems.map((problem) => `but ${problem}`)];
  return isMuteAlone(problems, here) ? lines : [...lines, `${ownCommand()} doctor says how to fix it`];
}

function describeHere({ here }: Status, now: number): string[] {
  if (!here) return ['no session ran in this directory'];
  const { sessionId, turn, untraced, strays } = here;
  const last = turn ? describeTurn(turn, now) : [`nothing has been sent of session ${sessionId}`];
  const sent = strays === 0 ? last : [...last, describeStrays(strays)];
  return untraced === 0 ? sent : [...sent, describeUntraced(untraced), `→ ${ownCommand()} backfill ${sessionId}`];
}

function describeNewest({ here, newest }: Status, now: number): string[] {
  if (!newest) return ['no turn has been sent yet'];
  const isSame = here?.turn?.sessionId === newest.sessionId;
  return isSame ? ['the same'] : describeTurn(newest, now);
}

function describeTurn({ sessionId, title = '', number, at, traceId, url }: SentTurn, now: number): string[] {
  const time = at === undefined ? '' : `, ${formatMoment(at)} (${formatAge(at, now)} ago)`;
  const name = cutToWidth(toOneLine(title), TITLE_COLUMNS) || '(no prompt)';
  const trace = traceId === undefined ? [] : [`trace ${traceId}`];
  return [`turn ${number}${time}: ${name}`, `session ${sessionId}`, ...(url === undefined ? trace : [url])];
}

function describePending({ pending }: Status, now: number): string[] {
  if (pending.length === 0) return ['nothing'];
  const shown = pending.slice(0, PENDING_SHOWN).map(({ sessionId, since, attempts, reason }) => {
    const why = reason === '' ? 'no attempt has ended yet' : reason;
    return `${sessionId} for ${formatAge(since, now)}, ${plural(attempts, 'attempt')}: ${why}`;
  });
  const count = pending.length - PENDING_SHOWN;
  return count > 0 ? [...shown, `and ${count} more: ${ownCommand()} sessions --limit all`] : shown;
}

function listSpent({ spent, isSubscription }: Status): Row[] {
  if (!spent) return [];
  return [
    [
      isSubscription ? 'API value' : 'cost',
      [`today: ${describeSum(spent.today)}`, `since Monday: ${describeSum(spent.week)}`],
    ],
  ];
}

function describeSum(costs: Costs): string {
  const { unpricedTokens } = costs;
  const priced = describeCosts({ ...costs, unpricedTokens: 0 });
  const unpriced = unpricedTokens > 0 ? `${plural(unpricedTokens, 'token')} without a list price` : '';
  return [priced, unpriced].filter(Boolean).join('; ') || 'nothing';
}

function listUnsent({ unsent }: Status, now: number): Row[] {
  if (!unsent) return [];
  return [['only here', [describeUnsent(unsent, unsent.cleanupDays, now), `→ ${ownCommand()} ${EXPIRING}`]]];
}

/** Times are given as ISO 8601. */
export function buildJsonStatus({
  version,
  tracing,
  destination,
  here,
  newest,
  pending,
  spent,
  isSubscription,
  unsent,
}: Status) {
  const { isOn: on, ...others } = tracing;
  return {
    version,
    tracing: { on, ...others },
    destination,
    here: here && { ...here, turn: here.turn && toJson(here.turn) },
    newest: newest && toJson(newest),
    pending: pending.map(({ since, ...each }) => ({ ...each, since: new Date(since) })),
    cost: spent && { today: toCostRecord(spent.today), week: toCostRecord(spent.week), subscription: isSubscription },
    unsent: unsent && { sessions: unsent.count, firstDeletedAfter: new Date(unsent.firstGoes) },
  };
}

function toJson({ at, ...turn }: SentTurn) {
  return { ...turn, at: at === undefined ? undefined : new Date(at) };
}
