import { errorReason, parseOptions, parsePointInTime, UsageError } from '../../cli/command-line.js';
import { ProgressLine } from '../../cli/progress-line.js';
import { saveMemory } from '../../cli/save-memory.js';
import { printJson, printStderr, printStdout } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { hasSubscription } from '../../config/login.js';
import { listAllSteps } from '../../costs/account-steps.js';
import { PERIOD_MS } from '../../costs/add-up.js';
import { checkAccounts } from '../../costs/check-accounts.js';
import { addUpCosts } from '../../costs/cost-book.js';
import type { Priced } from '../../costs/list-prices.js';
import { readAllUsage } from '../../costs/read-usage.js';
import type { SessionUsage } from '../../costs/session-usage.js';
import { renderCheck, toCheckRecord } from './check.js';
import { countExact, groupCosts, isByPart, needsCauses, parseGrouping } from './grouping.js';
import { choosePrices } from './price-source.js';
import { renderCsv, toRecord } from './records.js';
import { describeTotal, renderTable } from './table.js';
import { findOutliers, renderOutliers, toOutlierRecord } from './top.js';

export const HELP = `usage: cc-langfuse cost [options]

Shows what Claude Code cost and how many tokens it used, from the transcripts on
disk. It needs no keys, and sends nothing of them anywhere.
Dollars are Claude Code's own: it writes an account to the transcript when a
session ends. "≈" marks tokens that no account includes, at list prices; "+"
marks tokens of models that have no list price. With keys, Langfuse is asked for
its prices at most once a day, and nothing but that request leaves. Otherwise
they are those of a list that comes with the program.
With a subscription the dollars are not billed, and are called API value.

  --by <what>      day, project, session, model, repository or branch; or what
                   caused it: agent, skill, command, prompt, tool or mcp (day)
  --since <when>   only what was used at or after: 7d, 12h, 2026-11-01
  --top            list the sessions and prompts that cost 3 times the usual, or
                   more
  --check          list where accounts and list prices differ, and why
  --json           print one JSON document, and nothing else: {by, since?,
                   rows: [{<by>, ...sums}], total: {...sums}, prices,
                   subscription}. Sums have the names of the columns that --csv
                   prints; for --check {agreements, differences, prices};
                   for --top {sessions, prompts}, each with {usualDollars,
                   count, above}
  --csv            print comma-separated values, and nothing else
  --help

Exit code: 0, 1 if a transcript cannot be read, 2 for a usage error.
`;

const OPTIONS = {
  by: { type: 'string' },
  since: { type: 'string' },
  top: { type: 'boolean' },
  check: { type: 'boolean' },
  json: { type: 'boolean' },
  csv: { type: 'boolean' },
} as const;

/** What can be shown instead of sums. */
const OTHER_VIEWS = ['top', 'check'] as const;

export async function run(args: readonly string[], shell: NodeJS.ProcessEnv): Promise<number> {
  const values = parseOptions('cost', args, OPTIONS);
  if (values.json && values.csv) throw new UsageError('--json and --csv: choose one of them');
  const view = OTHER_VIEWS.find((name) => values[name]);
  const another = (['check', 'by', 'csv'] as const).find((name) => name !== view && values[name] !== undefined);
  if (view && another) throw new UsageError(`--${view} and --${another}: choose one of them`);
  const by = parseGrouping(values.by ?? 'day');
  const since = values.since === undefined ? undefined : parsePointInTime('since', values.since, Date.now());
  const { env } = await readCommandSettings(shell, process.cwd());
  const from = since === undefined ? 0 : Math.floor(since / PERIOD_MS) * PERIOD_MS;
  let exitCode = 0;
  const progress = new ProgressLine();
  const onUnreadable = (path: string, error: unknown) => {
    progress.clear();
    // Without projects there is nothing to read, and Claude Code deletes old transcripts.
    if (errorReason(error) === 'ENOENT') return;
    printStderr(`${path} cannot be read (${errorReason(error)}): the sums leave it out`);
    exitCode = 1;
  };
  saveMemory();
  const sessions = readAllUsage(claudeFolder(env), stateFolder(env), {
    onUnreadable,
    onRead: progress.showRead('transcripts'),
    withCauses: values.top || needsCauses(by),
  });
  progress.clear();
  const prices = await choosePrices(sessions, env, values.check);
  const source = prices.describe(listPriced(sessions, values.check).filter(({ at }) => at >= from));
  if (values.check) {
    const steps = listAllSteps(sessions).filter(({ at }) => at >= from);
    const check = checkAccounts(steps, prices.findPrices);
    if (values.json) await printJson(toCheckRecord(check, source));
    else if (steps.length === 0) printStderr('no session on disk has an account of that time');
    else await printStdout(renderCheck(check, source).join('\n'));
    return exitCode;
  }
  if (values.top) {
    const find = (each: 'session' | 'prompt') =>
      findOutliers(
        groupCosts(each, sessions, prices.findPrices, from).rows.filter(({ turn }) => each === 'session' || turn),
      );
    const [bySession, byPrompt] = [find('session'), find('prompt')];
    const lines = [...renderOutliers('session', bySession), '', ...renderOutliers('prompt', byPrompt)];
    if (values.json)
      await printJson({
        sessions: toOutlierRecord('session', bySession),
        prompts: toOutlierRecord('prompt', byPrompt),
      });
    else await printStdout(lines.join('\n'));
    return exitCode;
  }
  const grouped = groupCosts(by, sessions, prices.findPrices, from);
  const { entries, rows } = grouped;
  const total = addUpCosts(entries);
  const basis = { source, isSubscription: hasSubscription(env, process.cwd()) };
  if (values.json)
    await printJson({
      by,
      since: since === undefined ? undefined : new Date(from),
      rows: rows.map(({ key, costs }) => ({ [by]: key, ...toRecord(costs) })),
      total: toRecord(total),
      exactTokens: isByPart(by) ? countExact(entries) : undefined,
      prices: source,
      subscription: basis.isSubscription,
    });
  else if (values.csv) process.stdout.write(renderCsv(by, rows));
  else if (entries.length === 0) printStderr('nothing on disk was used in that time');
  else
    await printStdout([...renderTable(by, rows, total, basis), ...describeTotal(by, grouped, total, basis)].join('\n'));
  return exitCode;
}

/** What list prices are taken for. */
function listPriced(sessions: readonly SessionUsage[], isCheck = false): Priced[] {
  if (!isCheck) return sessions.flatMap(({ uses }) => uses);
  return listAllSteps(sessions).map(({ model, at }) => ({ model, at, isFast: false, isInUs: false }));
}
