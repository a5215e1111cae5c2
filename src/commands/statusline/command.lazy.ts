import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseOptions } from '../../cli/command-line.js';
import { printJson, printStderr, quoteForShell } from '../../cli/terminal.js';
import { programInForce } from '../../config/installed-program.js';
import { attempt } from '../../shared/attempt.js';

export const HELP = `usage: cc-langfuse statusline

Prints what to add to ~/.claude/settings.json, so that Claude Code's status line
says whether the session is traced or muted, how many turns were sent, and
whether more is pending. The launcher, cc-langfuse-hook, prints the status line
itself, without starting Node.

  --help
`;

export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  parseOptions('statusline', args, {});
  const installed = join(programInForce(env), 'hook.sh');
  // A copy that a package runner has fetched does not stay.
  const launcher = existsSync(installed) ? installed : join(dirname(realpathSync(process.argv[1] ?? '')), 'hook.sh');
  // Claude Code, or a script of the user's, passes what the status line is about.
  const input = process.stdin.isTTY ? '' : (attempt(() => readFileSync(0, 'utf8')) ?? '');
  if (input.trim() !== '')
    return spawnSync(launcher, ['statusline'], { input, stdio: ['pipe', 'inherit', 'inherit'] }).status ?? 1;
  printStderr('Add this to ~/.claude/settings.json:');
  await printJson({ statusLine: { type: 'command', command: `${quoteForShell(launcher)} statusline` } });
  return 0;
}
