import { parseCommandLine, parsePointInTime, parsePositiveNumber, UsageError } from '../../cli/command-line.js';
import type { Selection } from '../../cli/session-selection.js';

export const HELP = `usage: cc-langfuse backfill [options] [session id or .jsonl path …]

Exports sessions that are on disk. First it says how much would be sent, and
where to, and asks. Turns that are already in Langfuse are not sent again,
unless an older version of cc-langfuse has overlooked a part of them. If you
stop a backfill, the next one continues. Without a selection, it exports the
sessions of the current directory's project.

A turn that ran with tracing on is sent under the settings of that run, and only
to the project of that run. Folders with tracing off are left out.

  --all                 the sessions of all projects
  --project <path>      sessions that ran in this directory
  --since <when>        sessions last active at or after: 7d, 12h, 2026-11-01
  --until <when>        or at or before
  --limit <n>           only the n newest of them
  --expiring            sessions whose transcripts Claude Code deletes within 7
                        days (cleanupPeriodDays), of all projects
  --exclude <glob>      skip transcripts whose path matches; may be repeated
  --include-open        also export the last turn of a session that is still
                        being written
  --force               send again what is in Langfuse, under the same ids
  --dry-run             show what would be sent, and send nothing
  --yes                 do not ask
  --concurrency <n>     sessions exported at the same time (4)
  --json                print one JSON document, and nothing else: {dryRun,
                        total, sessions: [{sessionId, path, outcome, reason?,
                        strays?, ...sums}], page?}; total has the same sums
  --quiet               print nothing on stdout
  --help

Keys and settings come from the environment, or from the env block of your
~/.claude/settings.json. A project's settings can only describe and restrict.
Exit code: 0, 1 if something failed, 2 for a usage error, 130 if it was stopped.
`;

const OPTIONS = {
  all: { type: 'boolean' },
  project: { type: 'string' },
  since: { type: 'string' },
  until: { type: 'string' },
  limit: { type: 'string' },
  expiring: { type: 'boolean' },
  exclude: { type: 'string', multiple: true },
  'include-open': { type: 'boolean' },
  force: { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  yes: { type: 'boolean' },
  concurrency: { type: 'string' },
  json: { type: 'boolean' },
  quiet: { type: 'boolean' },
} as const;

const DEFAULT_CONCURRENCY = 4;
const MOST_AT_ONCE = 64;

export type BackfillRequest = ReturnType<typeof readRequest>;

export function readRequest(args: readonly string[]) {
  const { values, positionals: named } = parseCommandLine(args, OPTIONS);
  const others = (['all', 'project', 'since', 'until', 'limit', 'expiring', 'exclude'] as const).filter(
    (name) => values[name] !== undefined,
  );
  if (named.length > 0 && others.length > 0)
    throw new UsageError(`--${others[0]} and ${named[0]}: name sessions or select them, not both`);
  if (values.all && values.project !== undefined) throw new UsageError('--all and --project: choose one');
  if (values.json && values.quiet) throw new UsageError('--json and --quiet: choose one');
  const now = Date.now();
  const since = parsePointInTime('since', values.since, now);
  const until = parsePointInTime('until', values.until, now, true);
  if (since !== undefined && until !== undefined && since > until)
    throw new UsageError(`--since ${values.since} --until ${values.until}: --since is after --until`);
  const concurrency = parsePositiveNumber('concurrency', values.concurrency) ?? DEFAULT_CONCURRENCY;
  if (concurrency > MOST_AT_ONCE) throw new UsageError(`--concurrency ${concurrency}: at most ${MOST_AT_ONCE}`);
  const selection: Selection = {
    named,
    project: values.project ?? (values.all || values.expiring ? undefined : process.cwd()),
    since,
    until,
    limit: parsePositiveNumber('limit', values.limit),
    exclude: values.exclude ?? [],
  };
  const output: 'words' | 'json' | 'none' = values.json ? 'json' : values.quiet ? 'none' : 'words';
  return {
    selection,
    /** Whether the user has selected sessions in any way. */
    isSelected: named.length > 0 || others.length > 0,
    isDryRun: values['dry-run'] ?? false,
    assumeYes: values.yes ?? false,
    /** Whether only what Claude Code deletes soon is wanted. */
    isExpiring: values.expiring ?? false,
    force: values.force ?? false,
    includeOpen: values['include-open'] ?? false,
    concurrency,
    output,
  };
}
