import { accessSync, constants, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import type { CommandHook } from '../../../config/claude-hooks.js';
import { findOwnHooks, findOwnPlugins } from '../../../config/claude-hooks.js';
import type { ClaudeSettings, Scope, SettingsFile } from '../../../config/claude-settings.js';
import { findOtherExporters, type OtherExporter } from '../../../config/other-exporters.js';

/** A hook of ours as a file registers it, and what it would start. */
export interface RegisteredHook extends Pick<CommandHook, 'event' | 'command' | 'timeout'> {
  readonly file: Pick<SettingsFile, 'scope' | 'path'>;
  /** Undefined where npx, or the shell, decides which it is. */
  readonly program: Executable | undefined;
  /** Undefined where the program finds its own. */
  readonly node: Executable | undefined;
}

interface Executable {
  readonly named: string;
  /** Where it lies, links followed; undefined where it does not. */
  readonly path: string | undefined;
}

export interface HookFacts {
  readonly files: readonly SettingsFile[];
  readonly hooks: readonly RegisteredHook[];
  /** Our plugins, with the file that turns each on: they register every hook. */
  readonly plugins: readonly { readonly name: string; readonly path: string }[];
  readonly others: readonly (OtherExporter & { readonly path: string })[];
  /** What keeps hooks from being started. */
  readonly switchedOff: readonly { readonly scope: Scope; readonly path: string; readonly setting: string }[];
}

/** The settings of a file that Claude Code takes. */
interface Taken extends Pick<SettingsFile, 'scope' | 'path'> {
  readonly settings: ClaudeSettings;
}

export function hookFacts(files: readonly SettingsFile[], { PATH = '' }: NodeJS.ProcessEnv): HookFacts {
  const taken = files.flatMap(({ scope, path, content }) =>
    content.kind === 'settings' && content.isStrict ? [{ scope, path, settings: content.settings }] : [],
  );
  return {
    files,
    hooks: taken.flatMap(({ scope, path, settings }) =>
      findOwnHooks(settings).map((hook) => ({ ...hook, file: { scope, path }, ...startedBy(hook, PATH) })),
    ),
    plugins: taken.flatMap(({ path, settings }) => findOwnPlugins(settings).map((name) => ({ name, path }))),
    others: taken.flatMap(({ path, settings }) => findOtherExporters(settings).map((other) => ({ ...other, path }))),
    switchedOff: [
      ...switchIn(taken, 'disableAllHooks', ['user', 'project', 'local']),
      ...switchIn(taken, 'disableAllHooks', ['managed']),
      ...switchIn(taken, 'allowManagedHooksOnly', ['managed']),
    ],
  };
}

/** Of these files the strongest decides, which comes last. */
function switchIn(taken: readonly Taken[], setting: string, scopes: readonly Scope[]): HookFacts['switchedOff'] {
  const deciding = taken.findLast(
    ({ scope, settings }) => scopes.includes(scope) && typeof settings[setting] === 'boolean',
  );
  return deciding?.settings[setting] === true ? [{ scope: deciding.scope, path: deciding.path, setting }] : [];
}

function startedBy({ words }: CommandHook, path: string): Pick<RegisteredHook, 'program' | 'node'> {
  const place = words.indexOf('hook') - 1;
  const [program = '', before = ''] = [words[place], words[place - 1]];
  const isFetched = words.slice(0, place).some((word) => /^(?:npx|pnpm|yarn|bunx)(?:\.cmd)?$/.test(basename(word)));
  const isNode = /^node(?:\.exe)?$/.test(basename(before));
  return {
    program: isFetched ? undefined : executable(program, path),
    node: isNode ? executable(before, path) : undefined,
  };
}

/** Undefined where only the shell knows what is meant. */
function executable(named: string, path: string): Executable | undefined {
  const expanded = named.replace(/^(?:~|\$HOME|\$\{HOME\})(?=[/\\])/, homedir());
  return expanded.includes('$') ? undefined : { named, path: whereIs(expanded, path) };
}

/** Where a command is found, as a shell would. */
function whereIs(named: string, path: string): string | undefined {
  const isPath = /[/\\]/.test(named);
  const candidates = isPath
    ? [named]
    : path.split(delimiter).flatMap((folder) => ['', ...WINDOWS_ENDINGS].map((ending) => join(folder, named + ending)));
  for (const candidate of candidates) {
    try {
      accessSync(candidate, isPath ? constants.R_OK : constants.X_OK);
      return realpathSync(candidate);
    } catch {
      // not there
    }
  }
  return undefined;
}

const WINDOWS_ENDINGS = process.platform === 'win32' ? ['.cmd', '.exe'] : [];
