import { describeStrays, formatBytes, formatCount, plural, toOneLine } from '../../cli/format.js';
import { style } from '../../cli/terminal.js';
import { sumTallies, type Tally } from '../../export/tally.js';
import { type BackfillOutcome, OUTCOMES, type SessionResult } from './backfill.js';
import type { BackfillRequest } from './request.js';

type Results = readonly SessionResult[];

const UNFINISHED: readonly BackfillOutcome[] = ['failed', 'stopped', 'not tried'];

const GO_ON = 'To go on, run the same command again. What has arrived is not sent again.';
const GO_ON_FORCED = 'To go on, run the same command again without --force. With it, everything is sent once more.';

/** The lines that a person sees at the end. `page` is where Langfuse shows the sessions. */
export function formatSummary(results: Results, { isDryRun, force }: BackfillRequest, page?: string): string[] {
  const rows = OUTCOMES.flatMap((kind) => {
    const { length } = results.filter(({ outcome }) => outcome === kind);
    const name = isDryRun && kind === 'exported' ? 'would be exported' : kind;
    return length > 0 ? [{ name, count: plural(length, 'session') }] : [];
  });
  const nameColumns = Math.max(...rows.map(({ name }) => name.length));
  const countColumns = Math.max(...rows.map(({ count }) => count.length));
  const isUnfinished = results.some(({ outcome }) => UNFINISHED.includes(outcome));
  return [
    ...rows.map(({ name, count }) => `${name.padEnd(nameColumns)}  ${count.padStart(countColumns)}`),
    ...formatFigures(sumTallies(results.map(({ sent }) => sent)), isDryRun),
    ...countReadAgain(results),
    ...countStrays(results),
    ...listReasons(results, ['already there', 'skipped', 'failed']),
    ...(isUnfinished ? [force ? GO_ON_FORCED : GO_ON] : []),
    ...(page !== undefined && !isDryRun ? [page] : []),
  ];
}

/** Says of how many sessions something is sent because an older version has overlooked it. */
export function countReadAgain(results: Results): string[] {
  const { length } = results.filter(({ isReadAgain, sent }) => isReadAgain && sent.observations > 0);
  if (length === 0) return [];
  const [were, are] = length === 1 ? ['was', 'is'] : ['were', 'are'];
  return [
    `${plural(length, 'session')} ${were} read by an older version and ${are} read again: turns that it overlooked are sent whole.`,
  ];
}

function countStrays(results: Results): string[] {
  const all = results.flatMap(({ strays = 0 }) => (strays > 0 ? [strays] : []));
  const count = all.reduce((sum, strays) => sum + strays, 0);
  return count === 0 ? [] : [`${plural(all.length, 'session')}: ${describeStrays(count)}`];
}

export function buildJsonReport(results: Results, { isDryRun }: BackfillRequest, page?: string) {
  return {
    dryRun: isDryRun,
    total: sumTallies(results.map(({ sent }) => sent)),
    sessions: results.map(({ session: { sessionId, path }, outcome, reason, strays, sent }) => ({
      sessionId,
      path,
      outcome,
      reason,
      strays,
      ...sent,
    })),
    page,
  };
}

/** Thousands of sessions may have the same reason: some are enough. */
const REASONS_SHOWN = 20;

export function listReasons(results: Results, outcomes: readonly BackfillOutcome[]): string[] {
  const lines = results
    .filter(({ outcome, reason }) => reason !== undefined && outcomes.includes(outcome))
    .map(({ session: { sessionId }, outcome, reason }) => {
      const mark = outcome === 'failed' ? style('red', '✗') : '–';
      return `  ${mark} ${toOneLine(sessionId)} ${reason}`;
    });
  const more = lines.length - REASONS_SHOWN;
  return more > 0 ? [...lines.slice(0, REASONS_SHOWN), `  … and ${more} more; --json lists all of them`] : lines;
}

function formatFigures({ observations, turns, generations, tools, tokens, bytes }: Tally, isDryRun: boolean): string[] {
  if (observations === 0) return [];
  const counts = [plural(turns, 'turn'), plural(generations, 'generation'), plural(tools, 'tool')];
  const figures = [...counts, `${formatCount(tokens)} tokens`, formatBytes(bytes)];
  return [`${isDryRun ? 'to be sent' : 'sent'}: ${figures.join(', ')}`];
}
