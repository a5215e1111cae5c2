import { errorReason } from '../../cli/command-line.js';
import { ProgressLine } from '../../cli/progress-line.js';
import { saveMemory } from '../../cli/save-memory.js';
import { printJson, printStderr, printStdout } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { hasSubscription } from '../../config/login.js';
import { readAllUsage } from '../../costs/read-usage.js';
import type { SessionUsage } from '../../costs/session-usage.js';
import { showCheck } from './check.js';
import { groupCosts, isByPart, needsCauses } from './grouping.js';
import { choosePrices, describeSource } from './price-source.js';
import { renderCsv, toRecord } from './records.js';
import { type CostRequest, describeNothing, readRequest } from './request.js';
import { describeTotal, renderTable } from './table.js';
import { showTop } from './top.js';

export { HELP } from './request.js';

export async function run(args: readonly string[], shell: NodeJS.ProcessEnv): Promise<number> {
  const request = readRequest(args);
  const { env } = await readCommandSettings(shell, process.cwd());
  const { sessions, isWhole } = readSessions(env, request.view === 'top' || needsCauses(request.by));
  if (request.view === 'check') await showCheck(sessions, env, request);
  else if (request.view === 'top') await showTop(sessions, env, request);
  else await showSums(sessions, env, request);
  return isWhole ? 0 : 1;
}

/** Reads what all sessions used; not the whole of it if a transcript cannot be read. */
function readSessions(env: NodeJS.ProcessEnv, withCauses: boolean) {
  let isWhole = true;
  const progress = new ProgressLine();
  const onUnreadable = (path: string, error: unknown) => {
    progress.clear();
    printStderr(`${path} cannot be read (${errorReason(error)}): the sums leave it out`);
    isWhole = false;
  };
  saveMemory();
  const onRead = progress.showRead;
  const sessions = readAllUsage(claudeFolder(env), stateFolder(env), { onUnreadable, onRead, withCauses });
  progress.clear();
  return { sessions, isWhole };
}

async function showSums(
  sessions: readonly SessionUsage[],
  env: NodeJS.ProcessEnv,
  request: CostRequest,
): Promise<void> {
  const { by, since, isJson, isCsv } = request;
  const prices = await choosePrices(sessions, env);
  const grouped = groupCosts(by, sessions, prices.findPrices, since);
  const { rows, total, exactTokens } = grouped;
  const source = describeSource(prices, sessions, since);
  const basis = { source, isSubscription: hasSubscription(env, process.cwd()) };
  if (isJson)
    await printJson({
      by,
      since: since === undefined ? undefined : new Date(since),
      rows: rows.map(({ key, costs }) => ({ [by]: key, ...toRecord(costs) })),
      total: toRecord(total),
      exactTokens: isByPart(by) ? exactTokens : undefined,
      prices: source,
      subscription: basis.isSubscription,
    });
  else if (isCsv) process.stdout.write(renderCsv(by, rows));
  else if (rows.length === 0) printStderr(describeNothing('used anything', request));
  else await printStdout([...renderTable(by, grouped, basis), ...describeTotal(by, grouped, basis)].join('\n'));
}
