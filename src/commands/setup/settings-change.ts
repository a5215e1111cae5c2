import { isDeepStrictEqual } from 'node:util';
import { findOwnHooks, HOOK_SECONDS, type HookCommand } from '../../config/claude-hooks.js';
import { type ClaudeSettings, parseClaudeSettings } from '../../config/claude-settings.js';
import { isRecord } from '../../shared/json.js';
import { getValue, type JsonPath, removeValue, setValue } from './json-edit.js';

/** Adds hooks for events, each once, and the variables. Throws if a value there has another type than Claude Code expects. */
export function addToSettings(
  text: string,
  commandFor: (event: string) => HookCommand,
  variables: { readonly [name: string]: string },
  events = HOOK_SECONDS,
): string {
  const expectType = (isType: (value: unknown) => boolean, path: JsonPath) => {
    const value = getValue(text, path);
    if (value !== undefined && !isType(value))
      throw new Error(`${path.join('.')} is not what Claude Code expects; fix or remove it first`);
  };
  for (const name of ['hooks', 'env']) expectType(isRecord, [name]);
  for (const event of Object.keys(events)) expectType(Array.isArray, ['hooks', event]);
  let rest = text;
  for (const [event, seconds] of Object.entries(events)) rest = addHook(rest, event, seconds, commandFor(event));
  for (const [name, value] of Object.entries(variables)) rest = setValue(rest, ['env', name], value);
  return rest;
}

/** Removes the hooks and these variables, and whatever becomes empty by that. */
export function removeFromSettings(text: string, variables: readonly string[]): string {
  // Last first, so that the places of the others stay right.
  const hooks = findOwnHooks(parseSettings(text)).toReversed();
  const withoutHooks = hooks.reduce((rest, { path }) => removeHook(rest, path), text);
  const withoutVariables = variables.reduce((rest, name) => removeValue(rest, ['env', name]), withoutHooks);
  return variables.length > 0 ? removeIfEmpty(withoutVariables, ['env']) : withoutVariables;
}

function addHook(text: string, event: string, seconds: number, command: HookCommand): string {
  const [own, ...others] = findOwnHooks(parseSettings(text)).filter((hook) => hook.event === event);
  const group = { hooks: [{ type: 'command', ...command, timeout: seconds }] };
  if (!own) return setValue(text, ['hooks', event, Number.POSITIVE_INFINITY], group);
  const once = others.toReversed().reduce((rest, { path }) => removeHook(rest, path), text);
  // Another form of the hook may have had these.
  const fields = { ...command, timeout: Math.max(seconds, own.timeout ?? 0) };
  const plain = ['args', 'shell', 'async']
    .filter((name) => !(name in fields))
    .reduce((rest, name) => removeValue(rest, [...own.path, name]), once);
  return Object.entries(fields)
    .filter(([name, value]) => !isDeepStrictEqual(getValue(plain, [...own.path, name]), value))
    .reduce((rest, [name, value]) => setValue(rest, [...own.path, name], value), plain);
}

/** Removes a hook; then its group, its event's list and `hooks`, each only if nothing else is in it. */
function removeHook(text: string, path: JsonPath): string {
  const rest = removeValue(text, path);
  if (!isEmpty(getValue(rest, path.slice(0, -1)))) return rest;
  const withoutGroup = removeValue(rest, path.slice(0, 3));
  return removeIfEmpty(removeIfEmpty(withoutGroup, path.slice(0, 2)), path.slice(0, 1));
}

function removeIfEmpty(text: string, path: JsonPath): string {
  return isEmpty(getValue(text, path)) ? removeValue(text, path) : text;
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : isRecord(value) && Object.keys(value).length === 0;
}

function parseSettings(text: string): ClaudeSettings {
  const content = parseClaudeSettings(text);
  return content.kind === 'settings' ? content.settings : {};
}
