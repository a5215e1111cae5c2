import { parseOptions, parsePointInTime, UsageError } from '../../cli/command-line.js';
import { PERIOD_MS } from '../../costs/add-up.js';
import { parseGrouping } from './grouping.js';

export const HELP = `usage: cc-langfuse cost [options]

Shows what Claude Code cost and how many tokens it used, from the transcripts on
disk. It needs no keys, and sends nothing of them anywhere.
Dollars are Claude Code's own: it writes an account to the transcript when a
session ends. "≈" marks tokens that no account includes, at list prices; "+"
marks tokens of models that have no list price. With keys, Langfuse is asked for
its prices at most once a day, and nothing but that request leaves. Otherwise
they are those of a list that comes with the program.
With a subscription the dollars are not billed, and are called API value.

  --by <what>      day, project, session, model, repository or branch; or what
                   caused it: agent, skill, command, prompt, tool or mcp (day)
  --since <when>   only what was used at or after: 7d, 12h, 2026-11-01
  --top            list the sessions and prompts that cost 3 times the usual, or
                   more
  --check          list where accounts and list prices differ, and why
  --json           print one JSON document, and nothing else: {by, since?,
                   rows: [{<by>, ...sums}], total: {...sums}, prices,
                   subscription}. Sums have the names of the columns that --csv
                   prints; for --check {agreements, differences, prices};
                   for --top {sessions, prompts, prices, subscription}, the
                   first two with {usualDollars, count, above}
  --csv            print comma-separated values, and nothing else
  --help

Exit code: 0, 1 if a transcript cannot be read, 2 for a usage error.
`;

const OPTIONS = {
  by: { type: 'string' },
  since: { type: 'string' },
  top: { type: 'boolean' },
  check: { type: 'boolean' },
  json: { type: 'boolean' },
  csv: { type: 'boolean' },
} as const;

/** What can be shown instead of sums. */
const OTHER_VIEWS = ['top', 'check'] as const;

export type CostRequest = ReturnType<typeof readRequest>;

export function readRequest(args: readonly string[]) {
  const values = parseOptions('cost', args, OPTIONS);
  if (values.json && values.csv) throw new UsageError('--json and --csv: choose one of them');
  const view = OTHER_VIEWS.find((name) => values[name]);
  const another = (['check', 'by', 'csv'] as const).find((name) => name !== view && values[name] !== undefined);
  if (view && another) throw new UsageError(`--${view} and --${another}: choose one of them`);
  const since = parsePointInTime('since', values.since, Date.now());
  return {
    view,
    by: parseGrouping(values.by ?? 'day'),
    /** Rounded down to what is kept of a time; undefined if all is wanted. */
    since: since === undefined ? undefined : Math.floor(since / PERIOD_MS) * PERIOD_MS,
    isJson: values.json ?? false,
    isCsv: values.csv ?? false,
  };
}

/** What is said instead of a table without rows. */
export function describeNothing(what: string, { since }: CostRequest): string {
  return `no session on disk has ${what}${since === undefined ? '' : ' in that time'}`;
}
