import { createInterface } from 'node:readline/promises';
import { backfill, type Outcome, patiently, type SessionResult } from '../backfill.js';
import { claudeFolder, environmentOf } from '../claude-folder.js';
import { parseCommandLine, positiveNumber, UsageError } from '../command-line.js';
import { describing, type Langfuse, readSettings } from '../config.js';
import { fingerprint, otlpEndpoint } from '../langfuse/endpoint.js';
import { askForProject, type ProjectAnswer, sessionsPage } from '../langfuse/project.js';
import { Sender } from '../langfuse/send.js';
import { openLog } from '../log.js';
import { pointInTime } from '../points-in-time.js';
import { type Selection, selectSessions } from '../session-selection.js';
import { DryRun } from '../state/dry-run.js';
import { StateStore } from '../state/store.js';
import { stateFolder } from '../state-folder.js';
import { NOTHING, sum, type Tally } from '../tally.js';
import { table } from '../terminal/columns.js';
import { NO_PROGRESS, ProgressReport } from '../terminal/progress.js';
import { sessionLines } from '../terminal/session-lines.js';
import { style } from '../terminal/style.js';
import { count, size, things } from '../terminal/words.js';
import type { SessionOverview } from '../transcript/overview.js';

export const HELP = `usage: cc-langfuse backfill [options] [session id or .jsonl path …]

Exports sessions that are on disk. What is in Langfuse already is not sent again, and what was stopped goes on where it was.
Without a selection: the sessions of the current directory's project, after asking in a terminal.

  --all                 the sessions of all projects
  --project <path>      those that ran in this directory
  --since <when>        whose last activity is not before: 7d, 12h, 2026-11-01
  --until <when>        or not after
  --limit <n>           the n newest of them
  --exclude <glob>      none whose transcript's path matches; may be given more than once
  --include-open        the last turn of a session that is still being written, too
  --force               send again what is in Langfuse, under the same ids
  --dry-run             say what would be sent, and send nothing
  --concurrency <n>     requests under way at once (4)
  --json                one JSON document on stdout, and nothing else
  --quiet               nothing on stdout
  --help

Keys and settings come from the environment, or from the env block of your ~/.claude/settings.json.
Exit code: 0, 1 where something failed, 2 where it could not be asked so, 130 where it was stopped.
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
  help: { type: 'boolean' },
} as const;

const DEFAULT_CONCURRENCY = 4;
const MOST_AT_ONCE = 64;
const PROJECT_WAIT_MS = 10_000;

interface Request {
  readonly selection: Selection;
  /** Whether the user has said which sessions, in any way. */
  readonly isSelected: boolean;
  readonly isDryRun: boolean;
  readonly isAnew: boolean;
  readonly includeOpen: boolean;
  readonly concurrency: number;
  readonly output: 'words' | 'json' | 'none';
}

/** Exports what is on disk; gives the exit code. */
export async function run(args: readonly string[], processEnv: NodeJS.ProcessEnv): Promise<number> {
  const request = read(args);
  if (!request) {
    process.stdout.write(HELP);
    return 0;
  }
  const env = environmentOf(processEnv);
  const settings = await readSettings(env);
  const { langfuse } = settings;
  for (const problem of settings.problems) tell(`cc-langfuse: ${problem}`);
  if (!langfuse && !request.isDryRun)
    throw new UsageError('without the keys of a Langfuse project nothing can be sent');
  const sessions = selectSessions(request.selection, claudeFolder(env));
  if (sessions.length === 0) {
    const { project } = request.selection;
    tell(project === undefined ? 'there is no such session' : `there is no such session that ran in ${project}`);
    return report([], request, undefined, false);
  }
  if (!(await isWanted(request, sessions))) return 0;
  if (request.isAnew && !request.isDryRun) tell(FORCE);

  const project = langfuse && !request.isDryRun ? await projectOf(langfuse) : undefined;
  const stop = stopOnInterrupt();
  const folder = stateFolder(env);
  const log = openLog(folder, settings);
  const state = new StateStore(
    folder,
    (keptAs) => tell(`the state file was corrupt, it is set aside as ${keptAs}`),
    'in the background',
  );
  const sender = langfuse && new Sender(otlpEndpoint(langfuse));
  const progress =
    request.output === 'words'
      ? new ProgressReport(sessions, process.stderr, () => sender?.pausedUntil ?? 0)
      : NO_PROGRESS;
  try {
    const isSending = sender && !request.isDryRun;
    const results = await backfill(sessions, {
      store: isSending ? state : new DryRun(state),
      send: isSending
        ? patiently(sender, stop)
        : async ({ length }) => ({ settled: length, dropped: [], failure: undefined }),
      options: settings,
      given: describing(env),
      destination: langfuse ? fingerprint(langfuse) : '',
      log,
      stop,
      progress,
      ...request,
    });
    progress.stop();
    return report(results, request, langfuse && sessionsPage(langfuse, project), stop.aborted);
  } finally {
    progress.stop();
    await sender?.close();
    await log.flush();
  }
}

const FORCE =
  'what is sent again has the same ids: until Langfuse merges its rows (minutes, or longer) lists, and the sums of tokens and cost, count it twice';

function read(args: readonly string[]): Request | undefined {
  const { values, positionals: named } = parseCommandLine(args, OPTIONS);
  if (values.help) return undefined;
  const others = (['all', 'project', 'since', 'until', 'limit', 'exclude'] as const).filter(
    (name) => values[name] !== undefined,
  );
  if (named.length > 0 && others.length > 0)
    throw new UsageError(`--${others[0]} and ${named[0]}: either name sessions, or select them`);
  if (values.all && values.project !== undefined)
    throw new UsageError('--all and --project: either all projects, or one');
  if (values.json && values.quiet) throw new UsageError('--json and --quiet: either all of it, or nothing');
  const now = Date.now();
  const since = values.since === undefined ? undefined : pointInTime('since', values.since, now);
  const until = values.until === undefined ? undefined : pointInTime('until', values.until, now, true);
  if (since !== undefined && until !== undefined && since > until)
    throw new UsageError(`--since ${values.since} --until ${values.until}: nothing lies between`);
  const concurrency = positiveNumber('concurrency', values.concurrency) ?? DEFAULT_CONCURRENCY;
  if (concurrency > MOST_AT_ONCE) throw new UsageError(`--concurrency ${concurrency}: at most ${MOST_AT_ONCE}`);
  return {
    selection: {
      named,
      project: values.all ? undefined : (values.project ?? process.cwd()),
      since,
      until,
      limit: positiveNumber('limit', values.limit),
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

/** In a terminal, what nobody has named is shown and asked for. */
async function isWanted({ isSelected, isDryRun, output }: Request, sessions: readonly SessionOverview[]) {
  const isTerminal = process.stdin.isTTY && process.stdout.isTTY && output === 'words';
  if (!isTerminal || isSelected || isDryRun || sessions.length === 0) return true;
  process.stdout.write(`${sessions.flatMap((session) => sessionLines({ session })).join('\n')}\n\n`);
  const prompt = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const answer = await prompt.question(`Export ${sessions.length === 1 ? 'it' : `these ${sessions.length}`}? [y/N] `);
    return /^y(?:es)?$/i.test(answer.trim());
  } finally {
    prompt.close();
  }
}

/** A wrong key is better told before than after an hour of reading. */
async function projectOf(langfuse: Langfuse): Promise<ProjectAnswer['project']> {
  const answer = await askForProject(langfuse, PROJECT_WAIT_MS).catch((error: Error & { code?: string }) => {
    throw new Error(`${langfuse.baseUrl.host} cannot be reached: ${error.code ?? error.message}`);
  });
  if (answer.status === 401 || answer.status === 403)
    throw new Error(`Langfuse refused the keys (${answer.status}) at ${langfuse.baseUrl.host}`);
  return answer.project;
}

/** The first Ctrl-C ends it after the requests under way, the second at once. */
function stopOnInterrupt(): AbortSignal {
  const controller = new AbortController();
  process.on('SIGINT', () => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort();
    tell('\nstopping after what is under way; Ctrl-C once more stops at once');
  });
  return controller.signal;
}

function tell(words: string): void {
  process.stderr.write(`${words}\n`);
}

function report(
  results: readonly SessionResult[],
  { output, isDryRun }: Request,
  page: string | undefined,
  isStopped: boolean,
): number {
  const hasFailed = results.some(({ outcome: { kind } }) => kind === 'failed');
  const isLeft = results.some(({ outcome: { kind } }) => kind === 'not tried');
  if (output === 'json') process.stdout.write(`${JSON.stringify(documentOf(results, isDryRun, page), null, 2)}\n`);
  if (output === 'words' && results.length > 0)
    process.stdout.write(`${closing(results, isDryRun, page).join('\n')}\n`);
  if (output === 'none') for (const line of reasons(results, ['failed'])) tell(line.trim());
  if (isStopped) return 130;
  return hasFailed || isLeft ? 1 : 0;
}

const KINDS = ['exported', 'already there', 'skipped', 'failed', 'stopped', 'not tried'] as const;

function closing(results: readonly SessionResult[], isDryRun: boolean, page: string | undefined): string[] {
  const rows = KINDS.flatMap((kind) => {
    const { length } = results.filter(({ outcome }) => outcome.kind === kind);
    const name = isDryRun && kind === 'exported' ? 'would be exported' : kind;
    return length > 0 ? [[name, things(length, 'session')]] : [];
  });
  const isLeft = results.some(
    ({ outcome: { kind } }) => kind === 'failed' || kind === 'stopped' || kind === 'not tried',
  );
  return [
    ...table(rows, [1]),
    ...figures(sum(results.map(({ outcome }) => sentOf(outcome))), isDryRun),
    ...reasons(results, ['skipped', 'failed']),
    ...(isLeft ? ['To go on: the same command again. What has arrived is not sent again.'] : []),
    ...(page !== undefined && !isDryRun ? [page] : []),
  ];
}

function figures({ observations, turns, generations, tools, tokens, bytes }: Tally, isDryRun: boolean): string[] {
  if (observations === 0) return [];
  const parts = [
    things(turns, 'turn'),
    things(generations, 'generation'),
    things(tools, 'tool'),
    `${count(tokens)} tokens`,
  ];
  return [`${isDryRun ? 'to be sent' : 'sent'}: ${parts.join(', ')}, ${size(bytes)}`];
}

/** At most so many lines: what is the same for thousands is known after some. */
const REASONS_SHOWN = 20;

function reasons(results: readonly SessionResult[], kinds: readonly Outcome['kind'][]): string[] {
  const lines = results.flatMap(({ session: { sessionId }, outcome }) =>
    kinds.includes(outcome.kind) && 'reason' in outcome
      ? [`  ${outcome.kind === 'failed' ? style('red', '✗') : '–'} ${sessionId} ${outcome.reason}`]
      : [],
  );
  const more = lines.length - REASONS_SHOWN;
  return more > 0 ? [...lines.slice(0, REASONS_SHOWN), `  … and ${more} more; --json tells all of them`] : lines;
}

function sentOf(outcome: Outcome): Tally {
  return 'sent' in outcome ? outcome.sent : NOTHING;
}

function documentOf(results: readonly SessionResult[], isDryRun: boolean, page: string | undefined) {
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
