import { findOwnHooks, HOOK_SECONDS } from '../../config/claude-hooks.js';
import { type ClaudeSettings, parseClaudeSettings } from '../../config/claude-settings.js';
import { isRecord } from '../../shared/json.js';
import { type JsonPath, without, withValue } from './json-edit.js';

/** What is to stand in a settings file. */
export interface Installation {
  readonly command: string;
  /** For its `env` block. */
  readonly variables: { readonly [name: string]: string };
}

/** The settings with our hooks, each once, and these variables; throws where they have another shape than Claude Code's. */
export function installedIn(text: string, { command, variables }: Installation): string {
  const settings = settingsOf(text);
  const events = Object.keys(HOOK_SECONDS);
  const lists = events.map((event) => ['hooks', event]).filter((path) => !isA(Array.isArray, settings, path));
  const objects = [['hooks'], ['env']].filter((path) => !isA(isRecord, settings, path));
  const [wrong] = [...objects, ...lists];
  if (wrong) throw new Error(`${wrong.join('.')} is not as Claude Code has it; correct or remove it first`);
  const withHooks = events.reduce((rest, event) => withHook(rest, event, command), text);
  return Object.entries(variables).reduce(
    (rest, [name, value]) => withDifferent(rest, ['env', name], value),
    withHooks,
  );
}

/** The settings without our hooks and these variables, and without what is empty then. */
export function removedFrom(text: string, variables: readonly string[]): string {
  const hooks = findOwnHooks(settingsOf(text)).toReversed();
  const withoutHooks = hooks.reduce((rest, { path }) => withoutHook(rest, path), text);
  const withoutVariables = variables.reduce((rest, name) => without(rest, ['env', name]), withoutHooks);
  return variables.length > 0 ? withoutEmpty(withoutVariables, ['env']) : withoutVariables;
}

function withHook(text: string, event: string, command: string): string {
  const settings = settingsOf(text);
  const [own, ...others] = findOwnHooks(settings).filter((hook) => hook.event === event);
  const seconds = HOOK_SECONDS[event] ?? 0;
  if (!own) {
    const groups = valueAt(settings, ['hooks', event]);
    const place = Array.isArray(groups) ? groups.length : 0;
    const hook = { type: 'command', command, timeout: seconds };
    return withValue(text, ['hooks', event, place], { hooks: [hook] });
  }
  const once = others.toReversed().reduce((rest, { path }) => withoutHook(rest, path), text);
  // Ways of starting that another form of it had.
  const plain = ['args', 'shell', 'async'].reduce((rest, name) => without(rest, [...own.path, name]), once);
  const timeout = Math.max(seconds, own.timeout ?? 0);
  return withDifferent(withDifferent(plain, [...own.path, 'command'], command), [...own.path, 'timeout'], timeout);
}

function withDifferent(text: string, path: JsonPath, value: string | number): string {
  return valueAt(settingsOf(text), path) === value ? text : withValue(text, path, value);
}

/** Takes out a hook; then its group, its event's list and `hooks`, each where nothing else is in it. */
function withoutHook(text: string, path: JsonPath): string {
  const rest = without(text, path);
  if (!isEmpty(valueAt(settingsOf(rest), path.slice(0, -1)))) return rest;
  const withoutGroup = without(rest, path.slice(0, 3));
  return withoutEmpty(withoutEmpty(withoutGroup, path.slice(0, 2)), path.slice(0, 1));
}

function withoutEmpty(text: string, path: JsonPath): string {
  return isEmpty(valueAt(settingsOf(text), path)) ? without(text, path) : text;
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : isRecord(value) && Object.keys(value).length === 0;
}

/** Whether what is at a path, if anything, is of a kind. */
function isA(isKind: (value: unknown) => boolean, settings: ClaudeSettings, path: JsonPath): boolean {
  const value = valueAt(settings, path);
  return value === undefined || isKind(value);
}

function valueAt(settings: ClaudeSettings, path: JsonPath): unknown {
  return path.reduce<unknown>(
    (value, step) => (typeof value === 'object' && value !== null ? Reflect.get(value, step) : undefined),
    settings,
  );
}

function settingsOf(text: string): ClaudeSettings {
  const content = parseClaudeSettings(text);
  return content.kind === 'settings' ? content.settings : {};
}
