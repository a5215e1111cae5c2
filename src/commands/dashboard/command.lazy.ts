import { parseOptions, UsageError } from '../../cli/command-line.js';
import { toOneLine } from '../../cli/format.js';
import { ownCommand } from '../../cli/own-command.js';
import { canAsk, confirm, noTerminal } from '../../cli/questions.js';
import { printJson, printStderr, printStdout } from '../../cli/terminal.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { adviseOnKeys } from '../../config/missing-keys.js';
import { readSettings } from '../../config/settings.js';
import { DashboardApi } from '../../langfuse/dashboards.js';
import { findTarget } from '../../langfuse/open-destination.js';
import { projectUrl } from '../../langfuse/project-page.js';
import { checkKeys, describeNeed } from '../../langfuse/server.js';
import { listFilters, listWidgets, MARK, NAME } from './charts.js';
import { findOwn, makeDashboard } from './make-dashboard.js';

export const HELP = `usage: cc-langfuse dashboard [options]

Makes the dashboard "${NAME}" in your Langfuse project: cost, sessions,
turns and tokens; cost by model and repository; how turns ended and were rated;
tool calls and their errors; tokens by kind; the time that turns take; versions
of Claude Code. If your settings name a user, also cost by user.
Run again, it replaces the charts that it made, and no others. It needs Langfuse
4 of July 2026 or newer.

  --dry-run   print the JSON that would be sent, and send nothing
  --yes       do not ask
  --help

Exit code: 0, 1 if it failed, 2 for a usage error.
`;

const OPTIONS = { 'dry-run': { type: 'boolean' }, yes: { type: 'boolean' } } as const;
const TIMEOUT_MS = 60_000;

export async function run(args: readonly string[], shell: NodeJS.ProcessEnv): Promise<number> {
  const values = parseOptions('dashboard', args, OPTIONS);
  const { env } = await readCommandSettings(shell, process.cwd());
  const settings = await readSettings(env);
  const [widgets, filters] = [listWidgets(settings), listFilters(settings.autoTags)];
  if (values['dry-run']) {
    const shown = widgets.map(({ widget, place }, index) => ({ widget, placement: place(`(chart ${index + 1})`) }));
    await printJson({ dashboard: { name: NAME, description: MARK, filters }, widgets: shown });
    return 0;
  }
  const { destination } = settings;
  const langfuse = destination && findTarget(destination).langfuse;
  if (!langfuse)
    throw new UsageError(
      `dashboard needs a Langfuse server and its keys: ${adviseOnKeys(shell, `run ${ownCommand()} install, or set them in the shell`)}`,
    );
  if (!values.yes && !canAsk()) throw noTerminal();
  const check = await checkKeys(langfuse);
  if (check.kind === 'only writes' || check.kind === 'only reads')
    throw new Error(
      describeNeed({ keys: 'keys with full access', command: `${ownCommand()} dashboard` }, check.problem),
    );
  if (check.kind !== 'accepted') throw new Error(check.problem);
  const api = new DashboardApi(langfuse, { deadline: Date.now() + TIMEOUT_MS });
  const known = findOwn(await api.listDashboards());
  const goal = `in project "${toOneLine(check.project.name)}" at ${langfuse.baseUrl.host}`;
  const question = `${known ? 'Replace the charts of' : 'Make'} the dashboard "${NAME}" ${goal}?`;
  if (!values.yes && !(await confirm(question))) {
    printStderr('nothing was sent');
    return 0;
  }
  const id = await makeDashboard(api, known, widgets, filters);
  await printStdout(`${projectUrl(langfuse, check.project.id)}/dashboards/${encodeURIComponent(id)}`);
  return 0;
}
