import { homedir } from 'node:os';
import { parseCommandLine, UsageError } from '../../cli/command-line.js';
import { examine } from './examination.js';
import { doctorLines, documentOf, isWell } from './report.js';

const HELP = `usage: cc-langfuse doctor [options]

Looks at the way from Claude Code, as it would be started in this directory, to
Langfuse: program, hooks, settings, files, server, sessions. It sends no
observation, changes no file, and prints no key.

  ✓ good   ! to look at   ✗ broken   - nothing to tell   → what mends it

  --json    one JSON document on stdout, and nothing else:
            {ok, checks: [{name, part, status, message, fix?, details}]}
            status is ok, warning, broken or none; fix is there where something
            is wrong
  --help

Exit code: 0, 1 where something is broken, 2 where it could not be asked so.
`;

const OPTIONS = { json: { type: 'boolean' } } as const;

/** Tells what is wrong; gives the exit code. */
export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const { values, positionals } = parseCommandLine(args, OPTIONS, HELP);
  if (positionals.length > 0) throw new UsageError(`${positionals[0]}: doctor takes no operands`);
  const parts = await examine(env, process.cwd());
  const lines = values.json ? [JSON.stringify(documentOf(parts), null, 2)] : doctorLines(parts, homedir());
  process.stdout.write(`${lines.join('\n')}\n`);
  return isWell(parts) ? 0 : 1;
}
