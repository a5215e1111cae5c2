import { formatBytes, formatCount, plural, toOneLine } from '../../cli/format.js';
import { formatTable, style } from '../../cli/terminal.js';
import { NOTHING, sumTallies, type Tally } from '../../export/tally.js';
import type { Outcome, SessionResult } from './backfill.js';

export interface ReportDetails {
  readonly isDryRun: boolean;
  readonly force: boolean;
  /** Where Langfuse shows the sessions. */
  readonly page: string | undefined;
}

const GO_ON = 'To go on, run the same command again. What has arrived is not sent again.';
const GO_ON_FORCED = 'To go on, run the same command again without --force. With it, everything is sent once more.';

const KINDS = ['exported', 'already there', 'skipped', 'failed', 'stopped', 'not tried'] as const;

/** The lines that a person sees at the end. */
export function formatSummary(results: readonly SessionResult[], { isDryRun, force, page }: ReportDetails): string[] {
  const rows = KINDS.flatMap((kind) => {
    const { length } = results.filter(({ outcome }) => outcome.kind === kind);
    const name = isDryRun && kind === 'exported' ? 'would be exported' : kind;
    return length > 0 ? [[name, plural(length, 'session')]] : [];
  });
  const isUnfinished = results.some(
    ({ outcome: { kind } }) => kind === 'failed' || kind === 'stopped' || kind === 'not tried',
  );
  return [
    ...formatTable(rows, [1]),
    ...formatFigures(totalSent(results), isDryRun),
    ...listReasons(results, ['skipped', 'failed']),
    ...(isUnfinished ? [force ? GO_ON_FORCED : GO_ON] : []),
    ...(page !== undefined && !isDryRun ? [page] : []),
  ];
}

/** The document that `--json` prints. */
export function toDocument(results: readonly SessionResult[], { isDryRun, page }: ReportDetails) {
  return {
    dryRun: isDryRun,
    total: totalSent(results),
    sessions: results.map(({ session: { sessionId, path }, outcome }) => ({
      sessionId,
      path,
      outcome: outcome.kind,
      reason: 'reason' in outcome ? outcome.reason : undefined,
      ...sentBy(outcome),
    })),
    page,
  };
}

/** Thousands of sessions may have the same reason: some are enough. */
const REASONS_SHOWN = 20;

/** Why sessions have these outcomes. */
export function listReasons(results: readonly SessionResult[], kinds: readonly Outcome['kind'][]): string[] {
  const lines = results.flatMap(({ session: { sessionId }, outcome }) =>
    kinds.includes(outcome.kind) && 'reason' in outcome
      ? [`  ${outcome.kind === 'failed' ? style('red', '✗') : '–'} ${toOneLine(sessionId)} ${outcome.reason}`]
      : [],
  );
  const more = lines.length - REASONS_SHOWN;
  return more > 0 ? [...lines.slice(0, REASONS_SHOWN), `  … and ${more} more; --json lists all of them`] : lines;
}

function formatFigures({ observations, turns, generations, tools, tokens, bytes }: Tally, isDryRun: boolean): string[] {
  if (observations === 0) return [];
  const parts = [
    plural(turns, 'turn'),
    plural(generations, 'generation'),
    plural(tools, 'tool'),
    `${formatCount(tokens)} tokens`,
  ];
  return [`${isDryRun ? 'to be sent' : 'sent'}: ${parts.join(', ')}, ${formatBytes(bytes)}`];
}

function totalSent(results: readonly SessionResult[]): Tally {
  return sumTallies(results.map(({ outcome }) => sentBy(outcome)));
}

function sentBy(outcome: Outcome): Tally {
  return 'sent' in outcome ? outcome.sent : NOTHING;
}
