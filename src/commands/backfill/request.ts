import { parseCommandLine, parsePointInTime, parsePositiveNumber, UsageError } from '../../cli/command-line.js';
import type { Selection } from '../../cli/session-selection.js';

const HELP = `usage: cc-langfuse backfill [options] [session id or .jsonl path …]

Exports sessions that are on disk. What is in Langfuse already is not sent
again, and what was stopped goes on where it was.
Without a selection: the sessions of the current directory's project, after
asking in a terminal.

  --all                 the sessions of all projects
  --project <path>      those that ran in this directory
  --since <when>        whose last activity is not before: 7d, 12h, 2026-11-01
  --until <when>        or not after
  --limit <n>           the n newest of them
  --exclude <glob>      none whose transcript's path matches; may be given more
                        than once
  --include-open        the last turn of a session that is still being written,
                        too
  --force               send again what is in Langfuse, under the same ids
  --dry-run             say what would be sent, and send nothing
  --concurrency <n>     requests under way at once (4)
  --json                one JSON document on stdout, and nothing else
  --quiet               nothing on stdout
  --help

Keys and settings come from the environment, or from the env block of your
~/.claude/settings.json.
Exit code: 0, 1 where something failed, 2 where it could not be asked so, 130
where it was stopped.
`;

const OPTIONS = {
  all: { type: 'boolean' },
  project: { type: 'string' },
  since: { type: 'string' },
  until: { type: 'string' },
  limit: { type: 'string' },
  exclude: { type: 'string', multiple: true },
  'include-open': { type: 'boolean' },
  force: { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  concurrency: { type: 'string' },
  json: { type: 'boolean' },
  quiet: { type: 'boolean' },
} as const;

const DEFAULT_CONCURRENCY = 4;
const MOST_AT_ONCE = 64;

/** What a backfill is asked for. */
export interface BackfillRequest {
  readonly selection: Selection;
  /** Whether the user has said which sessions, in any way. */
  readonly isSelected: boolean;
  readonly isDryRun: boolean;
  readonly isAnew: boolean;
  readonly includeOpen: boolean;
  readonly concurrency: number;
  readonly output: 'words' | 'json' | 'none';
}

/** What the command line asks for. */
export function readRequest(args: readonly string[]): BackfillRequest {
  const { values, positionals: named } = parseCommandLine(args, OPTIONS, HELP);
  const others = (['all', 'project', 'since', 'until', 'limit', 'exclude'] as const).filter(
    (name) => values[name] !== undefined,
  );
  if (named.length > 0 && others.length > 0)
    throw new UsageError(`--${others[0]} and ${named[0]}: either name sessions, or select them`);
  if (values.all && values.project !== undefined)
    throw new UsageError('--all and --project: either all projects, or one');
  if (values.json && values.quiet) throw new UsageError('--json and --quiet: either all of it, or nothing');
  const now = Date.now();
  const since = values.since === undefined ? undefined : parsePointInTime('since', values.since, now);
  const until = values.until === undefined ? undefined : parsePointInTime('until', values.until, now, true);
  if (since !== undefined && until !== undefined && since > until)
    throw new UsageError(`--since ${values.since} --until ${values.until}: nothing lies between`);
  const concurrency = parsePositiveNumber('concurrency', values.concurrency) ?? DEFAULT_CONCURRENCY;
  if (concurrency > MOST_AT_ONCE) throw new UsageError(`--concurrency ${concurrency}: at most ${MOST_AT_ONCE}`);
  return {
    selection: {
      named,
      project: values.all ? undefined : (values.project ?? process.cwd()),
      since,
      until,
      limit: parsePositiveNumber('limit', values.limit),
      exclude: values.exclude ?? [],
    },
    isSelected: named.length > 0 || others.length > 0,
    isDryRun: values['dry-run'] ?? false,
    isAnew: values.force ?? false,
    includeOpen: values['include-open'] ?? false,
    concurrency,
    output: values.json ? 'json' : values.quiet ? 'none' : 'words',
  };
}
