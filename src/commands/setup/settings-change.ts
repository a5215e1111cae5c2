import { isDeepStrictEqual } from 'node:util';
import { findOwnHooks, HOOK_SECONDS, type HookCommand } from '../../config/claude-hooks.js';
import { type ClaudeSettings, parseClaudeSettings, type SettingsContent } from '../../config/claude-settings.js';
import { attempt } from '../../shared/attempt.js';
import { isRecord } from '../../shared/json.js';
import { getValue, type JsonPath, removeValue, setValue } from './json-edit.js';

/**
 * Adds hooks for events, each once, and the variables; removes the variables that have no value. Throws if a value there has
 * another type than Claude Code expects.
 */
export function addToSettings(
  text: string,
  commandFor: (event: string) => HookCommand,
  variables: { readonly [name: string]: string | undefined },
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
  for (const [name, value] of Object.entries(variables))
    rest = value === undefined ? removeValue(rest, ['env', name]) : setValue(rest, ['env', name], value);
  return rest;
}

export function hasOwnHooks(content: SettingsContent): boolean {
  return content.kind === 'settings' && findOwnHooks(content.settings).length > 0;
}

/** Removes the hooks and these variables, and whatever becomes empty by that, unless it was empty in the text before. */
function removeFromSettings(text: string, variables: readonly string[], before = ''): string {
  // Last first, so that the places of the others stay right.
  const hooks = findOwnHooks(parseSettings(text)).toReversed();
  const withoutHooks = hooks.reduce((rest, { path }) => removeHook(rest, path, before), text);
  const withoutVariables = variables.reduce((rest, name) => removeValue(rest, ['env', name]), withoutHooks);
  return variables.length > 0 ? removeIfEmpty(withoutVariables, ['env'], before) : withoutVariables;
}

/**
 * Removes an installation. If nobody has changed the text since, what was there before comes back byte for byte. Otherwise only
 * what belongs to this program is removed, and so it is if nobody knows what was there before.
 */
export function undoInstallation(text: string, variables: readonly string[], before: string | undefined): string {
  if (before === undefined) return removeFromSettings(text, variables);
  const isUnchanged = attempt(() => repeatInstallation(before, text, variables)) === text;
  return removeFromSettings(isUnchanged ? before : text, variables, before);
}

/** What an installation makes of a text if it registers what is registered now. */
function repeatInstallation(before: string, now: string, variables: readonly string[]): string {
  const hooks = findOwnHooks(parseSettings(now));
  const commandFor = (event: string): HookCommand => {
    const { path = [], command = '' } = hooks.find((hook) => hook.event === event) ?? {};
    const args = getValue(now, [...path, 'args']);
    return { command, ...(Array.isArray(args) && { args: args.map(String) }) };
  };
  const values = variables.map((name) => [name, String(getValue(now, ['env', name]))]);
  return addToSettings(before, commandFor, Object.fromEntries(values));
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
function removeHook(text: string, path: JsonPath, before = ''): string {
  const rest = removeValue(text, path);
  if (!isEmpty(getValue(rest, path.slice(0, -1)))) return rest;
  const withoutGroup = removeValue(rest, path.slice(0, 3));
  return removeIfEmpty(removeIfEmpty(withoutGroup, path.slice(0, 2), before), path.slice(0, 1), before);
}

function removeIfEmpty(text: string, path: JsonPath, before: string): string {
  return isEmpty(getValue(text, path)) && !isEmpty(getValue(before, path)) ? removeValue(text, path) : text;
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : isRecord(value) && Object.keys(value).length === 0;
}

function parseSettings(text: string): ClaudeSettings {
  const content = parseClaudeSettings(text);
  return content.kind === 'settings' ? content.settings : {};
}
