import { spawnSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseOptions, UsageError } from '../../cli/command-line.js';
import { formatDuration } from '../../cli/format.js';
import { ownCommand } from '../../cli/own-command.js';
import { printStdout } from '../../cli/terminal.js';
import { parseClaudeSettings } from '../../config/claude-settings.js';
import { findVersionInForce, programInForce } from '../../config/installed-program.js';
import { settingsPath } from '../../config/settings-paths.js';
import { isRecord, parseJson } from '../../shared/json.js';
import { readJsonFile } from '../../shared/read-file.js';
import { isOlder, version } from '../../shared/version.js';
import { planManagedUpgrade, writeManagedUpgrade } from './managed.js';
import { describeInstalled, installProgram } from './program-copy.js';
import { buildAbsoluteCommands, findGlobalPrefix } from './program-path.js';
import { addToSettings, hasOwnHooks } from './settings-change.js';
import { planChange, writeChange } from './settings-file.js';

export const HELP = `usage: cc-langfuse upgrade [options]

Installs the newest version that npm has, in place of the installed one. Hooks
that are running end with the version that they began with. Keys and settings
stay as they are. npm is asked with your own npm settings, for at most 9 s.

  --scope <scope>       user: the copy that install made for you (the default)
                        managed: the package that npm installed for everyone,
                        and the hooks in Claude Code's managed settings; as an
                        administrator
  --print               with --scope managed: only print these settings as this
                        version registers its hooks, and change nothing
  --help

Exit code: 0; 1 if something failed; 2 for a usage error.
`;

const NPM_WAIT_MS = 9_000;
const UNCHANGED = 'nothing was changed';

const OPTIONS = { scope: { type: 'string' }, print: { type: 'boolean' } } as const;

export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const { scope = 'user', print: isPrinted = false } = parseOptions('upgrade', args, OPTIONS);
  if (scope !== 'user' && scope !== 'managed') throw new UsageError(`--scope ${scope}: expected user, managed`);
  if (scope === 'managed') return upgradeManaged(isPrinted, env);
  if (isPrinted) throw new UsageError('--print needs --scope managed');
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

/** The package is not copied: npm replaces it where it is, so that only an administrator can. */
function upgradeManaged(isPrinted: boolean, env: NodeJS.ProcessEnv): number {
  // Fails before anything is installed if there is nothing to register.
  const change = planManagedUpgrade(isPrinted, env);
  if (isPrinted) {
    printStdout(change.after.trimEnd());
    return 0;
  }
  const newest = readNewestVersion(env);
  if (isOlder(version, newest)) return installManagedVersion(newest, env);
  printStdout(`this is ${version}, and npm has nothing newer (${newest})`);
  writeManagedUpgrade(change);
  return 0;
}

function installManagedVersion(newest: string, env: NodeJS.ProcessEnv): number {
  const program = realpathSync(process.argv[1] ?? '');
  const prefix = findGlobalPrefix(program);
  if (prefix === undefined)
    throw new Error(`npm has not installed ${program} for everyone; install ${newest} as it was installed`);
  // A path may have spaces, so it is no argument.
  const withPrefix = { ...env, npm_config_prefix: prefix };
  runNpm(['install', '--global', '--ignore-scripts', `cc-langfuse@${newest}`], withPrefix, 'inherit');
  if (readPackageVersion(program) !== newest)
    throw new Error(`npm did not install ${newest} in ${prefix}; ${version} stays; run it as an administrator`);
  printStdout(`installed ${newest} in ${prefix}, in place of ${version}`);
  // Only the new version knows what it has to register.
  const again = [program, 'upgrade', '--scope', 'managed'];
  return spawnSync(process.execPath, again, { env, stdio: ['ignore', 'inherit', 'inherit'] }).status ?? 1;
}

function readPackageVersion(program: string): unknown {
  const description = readJsonFile(join(dirname(program), '..', 'package.json'));
  return isRecord(description) ? description.version : undefined;
}

function readNewestVersion(env: NodeJS.ProcessEnv): string {
  const { stdout } = runNpm(['view', 'cc-langfuse', 'version', '--json', '--fetch-retries=0'], env, 'pipe');
  const answer = parseJson(stdout);
  if (typeof answer === 'string' && /^\d+\.\d+\.\d+[\w.-]*$/.test(answer)) return answer;
  const error = isRecord(answer) && isRecord(answer.error) ? answer.error : {};
  throw new Error(`npm does not say which version is the newest (${error.code ?? 'no answer'}); ${UNCHANGED}`);
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
    ...(output === 'pipe' && { timeout: NPM_WAIT_MS, killSignal: 'SIGKILL' }),
    // There it is a script of the shell. No argument needs quotes.
    shell: process.platform === 'win32',
  });
  const { code } = (ended.error ?? {}) as NodeJS.ErrnoException;
  if (code === 'ETIMEDOUT')
    throw new Error(
      `npm has not answered for ${formatDuration(NPM_WAIT_MS)}; ${UNCHANGED}; try again when its registry can be reached`,
    );
  if (ended.error) throw new Error(`npm cannot be run (${code}); ${UNCHANGED}`);
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
