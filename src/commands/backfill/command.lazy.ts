import { UsageError } from '../../cli/command-line.js';
import { formatSession } from '../../cli/format-session.js';
import { canAsk, confirm } from '../../cli/questions.js';
import { selectSessions } from '../../cli/session-selection.js';
import { printStderr } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { commandEnvironment } from '../../config/claude-settings.js';
import {
  describingVariables,
  type LangfuseConfig,
  readSessionSettings,
  readSettings,
  type Settings,
} from '../../config/settings.js';
import { Courier } from '../../export/delivery.js';
import { NOTHING_SENT } from '../../export/nothing-sent.js';
import { fingerprint } from '../../langfuse/endpoint.js';
import { openDestination } from '../../langfuse/open-destination.js';
import { checkKeys, sessionsPage } from '../../langfuse/project.js';
import { openLog } from '../../shared/log.js';
import { DryRun } from '../../state/dry-run.js';
import { StateStore } from '../../state/store.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { backfill, patiently, type SessionResult } from './backfill.js';
import { NO_PROGRESS, ProgressReport } from './progress.js';
import { closingLines, documentOf, type ReportDetails, reasons } from './report.js';
import { type BackfillRequest, readRequest } from './request.js';

/** Exports what is on disk; gives the exit code. */
export async function run(args: readonly string[], processEnv: NodeJS.ProcessEnv): Promise<number> {
  const request = readRequest(args);
  const env = commandEnvironment(processEnv);
  const settings = await readSettings(env);
  const { destination: receiver } = settings;
  for (const problem of settings.problems) printStderr(`cc-langfuse: ${problem}`);
  if (!receiver && !request.isDryRun)
    throw new UsageError(
      'nothing can be sent so: set keys, or CC_LANGFUSE_OTLP_URL, in the shell or in the env block of your settings',
    );
  let unreadable = 0;
  const sessions = selectSessions(request.selection, claudeFolder(env), (path, reason) => {
    unreadable += 1;
    printStderr(`${path} cannot be read (${reason})`);
  });
  if (sessions.length === 0) printStderr(noneOf(request));
  if (sessions.length > 0 && !(await isWanted(request, sessions))) {
    printStderr('nothing was sent');
    return 0;
  }
  if (request.isAnew && !request.isDryRun) printStderr(FORCE);

  const isSending = !request.isDryRun && sessions.length > 0;
  // A Collector has no keys to be asked about, and shows nothing.
  const page = receiver?.kind === 'langfuse' && isSending ? await pageOf(receiver) : undefined;
  const interrupt = new AbortController();
  const results = await exportAll(sessions, request, { env, settings, interrupt });
  tellResults(results, request, { ...request, page });
  const isDone = results.every(({ outcome: { kind } }) => kind !== 'failed' && kind !== 'not tried');
  if (interrupt.signal.aborted) return 130;
  return isDone && unreadable === 0 ? 0 : 1;
}

interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  readonly settings: Settings;
  readonly interrupt: AbortController;
}

async function exportAll(
  sessions: readonly SessionOverview[],
  request: BackfillRequest,
  { env, settings, interrupt }: Surroundings,
): Promise<readonly SessionResult[]> {
  const { destination: receiver } = settings;
  const folder = stateFolder(env);
  const log = openLog(folder, settings);
  const onCorrupt = (keptAs: string) => printStderr(`the state file was corrupt, it is set aside as ${keptAs}`);
  const state = new StateStore(folder, onCorrupt, 'in the background');
  const sender = receiver && !request.isDryRun ? await openDestination(receiver, folder) : undefined;
  const courier = sender && new Courier(sender);
  const progress =
    request.output === 'words' && sessions.length > 0
      ? new ProgressReport(sessions, process.stderr, () => sender?.pausedUntil ?? 0)
      : NO_PROGRESS;
  stopOnInterrupt(interrupt, () => progress.stop());
  try {
    return await backfill(sessions, {
      ...request,
      store: sender ? state : new DryRun(state),
      ...(courier ? patiently(courier, interrupt.signal) : NOTHING_SENT),
      isServerWell: () => sender?.isHealthy ?? true,
      describe: async (given) =>
        given ? readSessionSettings(given, env) : { options: settings, given: describingVariables(env) },
      destination: receiver && fingerprint(receiver),
      log,
      stop: interrupt.signal,
      progress,
    });
  } finally {
    progress.stop();
    await courier?.close();
    await log.flush();
  }
}

const FORCE =
  'what is sent again has the same ids: until Langfuse merges its rows (minutes, or longer) lists, and the sums of tokens and cost, count it twice';

function noneOf({ selection, isSelected }: BackfillRequest): string {
  const { project, named, since, until, exclude } = selection;
  const isEverything =
    [project, since, until].every((each) => each === undefined) && named.length + exclude.length === 0;
  if (!isSelected) return 'no session ran in this directory; --all takes those of all projects';
  if (isEverything) return 'there is no session on disk';
  return project === undefined ? 'there is no such session' : `there is no such session that ran in ${project}`;
}

/** In a terminal, what nobody has named is shown and asked for. */
async function isWanted({ isSelected, isDryRun, output }: BackfillRequest, sessions: readonly SessionOverview[]) {
  if (!canAsk() || output !== 'words' || isSelected || isDryRun || sessions.length === 0) return true;
  process.stdout.write(`${sessions.flatMap((session) => formatSession(session)).join('\n')}\n\n`);
  return confirm(`Export ${sessions.length === 1 ? 'it' : `these ${sessions.length}`}?`);
}

/** Where the sessions are shown. A wrong key is better told before than after an hour of reading. */
async function pageOf(langfuse: LangfuseConfig): Promise<string> {
  const check = await checkKeys(langfuse);
  if (check.kind === 'refused' || check.kind === 'unreachable') throw new Error(check.problem);
  return sessionsPage(langfuse, check.kind === 'accepted' ? check.project : undefined);
}

/** The first Ctrl-C ends it after the requests under way, the second at once. The terminal is left as it was. */
function stopOnInterrupt(interrupt: AbortController, restore: () => void): void {
  process.on('SIGINT', () => {
    restore();
    if (interrupt.signal.aborted) process.exit(130);
    interrupt.abort();
    printStderr('stopping after what is under way; Ctrl-C once more stops at once');
  });
}

function tellResults(results: readonly SessionResult[], { output }: BackfillRequest, details: ReportDetails): void {
  if (output === 'json') process.stdout.write(`${JSON.stringify(documentOf(results, details), null, 2)}\n`);
  if (output === 'none') for (const line of reasons(results, ['failed'])) printStderr(line.trim());
  if (output === 'words' && results.length > 0) process.stdout.write(`${closingLines(results, details).join('\n')}\n`);
}
