import { existsSync, lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseOptions } from '../../cli/command-line.js';
import { toOneLine } from '../../cli/format.js';
import { ownCommand } from '../../cli/own-command.js';
import { canAsk, confirm, noTerminal } from '../../cli/questions.js';
import { printStdout, quoteForShell } from '../../cli/terminal.js';
import { stateFolder } from '../../config/claude-folder.js';
import { findOwnHooks, findOwnPlugins } from '../../config/claude-hooks.js';
import { envBlock, readSettingsAt, readSettingsFiles, type SettingsFile } from '../../config/claude-settings.js';
import { listInstalledPaths } from '../../config/installed-destinations.js';
import { programsFolder } from '../../config/installed-program.js';
import { hasExporterWithSameKeys } from '../../config/other-exporters.js';
import { isSetting } from '../../config/settings.js';
import { listSettingsPaths, settingsPath } from '../../config/settings-paths.js';
import { projectsFile } from '../../langfuse/project-page.js';
import { attempt } from '../../shared/attempt.js';
import { parseSetupOptions, SETUP_OPTIONS } from './options.js';
import { listInstalled } from './program-copy.js';
import { undoInstallation } from './settings-change.js';
import { findBackup, planChange, type SettingsChange, showChange, writeChange } from './settings-file.js';

export const HELP = `usage: cc-langfuse uninstall [options]

Removes the hooks from Claude Code's settings, and the keys and settings of
cc-langfuse from their env block. Nothing else in the file is changed. It also
removes the backup that install made, and the installed program, unless other
settings register it.

  --scope <scope>       user: ~/.claude/settings.json (the default)
                        local: .claude/settings.local.json
                        project: .claude/settings.json
                        managed: what install --scope managed wrote for everyone
                        on this machine; as an administrator
  --purge               remove state, log and every backup, too
  --dry-run             show what would change, and change nothing
  --yes                 ask nothing
  --help

Exit code: 0; 1 if something failed; 2 for a usage error; 130 if you stopped it.
`;

const OPTIONS = { ...SETUP_OPTIONS, purge: { type: 'boolean' } } as const;

export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const values = parseOptions('uninstall', args, OPTIONS);
  const { scope, isDryRun, assumeYes } = parseSetupOptions(values);
  const plan = planRemoval(settingsPath(scope, env, process.cwd()), values.purge ?? false, env);
  const { change, isChange, removed } = plan;
  const mustAsk = (isChange || removed.length > 0) && !isDryRun && !assumeYes;
  if (isDryRun || (mustAsk && canAsk())) {
    printStdout(showChange(change));
    for (const path of removed) print(`${path} would be removed`);
  }
  if (isDryRun) return 0;
  if (mustAsk && !canAsk()) throw noTerminal('use --yes');
  if (mustAsk && !(await confirm('Remove it?'))) {
    printStdout('nothing was changed');
    return 0;
  }
  if (isChange && !removed.includes(change.path)) writeChange(change, { keepsBackup: false });
  print(
    isChange
      ? `removed cc-langfuse from ${change.path}`
      : `${change.path} contains nothing of cc-langfuse; nothing was changed`,
  );
  for (const path of removed) {
    rmSync(path, { recursive: true, force: true });
    print(`removed ${path}`);
  }
  for (const folder of [programsFolder(env), stateFolder(env)]) removeIfEmpty(folder);
  for (const line of plan.kept) print(line);
  readSettingsFiles(env, process.cwd()).flatMap(describeRest).map(print);
  if (!values.purge)
    print(`State and log are kept. To remove them: rm -r ${quoteForShell(`${stateFolder(env)}/cc-langfuse_`)}*`);
  return 0;
}

interface Removal {
  readonly change: SettingsChange;
  /** Whether the settings contain anything of an installation. */
  readonly isChange: boolean;
  /** Files and folders to remove. */
  readonly removed: readonly string[];
  /** Says what is not removed, and why. */
  readonly kept: readonly string[];
}

function planRemoval(path: string, isPurge: boolean, env: NodeJS.ProcessEnv): Removal {
  const block = envBlock(readSettingsAt(path));
  // What is OpenTelemetry's is for Claude Code's own telemetry, too.
  const variables = Object.keys(block).filter((name) => isSetting(name) && !name.startsWith('OTEL_'));
  const sharing = readSettingsFiles(env, process.cwd()).find(
    ({ content }) => content.kind === 'settings' && hasExporterWithSameKeys(content.settings),
  );
  const backup = findBackup(path);
  const before = readBackup(backup);
  const change = planChange(path, (text) => undoInstallation(text, sharing ? [] : variables, before));
  const isChange = change.before !== undefined && change.before !== change.after;
  const reason = isChange ? findReasonToKeep(backup, block) : 'is left over from an earlier installation';
  const keepsBackup = !isPurge && reason !== undefined;
  const programs = programsFolder(env);
  const users = findOtherUsers(path, env);
  return {
    change,
    isChange,
    removed: [
      // Without a backup there was no file.
      ...(isChange && backup === undefined && isEmptyFile(change) ? [path] : []),
      ...(users.length > 0 ? [] : listInstalled(programs)),
      ...(backup === undefined || keepsBackup ? [] : [backup]),
      ...(isPurge ? listTraces(path, env) : listProjects(env)),
    ],
    kept: [
      ...(backup !== undefined && keepsBackup
        ? [`kept the backup ${backup}, which ${reason}. To remove it: rm ${quoteForShell(backup)}`]
        : []),
      ...(sharing && variables.length > 0
        ? [`the keys are still in it, because another exporter in ${sharing.path} may use them`]
        : []),
      ...(users.length > 0 && listInstalled(programs).length > 0
        ? [`kept the program in ${programs}, which ${users.join(' and ')} still starts`]
        : []),
    ],
  };
}

function print(line: string): void {
  printStdout(toOneLine(line));
}

/** The settings as they were before the first installation; undefined if there were none, or the backup is not of an installation. */
function readBackup(backup: string | undefined): string | undefined {
  const content = backup === undefined ? undefined : readSettingsAt(backup);
  return content?.kind === 'settings' ? content.text.replace(/^\uFEFF/, '') : undefined;
}

/** Whether only an empty object is left of a file that is no link. */
function isEmptyFile({ path, after }: SettingsChange): boolean {
  return /^\s*\{\s*\}\s*$/.test(after) && !lstatSync(path).isSymbolicLink();
}

/** The other settings files that start the installed program, as far as they are known. */
function findOtherUsers(path: string, env: NodeJS.ProcessEnv): string[] {
  const paths = [
    ...listSettingsPaths(env, process.cwd()).map((file) => file.path),
    ...listInstalledPaths(stateFolder(env)),
  ];
  return [...new Set(paths)].filter((each) => {
    const content = readSettingsAt(each);
    const hooks = content.kind === 'settings' ? findOwnHooks(content.settings) : [];
    return each !== path && hooks.some(({ words }) => words.some((word) => word.startsWith(programsFolder(env))));
  });
}

/** What `install` has written besides. */
function listProjects(env: NodeJS.ProcessEnv): string[] {
  return [projectsFile(stateFolder(env))].filter((path) => existsSync(path));
}

/** State, log and locks, and every known backup, with the keys that are in them. */
function listTraces(path: string, env: NodeJS.ProcessEnv): string[] {
  const state = stateFolder(env);
  const names = (attempt(() => readdirSync(state)) ?? []).filter((name) => name.startsWith('cc-langfuse_'));
  const backups = [...listSettingsPaths(env, process.cwd()).map((file) => file.path), ...listInstalledPaths(state)]
    .filter((each) => each !== path)
    .flatMap((each) => findBackup(each) ?? []);
  return [...names.map((name) => join(state, name)), ...new Set(backups)];
}

function removeIfEmpty(folder: string): void {
  attempt(() => rmdirSync(folder));
}

/** Says why a backup is not removed with the installation; undefined if it is. */
function findReasonToKeep(backup: string | undefined, block: { readonly [name: string]: string }): string | undefined {
  if (backup === undefined) return undefined;
  const content = readSettingsAt(backup);
  if (content.kind !== 'settings') return 'install did not make';
  const hasOtherKey = Object.entries(envBlock(content)).some(
    ([name, value]) => isSetting(name) && name.endsWith('SECRET_KEY') && value !== block[name],
  );
  return hasOtherKey ? 'has a secret key that install replaced' : undefined;
}

/** What still starts this program, and how to remove it. */
function describeRest({ path, scope, content }: SettingsFile): string[] {
  if (content.kind !== 'settings') return [];
  const fix =
    scope === 'managed'
      ? 'ask whoever manages this machine to remove it'
      : `${ownCommand()} uninstall --scope ${scope}`;
  return [
    ...(findOwnHooks(content.settings).length > 0 ? [`still registered in ${path}: ${fix}`] : []),
    ...findOwnPlugins(content.settings).map((plugin) => `still enabled in ${path}: claude plugin disable ${plugin}`),
  ];
}
