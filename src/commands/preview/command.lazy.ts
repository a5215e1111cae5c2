import { resolve } from 'node:path';
import { parseCommandLine, parsePositiveNumber, UsageError } from '../../cli/command-line.js';
import { selectSessions } from '../../cli/session-selection.js';
import { printStderr, printStdout } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { commandEnvironment } from '../../config/claude-settings.js';
import { readSettings } from '../../config/settings.js';
import type { Observation } from '../../observations/model.js';
import { writeFileAtomically } from '../../shared/atomic-write.js';
import type { Log } from '../../shared/log.js';
import { StateStore } from '../../state/store.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { previewObservations } from './dry-export.js';
import { renderPage } from './page.js';
import { groupSessions } from './session.js';
import { renderTree } from './trace-tree.js';

const HELP = `usage: cc-langfuse preview [options] [session id or .jsonl path]

Shows what would be sent of a session under the settings in force, and sends
nothing: neither keys nor a server are needed. Without a session: the newest one
of the current directory's project. The beginning of an id is enough.

  --turn <n>      only this turn
  --html <file>   write a page for the browser, and print its path
  --json          the observations as one JSON array on stdout, nothing else
  --help
`;

const OPTIONS = {
  turn: { type: 'string' },
  html: { type: 'string' },
  json: { type: 'boolean' },
} as const;

/** Shows what would be sent; gives the exit code. */
export async function run(args: readonly string[], processEnv: NodeJS.ProcessEnv): Promise<number> {
  const { values, positionals } = parseCommandLine(args, OPTIONS, HELP);
  const [name, another] = positionals;
  if (another !== undefined) throw new UsageError(`${name} and ${another}: preview takes one session`);
  if (values.json && values.html !== undefined) throw new UsageError('--json and --html: choose one of them');
  const turn = parsePositiveNumber('turn', values.turn);
  const page = values.html === undefined ? undefined : pagePath(values.html);
  const env = commandEnvironment(processEnv);
  const settings = await readSettings(env);
  // Keys are not needed here.
  for (const problem of settings.problems) if (!problem.endsWith('is not set')) printStderr(`cc-langfuse: ${problem}`);
  const session = sessionFor(name, env);
  const state = new StateStore(stateFolder(env), () => {});
  const all = await previewObservations(session, { settings, state, log: TOLD_AT_ONCE });
  const observations = turn === undefined ? all : ofTurn(turn, all);
  if (values.json) await printJson(observations);
  else if (observations.length === 0)
    printStderr(`nothing would be sent of ${session.sessionId}: it has no turn that was answered`);
  else if (page !== undefined) await writePage(page, observations);
  else for (const each of groupSessions(observations)) await printStdout(`${renderTree(each).join('\n')}\n`);
  return 0;
}

/** Another name may be a transcript's, and what stood there would be gone. */
function pagePath(file: string): string {
  if (!file.endsWith('.html')) throw new UsageError(`--html ${file}: expected a name that ends in .html`);
  return resolve(file);
}

function sessionFor(name: string | undefined, env: NodeJS.ProcessEnv): SessionOverview {
  const named = name === undefined ? [] : [name];
  const [session] = selectSessions(
    { named, project: process.cwd(), limit: 1, exclude: [] },
    claudeFolder(env),
    (path, reason) => printStderr(`${path} cannot be read (${reason})`),
  );
  if (!session) throw new UsageError('no session ran in this directory; name one, cc-langfuse sessions lists them');
  return session;
}

function ofTurn(turn: number, observations: readonly Observation[]): Observation[] {
  const numbers = new Set(observations.flatMap(({ trace }) => trace.metadata.turn_number ?? []));
  if (!numbers.has(turn)) throw new UsageError(`--turn ${turn}: ${turnsThere([...numbers])}`);
  return observations.filter(({ trace }) => trace.metadata.turn_number === turn);
}

function turnsThere(numbers: readonly unknown[]): string {
  if (numbers.length === 0) return 'the session has no turn that was answered';
  const [first, last] = [numbers[0], numbers.at(-1)];
  return first === last ? `the session has turn ${first} only` : `the session has turns ${first} to ${last}`;
}

/** One after the other: together they may be longer than a text can be. */
async function printJson(observations: readonly Observation[]): Promise<void> {
  let before = '[';
  for (const {
    line: _,
    media: __,
    requestRef: ___,
    startTime,
    endTime,
    completionStartTime,
    ...rest
  } of observations) {
    const times = { startTime: isoTime(startTime), endTime: isoTime(endTime) };
    const completion = completionStartTime === undefined ? {} : { completionStartTime: isoTime(completionStartTime) };
    await printStdout(`${before}${JSON.stringify({ ...rest, ...times, ...completion }, null, 2)}`);
    before = ',\n';
  }
  await printStdout(observations.length === 0 ? '[]\n' : ']\n');
}

async function writePage(path: string, observations: readonly Observation[]): Promise<void> {
  try {
    // It holds what was said.
    writeFileAtomically(path, renderPage(PREVIEW_TEMPLATE, groupSessions(observations)), 0o600);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UsageError(`--html ${path}: cannot be written (${code ?? message})`);
  }
  await printStdout(`${path}\n`);
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** There is someone to tell, and no file to be written for it. */
const TOLD_AT_ONCE: Log = {
  isDebug: false,
  debug() {},
  warn: (message, { file, line, reason } = {}) =>
    printStderr(`${message}: ${[file, line, reason].filter(Boolean).join(', ')}`),
  error: printStderr,
  async flush() {},
};
