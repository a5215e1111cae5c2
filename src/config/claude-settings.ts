import { readFileSync, statSync } from 'node:fs';
import { type ParseError, type ParseOptions, parse, printParseErrorCode } from 'jsonc-parser';
import { isRecord } from '../shared/json.js';
import { listSettingsPaths, type Scope, settingsPath } from './settings-paths.js';

export type ClaudeSettings = { readonly [key: string]: unknown };

export interface SettingsFile {
  readonly scope: Scope;
  readonly path: string;
  readonly content: SettingsContent;
}

export type SettingsContent =
  | { readonly kind: 'absent' }
  /** `reason` is the system's error code, such as EACCES, if it has one. */
  | { readonly kind: 'unreadable' | 'no file'; readonly reason: string }
  /** `problem` says where the error is, and what it is. */
  | { readonly kind: 'invalid'; readonly text: string; readonly problem: string }
  /** `problem` says where the first comment or trailing comma is, if there is one: Claude Code then ignores the whole file. */
  | {
      readonly kind: 'settings';
      readonly text: string;
      readonly settings: ClaudeSettings;
      readonly problem: string | undefined;
    };

export interface AcceptedSettings extends SettingsFile {
  readonly settings: ClaudeSettings;
}

/** Returns every settings file that Claude Code looks for when it is started in a folder, the weakest first. */
export function readSettingsFiles(env: NodeJS.ProcessEnv, cwd: string): SettingsFile[] {
  return listSettingsPaths(env, cwd).map((file) => ({ ...file, content: readSettingsAt(file.path) }));
}

/** Returns the settings that Claude Code accepts, the weakest first: it ignores a file with comments or trailing commas. */
export function acceptedSettings(files: readonly SettingsFile[]): AcceptedSettings[] {
  return files.flatMap((file) =>
    file.content.kind === 'settings' && file.content.problem === undefined
      ? [{ ...file, settings: file.content.settings }]
      : [],
  );
}

/**
 * Returns the environment for a command that a person runs: the shell's variables, and for those that are unset or empty the
 * `env` block of the user's settings, which Claude Code passes to hooks. Project settings are not read: whoever wrote the
 * project could redirect the user's data.
 */
export function commandEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const content = readSettingsAt(settingsPath('user', env, ''));
  const fromShell = Object.entries(env).filter(([, value]) => value !== '');
  return {
    ...(content.kind === 'settings' && content.problem === undefined && envBlock(content)),
    ...Object.fromEntries(fromShell),
  };
}

export function readSettingsAt(path: string): SettingsContent {
  try {
    // Reading a FIFO would block.
    if (!statSync(path).isFile()) return { kind: 'no file', reason: 'not a regular file' };
    return parseClaudeSettings(readFileSync(path, 'utf8'));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? { kind: 'absent' } : { kind: 'unreadable', reason: code ?? message };
  }
}

export function envBlock(content: SettingsContent): { [name: string]: string } {
  return toVariables(content.kind === 'settings' && isRecord(content.settings.env) ? content.settings.env : {});
}

/** Claude Code passes numbers and booleans on as texts. */
export function toVariables(block: { readonly [name: string]: unknown }): { [name: string]: string } {
  return Object.fromEntries(
    Object.entries(block)
      .filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
      .map(([name, value]) => [name, String(value)]),
  );
}

const CLEANUP_DAYS = 30;

/**
 * After how many days without a change Claude Code deletes a transcript. Wherever it starts, it looks at those of all projects: so a
 * longer time in the settings of one project protects nothing.
 */
export function readCleanupDays(files: readonly SettingsFile[]): number {
  return acceptedSettings(files).reduce((days, { scope, settings: { cleanupPeriodDays: own } }) => {
    // It refuses 0.
    if (typeof own !== 'number' || !(own > 0)) return days;
    return scope === 'project' || scope === 'local' ? Math.min(days, own) : own;
  }, CLEANUP_DAYS);
}

export function listEnabledPlugins({ enabledPlugins }: ClaudeSettings): string[] {
  if (!isRecord(enabledPlugins)) return [];
  return Object.keys(enabledPlugins).filter((plugin) => enabledPlugins[plugin] === true);
}

/** Parses a settings file; an empty one counts as one without settings. */
export function parseClaudeSettings(text: string): SettingsContent {
  const json = text.replace(/^\uFEFF/, '');
  if (json.trim() === '') return { kind: 'settings', text, settings: {}, problem: undefined };
  const problem = findParseError(json, { allowTrailingComma: true });
  if (problem !== undefined) return { kind: 'invalid', text, problem };
  const settings: unknown = parse(json, [], { allowTrailingComma: true });
  if (!isRecord(settings)) return { kind: 'invalid', text, problem: 'expected a JSON object' };
  return { kind: 'settings', text, settings, problem: findParseError(json, { disallowComments: true }) };
}

function findParseError(text: string, options: ParseOptions): string | undefined {
  const errors: ParseError[] = [];
  parse(text, errors, options);
  return errors[0] && describeParseError(text, errors[0]);
}

function describeParseError(text: string, { offset, error }: ParseError): string {
  const before = text.slice(0, offset).split('\n');
  const words = printParseErrorCode(error).replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}: ${words.toLowerCase()}`;
}
