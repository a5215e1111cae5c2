import { errorReason, parseOptions, parsePointInTime, UsageError } from '../../cli/command-line.js';
import { printJson, printStderr, printStdout } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { PERIOD_MS } from '../../costs/add-up.js';
import { addUpCosts } from '../../costs/cost-book.js';
import { PRICE_TABLE } from '../../costs/list-prices.js';
import { readAllUsage } from '../../costs/read-usage.js';
import { groupCosts, needsCauses, parseGrouping } from './grouping.js';
import { renderCsv, toRecord } from './records.js';
import { describeTotal, renderTable } from './table.js';

export const HELP = `usage: cc-langfuse cost [options]

Shows what Claude Code cost and how many tokens it used, from the transcripts on
disk. It needs no account and sends nothing.
Dollars are Claude Code's own: it writes an account to the transcript when a
session ends. "≈" marks tokens that no account includes, at list prices. "+"
marks tokens of models that have no list price.

  --by <what>      day, project, session, model, repository or branch; or what
                   caused it: agent, skill, command, prompt, tool or mcp (day)
  --since <when>   only what was used at or after: 7d, 12h, 2026-11-01
  --json           print one JSON document, and nothing else: {by, since?,
                   rows: [{<by>, ...sums}], total: {...sums}}. Sums have the
                   names of the columns that --csv prints
  --csv            print comma-separated values, and nothing else
  --help

Exit code: 0, 1 if a transcript cannot be read, 2 for a usage error.
`;

const OPTIONS = {
  by: { type: 'string' },
  since: { type: 'string' },
  json: { type: 'boolean' },
  csv: { type: 'boolean' },
} as const;

export async function run(args: readonly string[], shell: NodeJS.ProcessEnv): Promise<number> {
  const values = parseOptions('cost', args, OPTIONS);
  if (values.json && values.csv) throw new UsageError('--json and --csv: choose one of them');
  const by = parseGrouping(values.by ?? 'day');
  const since = values.since === undefined ? undefined : parsePointInTime('since', values.since, Date.now());
  const { env } = await readCommandSettings(shell, process.cwd());
  const from = since === undefined ? 0 : Math.floor(since / PERIOD_MS) * PERIOD_MS;
  let exitCode = 0;
  const onUnreadable = (path: string, error: unknown) => {
    // Without projects there is nothing to read, and Claude Code deletes old transcripts.
    if (errorReason(error) === 'ENOENT') return;
    printStderr(`${path} cannot be read (${errorReason(error)}): the sums leave it out`);
    exitCode = 1;
  };
  const prices = PRICE_TABLE;
  const sessions = readAllUsage(claudeFolder(env), stateFolder(env), { onUnreadable, withCauses: needsCauses(by) });
  const grouped = groupCosts(by, sessions, prices.findPrices, from);
  const { entries, rows } = grouped;
  const total = addUpCosts(entries);
  if (values.json)
    await printJson({
      by,
      since: since === undefined ? undefined : new Date(from),
      rows: rows.map(({ key, costs }) => ({ [by]: key, ...toRecord(costs) })),
      total: toRecord(total),
    });
  else if (values.csv) process.stdout.write(renderCsv(by, rows));
  else if (entries.length === 0) printStderr('nothing on disk was used in that time');
  else await printStdout([...renderTable(by, rows, total), ...describeTotal(by, grouped, total, prices)].join('\n'));
  return exitCode;
}
