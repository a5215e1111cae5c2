import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute } from 'node:path';
import { attempt } from '../shared/attempt.js';
import { isRecord } from '../shared/json.js';
import { type ClaudeSettings, listEnabledPlugins } from './claude-settings.js';
import { HOOK_EVENTS } from './platform.js';
import type { PluginOptions } from './plugin-options.js';

/** The events that start this program, and the seconds that each hook may take. */
export const HOOK_SECONDS = listSeconds('install');

/** The event for turns that are to be seen while they run. Its hook starts a process in the background, and nobody waits for that. */
export const LIVE_HOOK_SECONDS = listSeconds('install --live');

/** The event after which the terminal may say that a turn that runs has passed a limit. */
export const BUDGET_HOOK_SECONDS = listSeconds('install --live with a budget');

/** The events of an installation with these variables. On Windows each hook starts Node, which is too slow for every tool call. */
export function hookSeconds({ CC_LANGFUSE_LIVE, CC_LANGFUSE_BUDGET }: NodeJS.ProcessEnv): typeof HOOK_SECONDS {
  if (CC_LANGFUSE_LIVE !== 'true') return HOOK_SECONDS;
  const isWatched = Boolean(CC_LANGFUSE_BUDGET?.trim()) && process.platform !== 'win32';
  return { ...HOOK_SECONDS, ...LIVE_HOOK_SECONDS, ...(isWatched && BUDGET_HOOK_SECONDS) };
}

function listSeconds(by: string): { readonly [event: string]: number } {
  const events = Object.entries(HOOK_EVENTS).filter(([, { registeredBy }]) => registeredBy === by);
  return Object.fromEntries(events.map(([event, { seconds }]) => [event, seconds]));
}

/** How settings start a program: as a shell command or, with arguments, without a shell. */
export interface HookCommand {
  readonly command: string;
  readonly args?: readonly string[];
}

/** Needs the launcher on the PATH. With `exec`, because Claude Code takes longer to stop a program behind a shell. */
export function portableCommand(event: string): HookCommand {
  return { command: `exec cc-langfuse-hook ${event}` };
}

/** A command that settings register for an event. */
export interface CommandHook {
  readonly event: string;
  /** Where the hook is within the settings. */
  readonly path: readonly (string | number)[];
  readonly command: string;
  /** The program and its arguments, without quotes. */
  readonly words: readonly string[];
  /** In seconds. */
  readonly timeout: number | undefined;
}

/** The command hooks of settings, in the order of the file; anything of another shape is skipped. */
export function findCommandHooks({ hooks }: ClaudeSettings): CommandHook[] {
  if (!isRecord(hooks)) return [];
  return Object.entries(hooks).flatMap(([event, groups]) =>
    listItems(groups).flatMap(([group, place]) =>
      listItems(isRecord(group) ? group.hooks : undefined).flatMap(([hook, index]) =>
        parseCommandHook(hook, event, ['hooks', event, place, 'hooks', index]),
      ),
    ),
  );
}

function parseCommandHook(hook: unknown, event: string, path: CommandHook['path']): CommandHook[] {
  if (!isRecord(hook) || typeof hook.command !== 'string') return [];
  const args = Array.isArray(hook.args) ? hook.args.map(String) : [];
  const timeout = typeof hook.timeout === 'number' ? hook.timeout : undefined;
  return [{ event, path, command: hook.command, words: [...splitWords(hook.command), ...args], timeout }];
}

function listItems(list: unknown): [unknown, number][] {
  return Array.isArray(list) ? list.map((item, index) => [item, index]) : [];
}

/** The words of a command line. Between quotes a backslash that escapes nothing stays: on Windows it is part of a path. */
function splitWords(command: string): string[] {
  const words = command.match(/(?:"(?:\\.|[^"\\])*"|'[^']*'|[^\s"';&|()])+/gs) ?? [];
  return words.map((word) =>
    word.replace(/"((?:\\.|[^"\\])*)"|'([^']*)'/gs, (_, double?: string, single?: string) =>
      double === undefined ? (single ?? '') : double.replace(/\\(["$`\\])/g, '$1'),
    ),
  );
}

/** The hooks that start this program, however they are written. */
export function findOwnHooks(settings: ClaudeSettings): CommandHook[] {
  return findCommandHooks(settings).filter(isOwnHook);
}

/** Whether a hook starts this program: by name, by npx, or by the path of its file. */
export function isOwnHook(hook: CommandHook): boolean {
  return findOwnStart(hook) !== undefined;
}

/** How a hook starts this program. */
export interface OwnStart {
  /** Whether the launcher is in front, which starts Node only if somebody has to wait for it. */
  readonly hasLauncher: boolean;
  /** The launcher or the program, as the command names it. */
  readonly named: string;
  /** The words before and after that, without the word that says what to do. */
  readonly before: readonly string[];
  readonly after: readonly string[];
}

const PROGRAM_NAME = /^cc-langfuse(?:@[^/\\]*)?(?:\.cmd|\.ps1|\.exe)?$/;
const LAUNCHER_NAME = /^cc-langfuse-hook(?:\.cmd|\.ps1|\.exe)?$/;

export function findOwnStart({ command, words }: CommandHook): OwnStart | undefined {
  const starts = words.flatMap((named, place): OwnStart[] => {
    const next = words[place + 1] ?? '';
    const hasLauncher = Object.hasOwn({ ...HOOK_SECONDS, ...LIVE_HOOK_SECONDS, ...BUDGET_HOOK_SECONDS }, next);
    // A URL: the original cc-langfuse was run from its repository.
    if (!(hasLauncher || next === 'hook') || /^[a-z+]{2,}:/.test(named)) return [];
    const file = named.split(/[/\\]/).at(-1) ?? '';
    const isNamed = (hasLauncher ? LAUNCHER_NAME : PROGRAM_NAME).test(file);
    const isFile = file === (hasLauncher ? 'hook.sh' : 'cli.cjs') && (MARK.test(command) || isProgram(named));
    return isNamed || isFile
      ? [{ hasLauncher, named, before: words.slice(0, place), after: words.slice(place + 2) }]
      : [];
  });
  return starts[0];
}

/** The comment that install adds to a command whose path does not name cc-langfuse. */
const MARK = /#.*\bcc-langfuse\b/;
/** What every version of the program, or of the launcher, contains. */
const CONTENT = /usage: cc-langfuse hook|cc-langfuse_sessions/;
const LARGEST_PROGRAM_BYTES = 1_000_000;

/** If the file cannot be read, because it is gone or only a shell can find it, its path has to name the program. */
function isProgram(word: string): boolean {
  const path = expandHome(word);
  const status = attempt(() => statSync(path));
  // Which directory a hook runs in is not known. Reading a FIFO would block.
  const isReadable = isAbsolute(path) && status?.isFile() && status.size < LARGEST_PROGRAM_BYTES;
  const text = isReadable ? attempt(() => readFileSync(path, 'utf8')) : undefined;
  return (text === undefined ? /\bcc-langfuse\b/ : CONTENT).test(text ?? path);
}

/** Replaces the home directory at the beginning of a path as a shell would. */
export function expandHome(path: string): string {
  return path.replace(/^(?:~|\$HOME|\$\{HOME\})(?=[/\\])/, homedir());
}

/** This program's own plugins that settings enable: each registers every hook. */
export function findOwnPlugins(settings: ClaudeSettings): string[] {
  return listEnabledPlugins(settings).filter((plugin) => plugin.startsWith('cc-langfuse@'));
}

/** What the user entered for a plugin, under the names that its hooks get. Secrets are missing: Claude Code keeps them elsewhere. */
export function readPluginOptions({ pluginConfigs }: ClaudeSettings, plugin: string): PluginOptions {
  const config = isRecord(pluginConfigs) ? pluginConfigs[plugin] : undefined;
  const options = isRecord(config) && isRecord(config.options) ? config.options : {};
  return Object.fromEntries(Object.entries(options).map(([option, value]) => [option.toUpperCase(), String(value)]));
}
