import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { errorReason, parseCommandLine, parsePositiveNumber, UsageError } from '../../cli/command-line.js';
import { openFile } from '../../cli/open-url.js';
import { selectSession } from '../../cli/session-selection.js';
import { formatJson, printJson, printStderr, printStdout } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { describingVariables, readSettings } from '../../config/settings.js';
import { readContextCosts } from '../../costs/context-costs.js';
import { PRICE_TABLE } from '../../costs/list-prices.js';
import { readSessionCost } from '../../costs/session-cost.js';
import { exportSession } from '../../export/session.js';
import { DryRunDestination } from '../../langfuse/dry-run-destination.js';
import { createRedactor } from '../../observations/redaction/redact.js';
import { writeFileAtomically } from '../../shared/atomic-write.js';
import { attempt } from '../../shared/attempt.js';
import type { Log } from '../../shared/log.js';
import { DryRunState } from '../../state/dry-run.js';
import { newSession } from '../../state/entry.js';
import type { Fact } from '../../state/facts.js';
import { listRuns } from '../../state/runs.js';
import { StateStore } from '../../state/store.js';
import { Places } from '../../transcript/file/place.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { renderCost, toRecord } from './cost-table.js';
import { renderPage } from './page.js';
import { findRequest, parseRequestPlace } from './request.js';
import { renderRequest } from './request-table.js';
import { renderTree } from './terminal-tree.js';
import { groupSessions, type SentObservation, type ShownSession } from './view-model.js';

export const HELP = `usage: cc-langfuse preview [options] [session id or .jsonl path]

Shows what would be sent of a session, under the settings that it ran with. If
it ran without tracing, your current settings apply. It sends nothing and needs
neither keys nor a server. Without a session, it takes the one that Claude Code
runs the command in, or else the newest one of the current directory. The first
characters of an id are enough.

  --turn <n>      show only this turn
  --html [<file>.html]
                  write a page for your browser and print its path. Without a
                  file, it is in the folder for temporary files, and is opened
                  if this is a terminal on a desktop
  --request <turn>[.n]
                  instead, show the nth request of a turn, or its last one:
                  system prompt, tools, messages, and the size of each. This is
                  what Claude read, redacted, even if less would be sent
  --cost          instead, show what filled the context, what each part cost to
                  send, to read again with each request and to write, and where
                  the cache was lost
  --json          print the observations as one JSON array, or the request or
                  the cost as one JSON document, and nothing else
  --help
`;

const OPTIONS = {
  turn: { type: 'string' },
  html: { type: 'string' },
  request: { type: 'string' },
  cost: { type: 'boolean' },
  json: { type: 'boolean' },
} as const;

/** The destination of a preview. */
const SCREEN = 'screen';

export async function run(args: readonly string[], processEnv: NodeJS.ProcessEnv): Promise<number> {
  const { values, positionals } = parseCommandLine(args.map(addNoFile), OPTIONS);
  if (values.json && values.html !== undefined) throw new UsageError('--json and --html: choose one of them');
  // Any other name may be that of a transcript, which the page would overwrite.
  if (values.html && !values.html.endsWith('.html'))
    throw new UsageError(`--html ${values.html}: expected a name that ends in .html`);
  const place = values.request === undefined ? undefined : parseRequestPlace(values.request);
  if (place && (values.turn !== undefined || values.html !== undefined))
    throw new UsageError(`--request and --${values.turn === undefined ? 'html' : 'turn'}: choose one of them`);
  const others = (['request', 'turn', 'html'] as const).find((name) => values[name] !== undefined);
  if (values.cost && others) throw new UsageError(`--cost and --${others}: choose one of them`);
  const turn = parsePositiveNumber('turn', values.turn);
  const session = selectSession('preview', positionals, claudeFolder(processEnv), processEnv);
  if (values.cost) {
    const costs = readContextCosts(session.path, PRICE_TABLE.findPrices);
    if (!costs) throw new UsageError(`${session.path} cannot be read`);
    await (values.json ? printJson(toRecord(costs)) : printStdout(renderCost(costs).join('\n')));
    return 0;
  }
  const there = await readCommandSettings(processEnv, session.folders[0] ?? process.cwd());
  const { problems, redact = createRedactor([]) } = await readSettings(there.env);
  // A preview needs no keys.
  for (const { kind, text } of problems) if (kind !== 'missing') printStderr(`cc-langfuse: ${text}`);
  if (place) {
    const request = findRequest(session, place, redact);
    await (values.json ? printJson(request) : printStdout(renderRequest(request).join('\n')));
    return 0;
  }
  if (there.optOut !== undefined) printStderr(`nothing of it would be sent: ${there.optOut}`);
  const all = there.optOut === undefined ? await previewObservations(session, there.env, processEnv) : [];
  const observations = turn === undefined ? all : selectTurn(turn, all);
  const sessions = () => {
    const cost = attempt(() => readSessionCost(session.path));
    return selectTurns(turn, groupSessions(all, new Map(cost && [[session.sessionId, cost]])));
  };

  if (values.json) await printObservations(observations);
  else if (observations.length === 0 && there.optOut === undefined)
    printStderr(`nothing of ${session.sessionId} would be sent: none of its turns has an answer`);
  else if (values.html !== undefined) await showPage(values.html, sessions(), processEnv);
  else for (const each of sessions()) await printStdout(renderTree(each).join('\n'));
  return 0;
}

/** Exports a whole session, its last turn included, as if nothing of it had been sent. Sends nothing and keeps the state. */
async function previewObservations(
  { sessionId, path, folders }: SessionOverview,
  env: NodeJS.ProcessEnv,
  shell: NodeJS.ProcessEnv,
) {
  const observations: SentObservation[] = [];
  const state = new DryRunState(new StateStore(stateFolder(env)));
  // Whichever project a turn is for, it is shown.
  const named = listRuns(state.readSession(sessionId) ?? newSession(sessionId)).map(
    ({ destination = '' }) => destination,
  );
  const facts = named.map((wrong): Fact => ({ kind: 'adopt', at: Date.now(), wrong, right: SCREEN }));
  const end: Fact = { kind: 'end', at: Date.now(), after: new Places(path).at(), alive: [] };
  await state.update(sessionId, { facts: [...facts, end] });
  const identity = { destination: SCREEN, given: describingVariables(env), folder: folders[0] };
  const { failure } = await exportSession(
    {
      sessionId,
      path,
      occasion: 'backfill',
      includesOpen: true,
      includeLegacyFiles: true,
      run: identity,
      takesAll: true,
      replacesFailedDestination: true,
      force: true,
    },
    {
      state,
      destination: new DryRunDestination(),
      destinationId: SCREEN,
      env,
      restrictions: [shell],
      deadline: Number.POSITIVE_INFINITY,
      log: STDERR_LOG,
      observer: {
        onObservation: ({ line: _, media: __, requestRef: ___, ...observation }) => observations.push(observation),
      },
    },
  );
  if (failure !== undefined) printStderr(`not all of it would be sent: ${failure.text}`);
  return observations;
}

/** A person is watching, so warnings go to the terminal instead of a log file. */
const STDERR_LOG: Log = {
  debug() {},
  info() {},
  warn: (message, { file, line, reason } = {}) =>
    printStderr(`${message}: ${[file, line, reason].filter(Boolean).join(', ')}`),
  error: printStderr,
  async flush() {},
};

function selectTurn(turn: number, observations: readonly SentObservation[]): SentObservation[] {
  const found = observations.filter(({ trace }) => trace.metadata.turn_number === turn);
  if (found.length > 0) return found;
  const numbers = observations.flatMap(({ trace }) => trace.metadata.turn_number ?? []);
  const [first, last] = [numbers[0], numbers.at(-1)];
  if (first === undefined) throw new UsageError(`--turn ${turn}: no turn of the session has an answer`);
  throw new UsageError(
    `--turn ${turn}: the session has ${first === last ? `only turn ${first}` : `turns ${first} to ${last}`}`,
  );
}

/** What the whole session cost is not shown for one turn. */
function selectTurns(turn: number | undefined, sessions: readonly ShownSession[]): readonly ShownSession[] {
  if (turn === undefined) return sessions;
  return sessions.map((session) => ({
    ...session,
    cost: undefined,
    turns: session.turns.filter(({ metadata }) => metadata.turn_number === turn),
  }));
}

/** Prints one observation at a time: together they may exceed the length of a string. */
async function printObservations(observations: readonly SentObservation[]): Promise<void> {
  if (observations.length === 0) await printStdout('[]');
  for (const [index, { startTime, endTime, completionStartTime, ...rest }] of observations.entries()) {
    const times = { startTime: new Date(startTime), endTime: new Date(endTime) };
    const completion = { completionStartTime: completionStartTime && new Date(completionStartTime) };
    const json = formatJson({ ...rest, ...times, ...completion });
    await printStdout(`${index === 0 ? '[' : ''}${json}${index === observations.length - 1 ? ']' : ','}`);
  }
}

/** After `--html`, only a name that ends in .html is a file. Anything else is the next option, or the session. */
function addNoFile(arg: string, index: number, args: readonly string[]): string {
  return arg === '--html' && !args[index + 1]?.endsWith('.html') ? '--html=' : arg;
}

/** Prints where the page is. One that was made for now is shown at once. */
async function showPage(file: string, sessions: readonly ShownSession[], env: NodeJS.ProcessEnv): Promise<void> {
  const path = writePage(file, renderPage(PREVIEW_TEMPLATE, sessions));
  await printStdout(path);
  if (file === '') openFile(path, env);
}

function writePage(file: string, page: string): string {
  try {
    // In the folder for temporary files, another user may have made a file of any name that can be guessed.
    const path = file === '' ? join(mkdtempSync(join(tmpdir(), 'cc-langfuse-')), 'preview.html') : resolve(file);
    // It holds the whole conversation, so only its owner may read it.
    writeFileAtomically(path, page, 0o600);
    return path;
  } catch (error) {
    const place = file === '' ? `--html: ${tmpdir()}` : `--html ${resolve(file)}:`;
    throw new UsageError(`${place} cannot be written (${errorReason(error)})`);
  }
}
