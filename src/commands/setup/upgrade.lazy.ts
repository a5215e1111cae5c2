import { spawnSync } from 'node:child_process';
import { homedir } from 'node:os';
import { parseOptions } from '../../cli/command-line.js';
import { ownCommand } from '../../cli/own-command.js';
import { printStdout } from '../../cli/terminal.js';
import { parseClaudeSettings } from '../../config/claude-settings.js';
import { findVersionInForce, programInForce } from '../../config/installed-program.js';
import { settingsPath } from '../../config/settings-paths.js';
import { isRecord, parseJson } from '../../shared/json.js';
import { isOlder, version } from '../../shared/version.js';
import { describeInstalled, installProgram } from './program-copy.js';
import { buildAbsoluteCommands } from './program-path.js';
import { addToSettings, hasOwnHooks } from './settings-change.js';
import { planChange, writeChange } from './settings-file.js';

export const HELP = `usage: cc-langfuse upgrade

Installs the newest version that npm has, in place of the installed one. Hooks
that are running end with the version that they began with. Keys and settings
stay as they are. npm is asked with your own npm settings.

Exit code: 0; 1 if something failed; 2 for a usage error.
`;

const NPM_WAIT_MS = 60_000;

export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  parseOptions('upgrade', args, {});
  const inForce = findVersionInForce(env);
  if (inForce === undefined) throw new Error(`no version is installed to upgrade; run: ${ownCommand()} install`);
  const newest = readNewestVersion(env);
  if (!isOlder(inForce, newest)) {
    printStdout(`${inForce} is installed, and npm has nothing newer (${newest})`);
    return 0;
  }
  // Only the new version knows what it has to register.
  if (version !== newest) return runUpgradeOf(newest, env);
  const installed = installProgram(env);
  if (installed) printStdout(describeInstalled(installed));
  registerAgain(env);
  return 0;
}

function readNewestVersion(env: NodeJS.ProcessEnv): string {
  const { stdout } = runNpm(['view', 'cc-langfuse', 'version', '--json'], env, 'pipe');
  const answer = parseJson(stdout);
  if (typeof answer === 'string' && /^\d+\.\d+\.\d+[\w.-]*$/.test(answer)) return answer;
  const error = isRecord(answer) && isRecord(answer.error) ? answer.error : {};
  throw new Error(`npm does not say which version is the newest (${error.code ?? 'no answer'}); nothing was changed`);
}

function runUpgradeOf(newest: string, env: NodeJS.ProcessEnv): number {
  const start = ['exec', '--yes', `--package=cc-langfuse@${newest}`, '--', 'cc-langfuse', 'upgrade'];
  return runNpm(start, env, 'inherit').status ?? 1;
}

/** In the home directory, since a project could name a registry of its own. */
function runNpm(args: readonly string[], env: NodeJS.ProcessEnv, output: 'pipe' | 'inherit') {
  const ended = spawnSync('npm', args, {
    cwd: homedir(),
    env,
    encoding: 'utf8',
    stdio: ['ignore', output, output],
    ...(output === 'pipe' && { timeout: NPM_WAIT_MS }),
    // There it is a script of the shell. No argument needs quotes.
    shell: process.platform === 'win32',
  });
  if (ended.error)
    throw new Error(`npm cannot be run (${(ended.error as NodeJS.ErrnoException).code}); nothing was changed`);
  return ended;
}

/** The user's hooks, as this version registers them. */
function registerAgain(env: NodeJS.ProcessEnv): void {
  const path = settingsPath('user', env, '');
  const commandFor = buildAbsoluteCommands(programInForce(env), env);
  const change = planChange(path, (text) =>
    hasOwnHooks(parseClaudeSettings(text)) ? addToSettings(text, commandFor, {}) : text,
  );
  if (change.before === undefined || change.before === change.after) return;
  writeChange(change, { keepsBackup: false });
  printStdout(`registered the hooks of ${version} in ${path}`);
}
