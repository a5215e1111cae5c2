import { parseOptions } from '../../cli/command-line.js';
import { printStderr, printStdout } from '../../cli/terminal.js';
import { stateFolder } from '../../config/claude-folder.js';
import { logPath } from '../../shared/log.js';
import { formatLogLine } from './format-line.js';
import { readLog } from './read-log.js';

export const HELP = `usage: cc-langfuse log [options]

Shows what went wrong in the background, oldest first: one line for each warning
and error, for what this version does not know of a session's transcript, and
with CC_LANGFUSE_DEBUG=true also for what was sent. The file,
~/.claude/state/cc-langfuse_hook.log, has one JSON document on each line. Its
older part, which was set aside when it became too long, is shown, too.

  -f, --follow    wait for more, until Ctrl-C
  --help
`;

const OPTIONS = { follow: { type: 'boolean', short: 'f' } } as const;

export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const values = parseOptions('log', args, OPTIONS);
  const path = logPath(stateFolder(env));
  let isEmpty = true;
  const onWait = () => {
    if (process.stderr.isTTY) printStderr('waiting for more, until Ctrl-C');
  };
  for await (const lines of readLog(path, values.follow ? onWait : undefined)) {
    isEmpty &&= lines.length === 0;
    if (lines.length > 0) await printStdout(lines.map(formatLogLine).join('\n'));
  }
  if (isEmpty) printStderr('nothing has been logged yet');
  return 0;
}
