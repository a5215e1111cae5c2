import { findOwnHooks, HOOK_SECONDS } from '../../config/claude-hooks.js';
import { type ClaudeSettings, parseClaudeSettings } from '../../config/claude-settings.js';
import { isRecord } from '../../shared/json.js';
import { type JsonPath, removeValue, setValue } from './json-edit.js';

const EVENTS = Object.keys(HOOK_SECONDS);

/**
 * Adds the hooks, each once, and the variables of the `env` block to the text of a settings file. Throws if a value in it has
 * another type than Claude Code expects.
 */
export function addToSettings(text: string, command: string, variables: { readonly [name: string]: string }): string {
  const settings = parseSettings(text);
  const expectType = (isType: (value: unknown) => boolean, path: JsonPath) => {
    const value = getValue(settings, path);
    if (value !== undefined && !isType(value))
      throw new Error(`${path.join('.')} is not what Claude Code expects; fix or remove it first`);
  };
  for (const name of ['hooks', 'env']) expectType(isRecord, [name]);
  for (const event of EVENTS) expectType(Array.isArray, ['hooks', event]);
  const withHooks = EVENTS.reduce((rest, event) => addHook(rest, event, command), text);
  return Object.entries(variables).reduce((rest, [name, value]) => updateValue(rest, ['env', name], value), withHooks);
}

/** Removes the hooks and these variables, and whatever becomes empty by that. */
export function removeFromSettings(text: string, variables: readonly string[]): string {
  // Last first, so that the places of the others stay right.
  const hooks = findOwnHooks(parseSettings(text)).toReversed();
  const withoutHooks = hooks.reduce((rest, { path }) => removeHook(rest, path), text);
  const withoutVariables = variables.reduce((rest, name) => removeValue(rest, ['env', name]), withoutHooks);
  return variables.length > 0 ? removeIfEmpty(withoutVariables, ['env']) : withoutVariables;
}

function addHook(text: string, event: string, command: string): string {
  const settings = parseSettings(text);
  const [own, ...others] = findOwnHooks(settings).filter((hook) => hook.event === event);
  const seconds = HOOK_SECONDS[event] ?? 0;
  if (!own) {
    const groups = getValue(settings, ['hooks', event]);
    const place = Array.isArray(groups) ? groups.length : 0;
    return setValue(text, ['hooks', event, place], { hooks: [{ type: 'command', command, timeout: seconds }] });
  }
  const once = others.toReversed().reduce((rest, { path }) => removeHook(rest, path), text);
  // Another form of the hook may have had these.
  const plain = ['args', 'shell', 'async'].reduce((rest, name) => removeValue(rest, [...own.path, name]), once);
  const timeout = Math.max(seconds, own.timeout ?? 0);
  return updateValue(updateValue(plain, [...own.path, 'command'], command), [...own.path, 'timeout'], timeout);
}

/** Leaves the text alone if it has the value already. */
function updateValue(text: string, path: JsonPath, value: string | number): string {
  return getValue(parseSettings(text), path) === value ? text : setValue(text, path, value);
}

/** Removes a hook; then its group, its event's list and `hooks`, each only if nothing else is in it. */
function removeHook(text: string, path: JsonPath): string {
  const rest = removeValue(text, path);
  if (!isEmpty(getValue(parseSettings(rest), path.slice(0, -1)))) return rest;
  const withoutGroup = removeValue(rest, path.slice(0, 3));
  return removeIfEmpty(removeIfEmpty(withoutGroup, path.slice(0, 2)), path.slice(0, 1));
}

function removeIfEmpty(text: string, path: JsonPath): string {
  return isEmpty(getValue(parseSettings(text), path)) ? removeValue(text, path) : text;
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : isRecord(value) && Object.keys(value).length === 0;
}

function getValue(settings: ClaudeSettings, path: JsonPath): unknown {
  return path.reduce<unknown>(
    (value, step) => (typeof value === 'object' && value !== null ? Reflect.get(value, step) : undefined),
    settings,
  );
}

function parseSettings(text: string): ClaudeSettings {
  const content = parseClaudeSettings(text);
  return content.kind === 'settings' ? content.settings : {};
}
