import { rmSync } from 'node:fs';
import { parseCommandLine, UsageError } from '../../cli/command-line.js';
import { toOneLine } from '../../cli/format.js';
import { canAsk, confirm } from '../../cli/questions.js';
import { printStdout, quoteForShell } from '../../cli/terminal.js';
import { stateFolder } from '../../config/claude-folder.js';
import { findOwnHooks, findOwnPlugins } from '../../config/claude-hooks.js';
import { envBlock, readSettingsAt, readSettingsFiles, type SettingsFile } from '../../config/claude-settings.js';
import { hasExporterWithSameKeys } from '../../config/other-exporters.js';
import { isSetting } from '../../config/settings.js';
import { settingsPath } from '../../config/settings-paths.js';
import { parseSetupOptions, SETUP_OPTIONS } from './options.js';
import { removeFromSettings } from './settings-change.js';
import { findBackup, planChange, showChange, writeChange } from './settings-file.js';

export const HELP = `usage: cc-langfuse uninstall [options]

Removes the hooks from Claude Code's settings, and the keys and settings of
cc-langfuse from their env block. The rest of the file stays as it is. The
backup that install made is removed, too.

  --scope <scope>       user: ~/.claude/settings.json (the default)
                        local: .claude/settings.local.json
                        project: .claude/settings.json
                        managed: what install --scope managed wrote for everyone
                        on this machine; as an administrator
  --dry-run             show what would change, and change nothing
  --yes                 ask nothing
  --help

Exit code: 0; 1 if something failed; 2 for a usage error; 130 if you stopped it.
`;

export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const { values, positionals } = parseCommandLine(args, SETUP_OPTIONS);
  const { scope, isDryRun, assumeYes } = parseSetupOptions('uninstall', values, positionals);
  const path = settingsPath(scope, env, process.cwd());
  const block = envBlock(readSettingsAt(path));
  // What is OpenTelemetry's is for Claude Code's own telemetry, too.
  const variables = Object.keys(block).filter((name) => isSetting(name) && !name.startsWith('OTEL_'));
  const sharing = readSettingsFiles(env, process.cwd()).find(
    ({ content }) => content.kind === 'settings' && hasExporterWithSameKeys(content.settings),
  );
  const removed = sharing ? [] : variables;
  const change = planChange(path, (text) => removeFromSettings(text, removed));
  const isChange = change.before !== undefined && change.before !== change.after;
  const mustAsk = isChange && !isDryRun && !assumeYes;
  const backup = findBackup(path);
  const kept = backup && (isChange ? findReasonToKeep(backup, block) : 'is left of an earlier installation');
  const removesBackup = backup !== undefined && kept === undefined;
  if (isDryRun || (mustAsk && canAsk())) {
    printStdout(showChange(change));
    if (removesBackup) printStdout(`${backup} would be removed`);
  }
  if (isDryRun) return 0;
  if (mustAsk && !canAsk()) throw new UsageError('there is no terminal to ask in: use --yes');
  if (mustAsk && !(await confirm('Remove it?'))) {
    printStdout('nothing was changed');
    return 0;
  }
  if (isChange) writeChange(change, { keepsBackup: false });
  // Nobody else needs the file that install made for this program alone.
  if (isChange && scope === 'managed' && /^\s*\{\s*\}\s*$/.test(change.after)) rmSync(path);
  const print = (line: string) => printStdout(toOneLine(line));
  print(isChange ? `removed cc-langfuse from ${path}` : `${path} contains nothing of cc-langfuse; nothing was changed`);
  if (removesBackup) {
    rmSync(backup);
    print(`removed its backup ${backup}`);
  } else if (backup !== undefined)
    print(`kept the backup ${backup}, which ${kept}. To remove it: rm ${quoteForShell(backup)}`);
  if (sharing && variables.length > 0)
    print(`the keys are still in it, because another exporter in ${sharing.path} may use them`);
  readSettingsFiles(env, process.cwd()).flatMap(describeRest).map(print);
  print(`State and log are kept. To remove them: rm -r ${quoteForShell(`${stateFolder(env)}/cc-langfuse_`)}*`);
  return 0;
}

/** Says why a backup is not removed with the installation; undefined if it is. */
function findReasonToKeep(backup: string, block: { readonly [name: string]: string }): string | undefined {
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
    scope === 'managed' ? 'ask whoever manages this machine to remove it' : `cc-langfuse uninstall --scope ${scope}`;
  return [
    ...(findOwnHooks(content.settings).length > 0 ? [`still registered in ${path}: ${fix}`] : []),
    ...findOwnPlugins(content.settings).map((plugin) => `still enabled in ${path}: claude plugin disable ${plugin}`),
  ];
}
