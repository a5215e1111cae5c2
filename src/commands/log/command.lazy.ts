import { parseOptions, UsageError } from '../../cli/command-line.js';
import { printJson, printStderr, printStdout } from '../../cli/terminal.js';
import { stateFolder } from '../../config/claude-folder.js';
import { isRecord, parseJson } from '../../shared/json.js';
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
  --json          print one JSON array, and nothing else: what each line has,
                  {time, level, msg, pid, ...}, or {text} if it is not JSON
  --help
`;

const OPTIONS = { follow: { type: 'boolean', short: 'f' }, json: { type: 'boolean' } } as const;

export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const values = parseOptions('log', args, OPTIONS);
  if (values.follow && values.json) throw new UsageError('--follow and --json: choose one of them');
  const path = logPath(stateFolder(env));
  if (values.json) {
    const documents = [];
    for await (const lines of readLog(path)) documents.push(...lines.map(parseLine));
    await printJson(documents);
    return 0;
  }
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

/** A kill may have cut the last line. */
function parseLine(line: string): object {
  const fields = parseJson(line);
  return isRecord(fields) ? fields : { text: line };
}
