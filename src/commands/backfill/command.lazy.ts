import { UsageError } from '../../cli/command-line.js';
import { formatSession } from '../../cli/format-session.js';
import { canAsk, confirm } from '../../cli/questions.js';
import { selectSessions } from '../../cli/session-selection.js';
import { printJson, printStderr, printStdout } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { commandEnvironment } from '../../config/claude-settings.js';
import { type LangfuseConfig, readSettings, type Settings } from '../../config/settings.js';
import { DryRunDestination } from '../../langfuse/dry-run-destination.js';
import { fingerprint } from '../../langfuse/endpoint.js';
import { openDestination } from '../../langfuse/open-destination.js';
import { checkKeys, sessionsPage } from '../../langfuse/server.js';
import { openLog } from '../../shared/log.js';
import { DryRunState } from '../../state/dry-run.js';
import { StateStore } from '../../state/store.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { backfill, type SessionResult } from './backfill.js';
import { ProgressReport } from './progress.js';
import { buildJsonReport, formatSummary, listReasons } from './report.js';
import { type BackfillRequest, readRequest } from './request.js';

export { HELP } from './request.js';

const FORCE_WARNING =
  'observations are sent again under the same ids: until Langfuse merges them (minutes, or longer), its lists and its sums of tokens and cost count them twice';

export async function run(args: readonly string[], processEnv: NodeJS.ProcessEnv): Promise<number> {
  const request = readRequest(args);
  const env = commandEnvironment(processEnv);
  const settings = await readSettings(env);
  const { destination } = settings;
  for (const problem of settings.problems) printStderr(`cc-langfuse: ${problem}`);
  if (!destination && !request.isDryRun)
    throw new UsageError(
      'there is nowhere to send to: set keys, or CC_LANGFUSE_OTLP_URL, in the shell or in the env block of your settings',
    );
  let unreadable = 0;
  const sessions = selectSessions(request.selection, claudeFolder(env), (path, reason) => {
    unreadable += 1;
    printStderr(`${path} cannot be read (${reason})`);
  });
  if (sessions.length === 0) printStderr(explainNoSessions(request));
  if (sessions.length > 0 && !(await isConfirmed(request, sessions))) {
    printStderr('nothing was sent');
    return 0;
  }
  if (request.force && !request.isDryRun) printStderr(FORCE_WARNING);

  const isSending = !request.isDryRun && sessions.length > 0;
  // A Collector has no keys to check, and no page.
  const page = destination?.kind === 'langfuse' && isSending ? await findPage(destination) : undefined;
  const interrupt = new AbortController();
  const results = await exportAll(sessions, request, env, settings, interrupt);
  if (request.output === 'json') printJson(buildJsonReport(results, request, page));
  else if (request.output === 'none') for (const line of listReasons(results, ['failed'])) printStderr(line.trim());
  else if (results.length > 0) printStdout(formatSummary(results, request, page).join('\n'));
  if (interrupt.signal.aborted) return 130;
  const isDone = results.every(({ outcome }) => outcome !== 'failed' && outcome !== 'not tried');
  return isDone && unreadable === 0 ? 0 : 1;
}

async function exportAll(
  sessions: readonly SessionOverview[],
  request: BackfillRequest,
  env: NodeJS.ProcessEnv,
  settings: Settings,
  interrupt: AbortController,
): Promise<readonly SessionResult[]> {
  const config = settings.destination;
  const folder = stateFolder(env);
  const log = openLog(folder, settings);
  const onCorrupt = (keptAs: string) => printStderr(`the state file was corrupt and has been set aside as ${keptAs}`);
  const store = new StateStore(folder, onCorrupt, 'async');
  const isSending = config !== undefined && !request.isDryRun;
  const destination = isSending ? await openDestination(config, folder) : new DryRunDestination();
  const hasProgress = request.output === 'words' && sessions.length > 0;
  const progress = hasProgress ? new ProgressReport(sessions, destination) : undefined;
  stopOnInterrupt(interrupt, () => progress?.stop());
  try {
    return await backfill(sessions, {
      request,
      env,
      settings,
      state: isSending ? store : new DryRunState(store),
      destination,
      destinationId: config ? fingerprint(config) : '',
      log,
      stop: interrupt.signal,
      progress,
    });
  } finally {
    progress?.stop();
    await destination.close();
    await log.flush();
  }
}

function explainNoSessions({ selection: { project, since, until, exclude }, isSelected }: BackfillRequest): string {
  if (!isSelected) return 'no session ran in this directory; --all selects all projects';
  if (project !== undefined) return `no session that ran in ${project} matches`;
  const isEverything = since === undefined && until === undefined && exclude.length === 0;
  return isEverything ? 'there is no session on disk' : 'no session matches';
}

/** In a terminal, sessions that nobody has selected are listed and need a confirmation. */
async function isConfirmed({ isSelected, isDryRun, output }: BackfillRequest, sessions: readonly SessionOverview[]) {
  if (!canAsk() || output !== 'words' || isSelected || isDryRun) return true;
  printStdout(`${sessions.map((session) => formatSession(session)).join('\n')}\n`);
  return confirm(`Export ${sessions.length === 1 ? 'it' : `these ${sessions.length}`}?`);
}

/** Returns where the sessions will be shown. A wrong key is better reported now than after an hour of reading. */
async function findPage(config: LangfuseConfig): Promise<string> {
  const check = await checkKeys(config);
  if (check.kind === 'refused' || check.kind === 'unreachable') throw new Error(check.problem);
  return sessionsPage(config, check.kind === 'accepted' ? check.project : undefined);
}

/** The first Ctrl-C stops after the requests under way, the second at once. The terminal is restored first. */
function stopOnInterrupt(interrupt: AbortController, restore: () => void): void {
  process.on('SIGINT', () => {
    restore();
    if (interrupt.signal.aborted) process.exit(130);
    interrupt.abort();
    printStderr('stopping after the requests under way; press Ctrl-C again to stop at once');
  });
}
