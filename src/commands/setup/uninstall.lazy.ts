import { parseCommandLine, UsageError } from '../../cli/command-line.js';
import { toOneLine } from '../../cli/format.js';
import { canAsk, confirm } from '../../cli/questions.js';
import { quoteForShell } from '../../cli/terminal.js';
import { stateFolder } from '../../config/claude-folder.js';
import { findOwnHooks, findOwnPlugins } from '../../config/claude-hooks.js';
import {
  envBlock,
  readSettingsAt,
  readSettingsFiles,
  type SettingsFile,
  settingsPath,
} from '../../config/claude-settings.js';
import { hasExporterWithSameKeys } from '../../config/other-exporters.js';
import { isSetting } from '../../config/settings.js';
import { removedFrom } from './settings-change.js';
import { changeOf, write } from './settings-writer.js';
import { SETUP_OPTIONS, setupRequest } from './setup-request.js';
import { shownChange } from './shown-change.js';

const HELP = `usage: cc-langfuse uninstall [options]

Takes the hooks out of Claude Code's settings, and our keys and settings out of
their env block. All else stays as it is, and a copy of it is put beside it.

  --scope <scope>       user: ~/.claude/settings.json (the default)
                        local: .claude/settings.local.json
                        project: .claude/settings.json
  --dry-run             show what would change, and change nothing
  --yes                 ask nothing
  --help

Exit code: 0, 1 where something failed, 2 where it could not be asked so, 130
where it was stopped.
`;

/** Takes out what install put in; gives the exit code. */
export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const { values, positionals } = parseCommandLine(args, SETUP_OPTIONS, HELP);
  const { scope, isDryRun, isForScripts } = setupRequest('uninstall', values, positionals);
  const path = settingsPath(scope, env, process.cwd());
  const variables = Object.keys(envBlock(readSettingsAt(path))).filter(isSetting);
  const sharing = readSettingsFiles(env, process.cwd()).find(
    ({ content }) => content.kind === 'settings' && hasExporterWithSameKeys(content.settings),
  );
  const taken = sharing ? [] : variables;
  const change = changeOf(path, (text) => removedFrom(text, taken));
  const isChange = change.before !== undefined && change.before !== change.after;
  if (isDryRun || (isChange && !isForScripts && canAsk())) process.stdout.write(shownChange(change));
  if (isDryRun) return 0;
  if (isChange && !isForScripts) {
    if (!canAsk()) throw new UsageError('there is no terminal to ask in: give --yes');
    if (!(await confirm('Take it out?'))) {
      process.stdout.write('nothing was changed\n');
      return 0;
    }
  }
  const backup = isChange ? write(change) : undefined;
  const lines = [
    isChange ? `${path} starts cc-langfuse no more` : `${path} has nothing of cc-langfuse; nothing was changed`,
    ...(backup === undefined
      ? []
      : [
          `as it was before${taken.some((variable) => variable.endsWith('SECRET_KEY')) ? ', keys included' : ''}: ${backup}`,
        ]),
    ...(sharing && variables.length > 0 ? [`its keys stay: another exporter in ${sharing.path} may use them`] : []),
    ...elsewhere(readSettingsFiles(env, process.cwd())),
    `State and log stay; to remove them: rm -r ${quoteForShell(`${stateFolder(env)}/cc-langfuse_`)}*`,
  ];
  process.stdout.write(`${lines.map(toOneLine).join('\n')}\n`);
  return 0;
}

/** Where it is registered still. */
function elsewhere(files: readonly SettingsFile[]): string[] {
  return files.flatMap(({ path, scope, content }) => {
    if (content.kind !== 'settings') return [];
    const plugins = findOwnPlugins(content.settings).map(
      (plugin) => `still on in ${path}: claude plugin disable ${plugin}`,
    );
    const remedy =
      scope === 'managed' ? 'whoever manages it has to take it out' : `cc-langfuse uninstall --scope ${scope}`;
    return findOwnHooks(content.settings).length > 0 ? [`still registered in ${path}: ${remedy}`, ...plugins] : plugins;
  });
}
