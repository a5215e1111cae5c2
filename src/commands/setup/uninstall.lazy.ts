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
import { planChange, showChange, writeChange } from './settings-file.js';

export const HELP = `usage: cc-langfuse uninstall [options]

Removes the hooks from Claude Code's settings, and the keys and settings of
cc-langfuse from their env block. The rest of the file stays as it is, and
uninstall keeps a backup next to it.

  --scope <scope>       user: ~/.claude/settings.json (the default)
                        local: .claude/settings.local.json
                        project: .claude/settings.json
  --dry-run             show what would change, and change nothing
  --yes                 ask nothing
  --help

Exit code: 0; 1 if something failed; 2 for a usage error; 130 if you stopped it.
`;

export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const { values, positionals } = parseCommandLine(args, SETUP_OPTIONS);
  const { scope, isDryRun, assumeYes } = parseSetupOptions('uninstall', values, positionals);
  const path = settingsPath(scope, env, process.cwd());
  const variables = Object.keys(envBlock(readSettingsAt(path))).filter(isSetting);
  const sharing = readSettingsFiles(env, process.cwd()).find(
    ({ content }) => content.kind === 'settings' && hasExporterWithSameKeys(content.settings),
  );
  const removed = sharing ? [] : variables;
  const change = planChange(path, (text) => removeFromSettings(text, removed));
  const isChange = change.before !== undefined && change.before !== change.after;
  const mustAsk = isChange && !isDryRun && !assumeYes;
  if (isDryRun || (mustAsk && canAsk())) printStdout(showChange(change));
  if (isDryRun) return 0;
  if (mustAsk && !canAsk()) throw new UsageError('there is no terminal to ask in: use --yes');
  if (mustAsk && !(await confirm('Remove it?'))) {
    printStdout('nothing was changed');
    return 0;
  }
  const backup = isChange ? writeChange(change) : undefined;
  const hasKeys = removed.some((variable) => variable.endsWith('SECRET_KEY'));
  const print = (line: string) => printStdout(toOneLine(line));
  print(isChange ? `removed cc-langfuse from ${path}` : `${path} contains nothing of cc-langfuse; nothing was changed`);
  if (backup !== undefined) print(`backup${hasKeys ? ', which contains the keys' : ''}: ${backup}`);
  if (sharing && variables.length > 0)
    print(`the keys are still in it, because another exporter in ${sharing.path} may use them`);
  readSettingsFiles(env, process.cwd()).flatMap(describeRest).map(print);
  print(`State and log are kept. To remove them: rm -r ${quoteForShell(`${stateFolder(env)}/cc-langfuse_`)}*`);
  return 0;
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
