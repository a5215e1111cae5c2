import { parseCommandLine, UsageError } from '../../cli/command-line.js';
import { formatDuration, plural } from '../../cli/format.js';
import { selectSession, selectSessions } from '../../cli/session-selection.js';
import { printJson, printStderr, printStdout } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { groupBy } from '../../shared/group-by.js';
import { StateStore } from '../../state/store.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { Destinations } from './destinations.js';
import { describeAll, describeSession, isFine, isUnread, type Outcome, toRecord, type Unread } from './report.js';
import { verifySession } from './verify-session.js';

export const HELP = `usage: cc-langfuse verify [options] [session id or .jsonl path]

Reads back from Langfuse what it has of a session, and compares that with the
transcripts: responses, tool calls, turns and tokens. It says what is missing,
different or there twice, and the command that repairs it. It also says what is
kept back, and why. It changes nothing. Without a session, it takes the one that
Claude Code runs the command in, or else the newest one of the current
directory. The first characters of an id are enough.

  --here    all sessions that ran in this directory
  --all     the sessions of all projects
  --json    print one JSON document, and nothing else: {sessions: [{sessionId,
            title, path, state, problem?, turns, responses, calls, observations,
            tokens, dollars, claudeCodeDollars, modelsWithoutPrice, missing,
            different, twice, others, keptBack, lastFailure?, repair?}]}
            state is fine, faulty or unread
  --help

The keys must be allowed to read. Exit code: 0 if everything is there, 1 if
something is missing, different or there twice, or could not be read, 2 for a
usage error.
`;

const OPTIONS = { all: { type: 'boolean' }, here: { type: 'boolean' }, json: { type: 'boolean' } } as const;

const AT_ONCE = 2;

export async function run(args: readonly string[], shell: NodeJS.ProcessEnv): Promise<number> {
  const { values, positionals } = parseCommandLine(args, OPTIONS);
  const wide = values.all ? '--all' : values.here ? '--here' : undefined;
  if (values.all && values.here) throw new UsageError('--all and --here: choose one of them');
  if (wide !== undefined && positionals.length > 0)
    throw new UsageError(`${wide} and ${positionals[0]}: name a session or select them, not both`);
  const folder = claudeFolder(shell);
  const project = values.all ? undefined : process.cwd();
  const sessions =
    wide === undefined
      ? [selectSession('verify', positionals, folder, shell)]
      : selectSessions({ named: [], project, exclude: [] }, folder);
  if (sessions.length === 0)
    printStderr(values.all ? 'there is no session on disk' : 'no session ran in this directory');
  const outcomes = await verifyAll(sessions, shell, values.json ? async () => {} : printOutcome);
  if (values.json) await printJson({ sessions: outcomes.map(toRecord) });
  else {
    for (const line of describeAll(outcomes)) await printStdout(line);
    for (const line of listProblems(outcomes.filter(isUnread))) printStderr(`cc-langfuse: ${line}`);
  }
  return outcomes.every(isFine) ? 0 : 1;
}

async function printOutcome(outcome: Outcome): Promise<void> {
  if (!isUnread(outcome)) await printStdout(describeSession(outcome).join('\n'));
}

/** A server that cannot be read is the same problem for many sessions. */
function listProblems(outcomes: readonly Unread[]): string[] {
  return [...groupBy(outcomes, ({ unread }) => unread)].map(([problem, { length }]) =>
    length === 1 ? problem : `${plural(length, 'session')} could not be read: ${problem}`,
  );
}

/** Calls `onOutcome` in the order of the sessions. */
async function verifyAll(
  sessions: readonly SessionOverview[],
  shell: NodeJS.ProcessEnv,
  onOutcome: (outcome: Outcome) => Promise<void>,
): Promise<readonly Outcome[]> {
  const state = new StateStore(stateFolder(shell));
  const destinations = new Destinations(shell);
  const progress = new Progress(sessions.length, destinations);
  const outcomes: Outcome[] = [];
  const waiting = [...sessions.entries()];
  let reported = 0;
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [place, session] = next;
      outcomes[place] = await verifyOne(session, destinations, state, shell, sessions.length === 1);
      for (let outcome = outcomes[reported]; outcome; outcome = outcomes[reported]) {
        reported += 1;
        progress.clear();
        await onOutcome(outcome);
      }
      progress.show(reported);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  } finally {
    progress.clear();
    await destinations.close();
  }
  return outcomes;
}

async function verifyOne(
  session: SessionOverview,
  destinations: Destinations,
  state: StateStore,
  shell: NodeJS.ProcessEnv,
  isOnly: boolean,
): Promise<Outcome> {
  try {
    const destination = await destinations.find(session.folders[0] ?? process.cwd());
    try {
      return await verifySession(session, destination, state, shell);
    } catch (error) {
      return { session, unread: await destinations.explain(error as Error, destination) };
    }
  } catch (error) {
    if (isOnly) throw error;
    return { session, unread: (error as Error).message };
  }
}

/** Shows in a terminal, on stderr, how far it is. */
class Progress {
  readonly #total: number;
  readonly #destinations: Destinations;

  constructor(total: number, destinations: Destinations) {
    this.#total = total;
    this.#destinations = destinations;
  }

  show(done: number): void {
    if (!process.stderr.isTTY || this.#total === 1) return;
    const pauseMs = this.#destinations.pausedUntil - Date.now();
    const pause = pauseMs > 0 ? ` · the server asks to wait ${formatDuration(pauseMs)}` : '';
    process.stderr.write(`\r\u001b[K${done} of ${plural(this.#total, 'session')}${pause}`);
  }

  clear(): void {
    if (process.stderr.isTTY && this.#total > 1) process.stderr.write('\r\u001b[K');
  }
}
