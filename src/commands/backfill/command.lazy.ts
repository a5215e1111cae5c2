import { UsageError } from '../../cli/command-line.js';
import { formatCount, plural, toOneLine } from '../../cli/format.js';
import { formatSession } from '../../cli/format-session.js';
import { ownCommand } from '../../cli/own-command.js';
import { canAsk, confirm, noTerminal } from '../../cli/questions.js';
import { selectSessions } from '../../cli/session-selection.js';
import { printJson, printStderr, printStdout } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { readCleanupDays, readSettingsFiles } from '../../config/claude-settings.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { adviseOnKeys } from '../../config/missing-keys.js';
import { type LangfuseConfig, readSettings, type Settings } from '../../config/settings.js';
import { goesSoon, SOON_DAYS } from '../../export/deletion.js';
import { sumTallies } from '../../export/tally.js';
import { DryRunDestination } from '../../langfuse/dry-run-destination.js';
import { adviseOnRefusal } from '../../langfuse/endpoint.js';
import { findTarget, fingerprint, openDestination } from '../../langfuse/open-destination.js';
import { findKnownPage, projectUrl, saveProject, sessionsPage } from '../../langfuse/project-page.js';
import { checkKeys } from '../../langfuse/server.js';
import type { Target } from '../../langfuse/target.js';
import { openLog } from '../../shared/log.js';
import { DryRunState } from '../../state/dry-run.js';
import { saveIngestionOnly } from '../../state/servers.js';
import { StateStore } from '../../state/store.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { backfill, type SessionResult } from './backfill.js';
import { ProgressReport } from './progress.js';
import { buildJsonReport, countReadAgain, formatSummary, listReasons } from './report.js';
import { type BackfillRequest, readRequest } from './request.js';

export { HELP } from './request.js';

const FORCE_WARNING =
  'observations are sent again under the same ids: until Langfuse merges them (minutes, or longer), its lists and its sums of tokens and cost count them twice';

/** The destination id of a dry run without keys. */
const NO_DESTINATION = 'none';

export async function run(args: readonly string[], shell: NodeJS.ProcessEnv): Promise<number> {
  const request = readRequest(args);
  const { env } = await readCommandSettings(shell, process.cwd());
  const settings = await readSettings(env);
  const { destination } = settings;
  for (const { kind, text } of settings.problems) if (kind !== 'missing') printStderr(`cc-langfuse: ${text}`);
  if (!destination && !request.isDryRun)
    throw new UsageError(
      `there is nowhere to send to: ${adviseOnKeys(shell, `run ${ownCommand()} install, or set keys, or CC_LANGFUSE_OTLP_URL, in the shell or in your settings`)}`,
    );
  let unreadable = 0;
  const cleanupDays = readCleanupDays(readSettingsFiles(shell, process.cwd()));
  const isWanted = (session: SessionOverview) => !request.isExpiring || goesSoon(session, cleanupDays, Date.now());
  const sessions = selectSessions({ ...request.selection, isWanted }, claudeFolder(env), (path, reason) => {
    unreadable += 1;
    printStderr(`${path} cannot be read (${reason})`);
  });
  if (sessions.length === 0) printStderr(explainNoSessions(request));
  const isSending = !request.isDryRun && sessions.length > 0;
  if (isSending && !request.assumeYes && (!canAsk() || request.output !== 'words')) throw noTerminal();
  const target = destination && isSending ? findTarget(destination) : undefined;
  const project = target?.langfuse && (await findProject(target.langfuse, stateFolder(env)));
  const backfillAll = (isDryRun: boolean) => exportAll(sessions, { ...request, isDryRun }, { shell, env, settings });
  if (isSending && !request.assumeYes) {
    const { results: expected, isInterrupted } = await backfillAll(true);
    if (isInterrupted) return 130;
    if (!(await isConfirmed(expected, request, describeGoal(target, project)))) {
      printStderr('nothing was sent');
      return 0;
    }
  }
  if (request.force && isSending) printStderr(FORCE_WARNING);
  const page = target?.langfuse && sessionsPage(target.langfuse, findPage(target, project, stateFolder(env)));
  const { results, isInterrupted } = await backfillAll(request.isDryRun);
  if (request.output === 'json') printJson(buildJsonReport(results, request, page));
  else if (request.output === 'none') for (const line of listReasons(results, ['failed'])) printStderr(line.trim());
  else if (results.length > 0) printStdout(formatSummary(results, request, page).join('\n'));
  if (isInterrupted) return 130;
  const isDone = results.every(({ outcome }) => outcome !== 'failed' && outcome !== 'not tried');
  return isDone && unreadable === 0 ? 0 : 1;
}

async function exportAll(
  sessions: readonly SessionOverview[],
  request: BackfillRequest,
  { shell, env, settings }: { shell: NodeJS.ProcessEnv; env: NodeJS.ProcessEnv; settings: Settings },
): Promise<{ results: readonly SessionResult[]; isInterrupted: boolean }> {
  const config = settings.destination;
  const folder = stateFolder(env);
  const log = openLog(folder, settings);
  const onCorrupt = (keptAs: string) =>
    printStderr(`the progress of a session could not be read, so it is sent again: ${keptAs}`);
  const store = new StateStore(folder, onCorrupt, 'async');
  const isSending = config !== undefined && !request.isDryRun;
  const destination = isSending ? openDestination(config, folder) : new DryRunDestination();
  const hasProgress = request.output === 'words' && sessions.length > 0;
  const progress = hasProgress ? new ProgressReport(sessions, destination) : undefined;
  const interrupt = new AbortController();
  const restore = stopOnInterrupt(interrupt, () => progress?.stop());
  try {
    const results = await backfill(sessions, {
      request,
      shell,
      env,
      state: isSending ? store : new DryRunState(store),
      destination,
      destinationId: config ? fingerprint(config) : NO_DESTINATION,
      log,
      stop: interrupt.signal,
      progress,
    });
    return { results, isInterrupted: interrupt.signal.aborted };
  } finally {
    restore();
    progress?.stop();
    await destination.close();
    await log.flush();
  }
}

function explainNoSessions(request: BackfillRequest): string {
  const { selection, isSelected, isExpiring } = request;
  const { project, since, until, exclude } = selection;
  if (isExpiring) return `Claude Code deletes no such session within ${SOON_DAYS} days`;
  if (!isSelected) return 'no session ran in this directory; --all selects all projects';
  if (project !== undefined) return `no session that ran in ${project} matches`;
  const isEverything = since === undefined && until === undefined && exclude.length === 0;
  return isEverything ? 'there is no session on disk' : 'no session matches';
}

/** Says what is about to leave, and where to. If there is nothing new, there is nothing to ask. */
async function isConfirmed(expected: readonly SessionResult[], request: BackfillRequest, goal: string) {
  const affected = expected.filter(({ sent }) => sent.observations > 0);
  if (affected.length === 0) return true;
  if (!request.isSelected || request.isExpiring)
    printStdout(`${affected.map(({ session }) => formatSession(session)).join('\n')}\n`);
  const { turns, untraced, observations, scores } = sumTallies(affected.map(({ sent }) => sent));
  const billed = [plural(turns, 'trace'), plural(observations, 'observation'), plural(scores, 'score')].join(', ');
  const sessions = plural(affected.length, 'session');
  const off =
    untraced === 0 ? '' : ` ${untraced === turns ? 'All' : formatCount(untraced)} of them ran without tracing.`;
  const what = `${plural(turns, 'turn')} of ${sessions} (${billed}) will be sent to ${goal}.${off}`;
  return confirm([what, ...countReadAgain(affected), 'Send?'].join(' '));
}

function describeGoal(target: Target | undefined, project: { name: string } | undefined): string {
  const host = target?.url.host ?? '';
  if (!target?.langfuse) return `${target?.name} at ${host}`;
  return project ? `project "${toOneLine(project.name)}" at ${host}` : host;
}

function findPage(target: Target, project: { readonly id: string } | undefined, folder: string): string | undefined {
  return target.langfuse && project ? projectUrl(target.langfuse, project.id) : findKnownPage(target, folder);
}

/** Returns the project that the keys belong to. A wrong key is better reported now than after an hour of reading. */
async function findProject(config: LangfuseConfig, folder: string) {
  const check = await checkKeys(config, { triesWriting: false });
  if ('status' in check) throw new Error(`${check.problem}; ${adviseOnRefusal(check.status)}`);
  if (check.kind === 'unreachable') throw new Error(check.problem);
  const isTried = check.kind === 'only writes' || check.kind === 'accepted';
  if (isTried) saveIngestionOnly(folder, fingerprint(config), check.kind === 'only writes');
  if (check.kind !== 'accepted') return undefined;
  saveProject(config, check.project.id, folder);
  return check.project;
}

/** The first Ctrl-C stops after the requests under way, the second at once. The terminal is restored first. Returns how to undo it. */
function stopOnInterrupt(interrupt: AbortController, restoreTerminal: () => void): () => void {
  const stop = () => {
    restoreTerminal();
    if (interrupt.signal.aborted) process.exit(130);
    interrupt.abort();
    printStderr('stopping after the requests under way; press Ctrl-C again to stop at once');
  };
  process.on('SIGINT', stop);
  return () => process.off('SIGINT', stop);
}
