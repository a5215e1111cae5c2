import { formatBytes, formatCount, plural, toOneLine } from '../../cli/format.js';
import { formatTable, style } from '../../cli/terminal.js';
import { NOTHING, sum, type Tally } from '../../export/tally.js';
import type { Outcome, SessionResult } from './backfill.js';

export interface ReportDetails {
  readonly isDryRun: boolean;
  readonly isAnew: boolean;
  /** Where the sessions are shown. */
  readonly page: string | undefined;
}

const GO_ON = 'To go on: the same command again. What has arrived is not sent again.';
const GO_ON_ANEW = 'To go on: the same command again, without --force. With it, all of them are sent once more.';

const KINDS = ['exported', 'already there', 'skipped', 'failed', 'stopped', 'not tried'] as const;

/** What a person is told in the end. */
export function closingLines(results: readonly SessionResult[], { isDryRun, isAnew, page }: ReportDetails): string[] {
  const rows = KINDS.flatMap((kind) => {
    const { length } = results.filter(({ outcome }) => outcome.kind === kind);
    const name = isDryRun && kind === 'exported' ? 'would be exported' : kind;
    return length > 0 ? [[name, plural(length, 'session')]] : [];
  });
  const isLeft = results.some(
    ({ outcome: { kind } }) => kind === 'failed' || kind === 'stopped' || kind === 'not tried',
  );
  return [
    ...formatTable(rows, [1]),
    ...figures(sum(results.map(({ outcome }) => sentOf(outcome))), isDryRun),
    ...reasons(results, ['skipped', 'failed']),
    ...(isLeft ? [isAnew ? GO_ON_ANEW : GO_ON] : []),
    ...(page !== undefined && !isDryRun ? [page] : []),
  ];
}

function figures({ observations, turns, generations, tools, tokens, bytes }: Tally, isDryRun: boolean): string[] {
  if (observations === 0) return [];
  const parts = [
    plural(turns, 'turn'),
    plural(generations, 'generation'),
    plural(tools, 'tool'),
    `${formatCount(tokens)} tokens`,
  ];
  return [`${isDryRun ? 'to be sent' : 'sent'}: ${parts.join(', ')}, ${formatBytes(bytes)}`];
}

/** At most so many lines: what is the same for thousands is known after some. */
const REASONS_SHOWN = 20;

/** Why sessions of these kinds came to be so. */
export function reasons(results: readonly SessionResult[], kinds: readonly Outcome['kind'][]): string[] {
  const lines = results.flatMap(({ session: { sessionId }, outcome }) =>
    kinds.includes(outcome.kind) && 'reason' in outcome
      ? [`  ${outcome.kind === 'failed' ? style('red', '✗') : '–'} ${toOneLine(sessionId)} ${outcome.reason}`]
      : [],
  );
  const more = lines.length - REASONS_SHOWN;
  return more > 0 ? [...lines.slice(0, REASONS_SHOWN), `  … and ${more} more; --json tells all of them`] : lines;
}

function sentOf(outcome: Outcome): Tally {
  return 'sent' in outcome ? outcome.sent : NOTHING;
}

/** What a script is told. */
export function documentOf(results: readonly SessionResult[], { isDryRun, page }: ReportDetails) {
  return {
    dryRun: isDryRun,
    total: sum(results.map(({ outcome }) => sentOf(outcome))),
    sessions: results.map(({ session: { sessionId, path }, outcome }) => ({
      sessionId,
      path,
      outcome: outcome.kind,
      reason: 'reason' in outcome ? outcome.reason : undefined,
      ...sentOf(outcome),
    })),
    page,
  };
}
