import { homedir } from 'node:os';
import { parseOptions } from '../../cli/command-line.js';
import { printJson, printStdout } from '../../cli/terminal.js';
import { runChecks } from './checks.js';
import { buildJsonReport, formatReport, isHealthy } from './report.js';

export const HELP = `usage: cc-langfuse doctor [options]

Checks everything between Claude Code, as started in this directory, and
Langfuse: program, hooks, settings, files, server, sessions. It sends no
observation, changes no file, and prints no key.

  ✓ ok   ! warning   ✗ broken   - nothing to report   → how to fix it

  --json    print one JSON document on stdout, and nothing else:
            {ok, version,
             checks: [{name, part, status, message, fix?, cause?, details}]}
            version is that of cc-langfuse, for an inventory of many machines;
            status is ok, warning, broken or none; every warning and every
            broken check has a fix; those with the same cause are one fault
  --help

Exit code: 0; 1 if something is broken; 2 for a usage error.
`;

const OPTIONS = { json: { type: 'boolean' } } as const;

export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const values = parseOptions('doctor', args, OPTIONS);
  const parts = await runChecks(env, process.cwd());
  if (values.json) printJson(buildJsonReport(parts));
  else printStdout(formatReport(parts, homedir()).join('\n'));
  return isHealthy(parts) ? 0 : 1;
}
