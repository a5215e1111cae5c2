import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import { ownCommand } from '../../../cli/own-command.js';
import { moveAsideCommand, quoteForShell } from '../../../cli/terminal.js';
import {
  BUDGET_HOOK_SECONDS,
  type CommandHook,
  expandHome,
  findOwnHooks,
  findOwnPlugins,
  findOwnStart,
  HOOK_SECONDS,
  LIVE_HOOK_SECONDS,
  type OwnStart,
} from '../../../config/claude-hooks.js';
import { type AcceptedSettings, acceptedSettings, type SettingsFile } from '../../../config/claude-settings.js';
import { findInstalledVersion } from '../../../config/installed-program.js';
import { findOtherExporters } from '../../../config/other-exporters.js';
import { attempt } from '../../../shared/attempt.js';
import { isOlder, version } from '../../../shared/version.js';
import { about, type Finding, NOT_INSTALLED } from '../finding.js';
import { showValue } from '../masking.js';
import type { SettingsInForce } from './settings.js';

const EVENTS = Object.keys(HOOK_SECONDS);
/** It starts each Node that it finds, until one is new enough. */
const LAUNCHER_WAIT_MS = 10_000;
const WINDOWS_ENDINGS = process.platform === 'win32' ? ['.cmd', '.exe'] : [];

/** Which hooks the settings register. */
export interface HookSetup {
  readonly files: readonly SettingsFile[];
  /** Of these files, the settings that Claude Code accepts. */
  readonly accepted: readonly AcceptedSettings[];
  readonly hooks: readonly RegisteredHook[];
  /** This program's plugins, with the file that enables each: a plugin registers every hook. */
  readonly plugins: readonly { readonly name: string; readonly path: string }[];
}

/** A hook that starts this program, and the file that registers it. */
type RegisteredHook = CommandHook & { readonly file: AcceptedSettings };

export function readHookSetup(files: readonly SettingsFile[]): HookSetup {
  const accepted = acceptedSettings(files);
  return {
    files,
    accepted,
    hooks: accepted.flatMap((file) => findOwnHooks(file.settings).map((hook) => ({ ...hook, file }))),
    plugins: accepted.flatMap(({ path, settings }) => findOwnPlugins(settings).map((name) => ({ name, path }))),
  };
}

export const HOOK_CHECKS = [
  checkSettingsFiles,
  checkHooksOff,
  checkRegistered,
  checkLive,
  checkBudget,
  checkHookPrograms,
  checkTimeouts,
  checkRepeated,
  checkOtherExporters,
];

/** What stops the hooks or sends turns twice. `install` warns of the same. */
export function checkHookConflicts(files: readonly SettingsFile[]): Finding[] {
  const setup = readHookSetup(files);
  return [checkSettingsFiles, checkHooksOff, checkRepeated, checkOtherExporters].flatMap((check) => [...check(setup)]);
}

function* checkSettingsFiles({ files }: HookSetup): Generator<Finding> {
  for (const { path, scope, content } of files) {
    const broken = (problem: string, fix: string) =>
      about('settings-file', { path, scope }).broken(`${path} ${problem}, so Claude Code ignores it`, fix);
    if (content.kind === 'invalid') yield broken(`is not JSON (${content.problem})`, `fix ${path}`);
    else if (content.kind === 'unreadable' || content.kind === 'no file') {
      const fix = content.kind === 'unreadable' ? `chmod u+r ${quoteForShell(path)}` : moveAsideCommand(path);
      yield broken(`cannot be read (${content.reason})`, fix);
    } else if (content.kind === 'settings' && content.problem !== undefined)
      yield broken(`has comments or trailing commas (${content.problem})`, `remove them from ${path}`);
  }
}

function checkHooksOff({ accepted, hooks }: HookSetup): Finding[] {
  const managed = accepted.filter(({ scope }) => scope === 'managed');
  const others = accepted.filter(({ scope }) => scope !== 'managed');
  const hasManagedHooks = hooks.some(({ file }) => managed.includes(file));
  const switches = [
    // Users cannot turn off managed hooks.
    { setting: 'disableAllHooks', files: hasManagedHooks ? [] : others },
    { setting: 'disableAllHooks', files: managed },
    { setting: 'allowManagedHooksOnly', files: hasManagedHooks ? [] : managed },
  ];
  return switches.flatMap(({ setting, files }) => {
    // The last file that has the setting overrides those before it.
    const deciding = files.findLast(({ settings }) => typeof settings[setting] === 'boolean');
    if (deciding?.settings[setting] !== true) return [];
    const { path } = deciding;
    return [
      about('hooks-off', { path, setting }).broken(
        `"${setting}" in ${path} stops Claude Code from starting the hooks`,
        setting === 'disableAllHooks'
          ? `remove "${setting}" from ${path}`
          : `ask whoever manages this machine to add the hooks to ${path}, or to remove that setting`,
      ),
    ];
  });
}

function checkRegistered({ hooks, plugins }: HookSetup): Finding {
  const missing = EVENTS.filter((event) => plugins.length === 0 && !hooks.some((hook) => hook.event === event));
  const places = [
    ...new Set(hooks.map(({ file }) => `${file.scope} settings (${file.path})`)),
    ...plugins.map(({ name, path }) => `plugin ${name} (${path})`),
  ];
  const registered = about('hooks', { missing, places });
  const [first] = hooks;
  const fix = first ? installCommand(first.file) : `${ownCommand()} install`;
  if (missing.length === EVENTS.length)
    return registered.broken('not registered in any settings file', fix, NOT_INSTALLED);
  const message = `registered in ${places.join(', ')}`;
  if (missing.length === 0) return registered.ok(message);
  const gap = `${message}, but not for ${missing.join(', ')}`;
  return missing.includes('Stop')
    ? registered.broken(`${gap}: turns are not sent when they end`, fix)
    : registered.warning(`${gap}: some turns are sent later or not at all`, fix);
}

/** Whether the setting and the hook for turns that are seen while they run agree. */
function checkLive({ hooks, plugins, settings }: HookSetup & SettingsInForce): Finding[] {
  const own = hooks.find(({ event }) => Object.hasOwn(LIVE_HOOK_SECONDS, event));
  const live = about('live', { setting: settings.live, hook: own !== undefined || plugins.length > 0 });
  if (settings.live && !own && plugins.length === 0)
    return [
      live.warning(
        'CC_LANGFUSE_LIVE is true, but its hook is not registered: turns are sent when they end',
        `${ownCommand()} install --live`,
      ),
    ];
  if (settings.live) return [live.ok('turns are sent while they run')];
  return own
    ? [live.none('its hook is registered, but CC_LANGFUSE_LIVE is not true: turns are sent when they end')]
    : [];
}

/** When the terminal says that a limit is passed. */
function checkBudget({ hooks, plugins, settings }: HookSetup & SettingsInForce): Finding[] {
  const hook = hooks.some(({ event }) => Object.hasOwn(BUDGET_HOOK_SECONDS, event));
  const budget = about('budget', { ...settings.budget, hook });
  if (!settings.budget)
    return hook ? [budget.none('a hook after each tool is registered, but CC_LANGFUSE_BUDGET is not set')] : [];
  const passed = 'if a limit of CC_LANGFUSE_BUDGET is passed';
  if (!settings.live) return [budget.ok(`${passed}, the next event after the turn says so`)];
  if (hook) return [budget.ok(`${passed}, the turn says so while it runs`)];
  const canRegister = plugins.length === 0 && process.platform !== 'win32';
  const advice = canRegister ? `; to say so while it runs: ${ownCommand()} install --live` : '';
  return [budget.ok(`${passed}, the end of the turn says so${advice}`)];
}

/** Checks each program once, however many events it is registered for. */
function checkHookPrograms({ hooks, shell }: HookSetup & SettingsInForce): Finding[] {
  const starts = hooks.flatMap((hook) => {
    const start = findOwnStart(hook);
    return start ? [[JSON.stringify([hook.file.path, start]), { hook, start }] as const] : [];
  });
  return [...new Map(starts).values()].map(({ hook, start }) => checkHookProgram(hook, start, shell));
}

function checkHookProgram({ file, command }: RegisteredHook, start: OwnStart, shell: NodeJS.ProcessEnv): Finding {
  const { PATH: searchPath = '' } = shell;
  const { hasLauncher, named, before } = start;
  // The command may contain a key.
  const shown = showValue(command);
  const hookProgram = about('hook-program', { command: shown, path: file.path });
  const thisProgram = realpathSync(process.argv[1] ?? '');
  const isFetched = before.some((word) => /^(?:npx|pnpm|yarn|bunx)(?:\.cmd)?$/.test(basename(word)));
  const program = isFetched ? undefined : findExecutable(named, searchPath);
  const launcher = join(dirname(thisProgram), 'hook.sh');
  const node = findNode(start, launcher, shell);
  const lost = [node, program].find((executable) => executable && executable.path === undefined);
  if (lost && existsSync(expandHome(lost.named)))
    return hookProgram.broken(
      `${file.path} starts ${lost.named}, which cannot be executed`,
      `chmod +x ${quoteForShell(lost.named)}`,
    );
  if (lost)
    return hookProgram.broken(
      `${file.path} starts ${lost.named}, which does not exist`,
      fixLost(lost.named, file, thisProgram),
    );
  if (!program) return hookProgram.none(`${file.path} starts "${shown}", which finds the program itself`);
  const installed = program.path && findInstalledVersion(dirname(program.path), shell);
  if (installed && isOlder(installed, version))
    return hookProgram.warning(`${file.path} starts ${installed}, but this is ${version}`, installCommand(file));
  if (!installed && program.path !== (hasLauncher ? launcher : thisProgram))
    return hookProgram.warning(`${file.path} starts another copy, ${program.path}`, installCommand(file));
  // Windows has no shell that could run the launcher.
  if (!hasLauncher && process.platform !== 'win32')
    return hookProgram.warning(
      `${file.path} starts Node at every event, and Claude Code waits for it`,
      `${installCommand(file)} (replaces it with the launcher)`,
    );
  if (node?.isReplaced)
    return hookProgram.warning(
      `${file.path} names ${node.named}, which is gone; the launcher starts ${node.path} instead`,
      installCommand(file),
    );
  const isThis = dirname(program.path ?? '') === dirname(thisProgram);
  const isOtherNode = node && node.path !== realpathSync(process.execPath);
  return hookProgram.ok(
    `${file.path} starts ${isThis ? 'this program' : `the installed ${installed}`}${isOtherNode ? `, with ${node.path}` : ''}`,
  );
}

/** The command that puts in its place what a hook starts and is not there. */
function fixLost(named: string, file: AcceptedSettings, thisProgram: string): string {
  // A project's settings are shared by people with different paths, so the hook uses the bare name.
  const isOnPath = /^cc-langfuse(?:-hook)?$/.test(named) && file.scope !== 'user' && file.scope !== 'local';
  if (!isOnPath) return installCommand(file);
  // Neither a package runner's copy nor the installed one is a package that npm could install.
  const isPackage = ownCommand() === 'cc-langfuse';
  return `npm install --global ${isPackage ? quoteForShell(dirname(dirname(thisProgram))) : 'cc-langfuse'}`;
}

/** The Node that the command names, and the one that would be started: the launcher looks for another if that is gone. */
function findNode({ hasLauncher, before, after }: OwnStart, launcher: string, { PATH = '', HOME }: NodeJS.ProcessEnv) {
  const isNode = (word = '') => /^node(?:\.exe)?$/.test(basename(word));
  const given = hasLauncher ? after[0] : before.at(-1);
  const node = isNode(given) ? findExecutable(given ?? '', PATH) : undefined;
  if (!hasLauncher || node?.path !== undefined) return node && { ...node, isReplaced: false };
  // This program's own launcher: the registered one may come with a project that someone else wrote.
  const found = spawnSync(launcher, ['--node', node?.named ?? 'node'], {
    env: { PATH, HOME },
    encoding: 'utf8',
    timeout: LAUNCHER_WAIT_MS,
  }).stdout?.trim();
  const path = found && isAbsolute(found) ? realpathSync(found) : findExecutable('node', PATH)?.path;
  return { named: node?.named ?? 'node', path, isReplaced: node !== undefined };
}

/** Looks a command up as a shell would. Returns undefined if the name contains a variable that only the shell knows. */
function findExecutable(named: string, searchPath: string) {
  const expanded = expandHome(named);
  if (expanded.includes('$')) return undefined;
  const isPath = /[/\\]/.test(expanded);
  const inFolder = (folder: string) => ['', ...WINDOWS_ENDINGS].map((ending) => join(folder, expanded + ending));
  const candidates = isPath ? [expanded] : searchPath.split(delimiter).flatMap(inFolder);
  // Node only reads the program.
  const needed = isPath && expanded.endsWith('.cjs') ? constants.R_OK : constants.X_OK;
  const find = (candidate: string) => {
    accessSync(candidate, needed);
    return realpathSync(candidate);
  };
  return { named, path: candidates.flatMap((candidate) => attempt(() => find(candidate)) ?? [])[0] };
}

function* checkTimeouts({ hooks, settings }: HookSetup & SettingsInForce): Generator<Finding> {
  for (const { event, timeout, file } of hooks) {
    const usual = HOOK_SECONDS[event] ?? 0;
    // Without a timeout of its own a hook has 600 s, but all SessionEnd hooks together have 1.5 s.
    const seconds = timeout ?? (event === 'SessionEnd' ? 1.5 : 600);
    const needed = event === 'SessionStart' ? usual : Math.ceil(settings.timeoutMs / 1_000);
    if (usual > 0 && seconds < needed)
      yield about('hook-timeout', { event, seconds, path: file.path }).warning(
        `Claude Code stops ${event} after ${seconds} s, but a run may take ${needed} s`,
        `set "timeout": ${Math.max(usual, needed + 5)} next to its command in ${file.path}`,
      );
  }
}

/** Claude Code runs identical commands once. Of two runs the second waits for the first one's lock and finds nothing left. */
function checkRepeated({ hooks, plugins }: HookSetup): Finding[] {
  const countCommands = (event: string) =>
    new Set(hooks.filter((hook) => hook.event === event).map(({ command }) => command)).size;
  const ways = Math.max(...EVENTS.map(countCommands)) + plugins.length;
  if (ways < 2) return [];
  const paths = [...new Set([...hooks.map(({ file }) => file.path), ...plugins.map(({ path }) => path)])];
  const message = `registered in ${ways} ways (${paths.join(', ')}): each turn is still sent once, but ${ways} processes run`;
  const [fix = ''] = [
    ...plugins.map(({ name }) => `claude plugin disable ${name}`),
    ...hooks.toReversed().map(({ file }) => removeCommand(file)),
  ];
  return [about('hooks-repeated', { paths }).warning(message, fix)];
}

function* checkOtherExporters({ accepted }: HookSetup): Generator<Finding> {
  for (const { path, settings } of accepted) {
    const exporters = findOtherExporters(settings);
    for (const name of new Set(exporters.map((exporter) => exporter.name))) {
      const same = exporters.filter((exporter) => exporter.name === name);
      yield about('other-exporters', { path, places: same.map(({ place }) => place) }).warning(
        `${name} (${path}) sends the same turns, so each appears twice in Langfuse`,
        [...new Set(same.map(({ fix }) => fix))].join('; '),
      );
    }
  }
}

function installCommand({ scope, path }: AcceptedSettings): string {
  if (scope === 'managed') return `ask whoever manages this machine to fix ${path}`;
  return `${ownCommand()} install${scope === 'user' ? '' : ` --scope ${scope}`}`;
}

function removeCommand({ scope, path }: AcceptedSettings): string {
  if (scope === 'managed') return `${ownCommand()} uninstall`;
  return scope === 'user' ? `remove all but one of them from ${path}` : `${ownCommand()} uninstall --scope ${scope}`;
}
