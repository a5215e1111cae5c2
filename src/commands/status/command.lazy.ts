import { homedir } from 'node:os';
import { parseOptions } from '../../cli/command-line.js';
import { printJson, printStdout } from '../../cli/terminal.js';
import { buildJsonStatus, formatStatus } from './report.js';
import { isAllWell, readStatus } from './status.js';

export const HELP = `usage: cc-langfuse status [options]

Shows whether turns of this directory are sent to Langfuse and which setting
decides that, where they go, the last turn that was sent, with its link, and
what waits to be sent. It also says how many sessions are not wholly in Langfuse
and when Claude Code deletes the first of them, and what was used today and
since Monday, as cost does at the program's own list prices. It asks no server;
cc-langfuse doctor does, and suggests fixes. The link needs the project's id,
which install and backfill ask for.

  --json       print one JSON document on stdout, and nothing else:
               {version, tracing: {on, message, fix?, problems}, destination?,
               here?: {sessionId, turn?, untraced, strays, muted}, newest?,
               pending: [{sessionId, attempts, reason, since}],
               cost?: {today, week, subscription},
               unsent?: {sessions, firstDeletedAfter}}
               a sum of cost is {dollars, listPriceDollars,
               tokensWithoutPrice}
               a turn is {sessionId, title, number, at, traceId, url?}
  --exit-code  end with 1 unless all is well, for scripts
  --help

Exit code: 0; 2 for a usage error. With --exit-code also 1, if something waits
to be sent or was refused (pending), or if something keeps turns from being
sent although tracing is on (problems). A muted session is no such problem.
`;

const OPTIONS = { json: { type: 'boolean' }, 'exit-code': { type: 'boolean' } } as const;

export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const values = parseOptions('status', args, OPTIONS);
  const status = await readStatus(env, process.cwd());
  if (values.json) await printJson(buildJsonStatus(status));
  else await printStdout(formatStatus(status, homedir(), Date.now()).join('\n'));
  return values['exit-code'] && !isAllWell(status) ? 1 : 0;
}
