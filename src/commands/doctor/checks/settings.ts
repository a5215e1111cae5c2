import { spawnSync } from 'node:child_process';
import { realpathSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { ownCommand } from '../../../cli/own-command.js';
import { quoteForShell } from '../../../cli/terminal.js';
import { hasNoTranscripts, NO_TRANSCRIPTS } from '../../../config/claude-folder.js';
import { findOwnPlugins, readPluginOptions } from '../../../config/claude-hooks.js';
import { acceptedSettings, envBlock, type SettingsFile } from '../../../config/claude-settings.js';
import { readCommandSettings, readHookSettings } from '../../../config/folder-settings.js';
import { dropForeignVariables, listHiddenVariables } from '../../../config/own-variables.lazy.js';
import { addPluginOptions, isPluginOption } from '../../../config/plugin-options.js';
import type { Problem } from '../../../config/problem.js';
import { isKey, parseOtlpHeaders } from '../../../config/setting-formats.js';
import {
  type GivenSetting,
  givenSettings,
  isSet,
  readSettings,
  type Settings,
  variableFor,
} from '../../../config/settings.js';
import { settingsPath } from '../../../config/settings-paths.js';
import { findTarget } from '../../../langfuse/open-destination.js';
import type { Target } from '../../../langfuse/target.js';
import { about, type Finding, NOT_INSTALLED } from '../finding.js';
import { maskPublicKey, maskSecretKey, showUrl, showValue } from '../masking.js';

/** The settings of a hook that Claude Code starts in this directory. */
export interface SettingsInForce {
  readonly shell: NodeJS.ProcessEnv;
  /** The hook's environment: the shell's, changed by the `env` blocks of the settings files. */
  readonly hookEnv: NodeJS.ProcessEnv;
  readonly settings: Settings;
  /** What a project set and does not count. */
  readonly ignored: readonly Problem[];
  /** The variables of the shell that hooks cannot see, because a project sets them, too. */
  readonly hidden: readonly Problem[];
  /** The settings without the project's, whose author could name a server that collects keys. Only these are tried. */
  readonly trusted: Settings;
  /** Why nothing of this directory is sent, although tracing may be on. */
  readonly optOut: string | undefined;
  /** This program's plugin, if it is enabled. Claude Code keeps the secret key that the user entered for it. */
  readonly plugin: string | undefined;
  /** Where a variable is set: in the shell, for the plugin, or in a file. */
  readonly findPlace: (variable: string) => string;
}

export const SETTING_CHECKS = [
  checkTracing,
  checkTranscripts,
  checkIgnoredSettings,
  checkHiddenSettings,
  checkBadSettings,
  checkGoodSettings,
  checkDestination,
  checkExposedKeys,
];

export async function readSettingsInForce(
  shell: NodeJS.ProcessEnv,
  files: readonly SettingsFile[],
  cwd: string,
): Promise<SettingsInForce> {
  const accepted = acceptedSettings(files);
  // From the weakest to the strongest: Claude Code lets its settings override the shell.
  const layers = [
    // Claude Code passes it on from no place, and hooks read the files alone.
    { place: SHELL, env: { ...shell, OTEL_RESOURCE_ATTRIBUTES: '' } },
    ...accepted.map(({ path, content }) => ({ place: path, env: envBlock(content) })),
  ];
  const given: NodeJS.ProcessEnv = Object.assign({}, ...layers.map(({ env }) => env));
  const plugins = accepted
    .filter(({ scope }) => scope === 'user')
    .flatMap(({ settings }) =>
      findOwnPlugins(settings).map((name) => ({ name, options: readPluginOptions(settings, name) })),
    );
  const { env: own, ignored, isHeld } = dropForeignVariables(given, [cwd]);
  const withoutKey = isHeld ? { PUBLIC_KEY: undefined } : {};
  const hookEnv = plugins.reduce((env, { options }) => addPluginOptions(env, { ...options, ...withoutKey }), {
    ...own,
  });
  const plugin = plugins[0] && `the plugin ${plugins[0].name}`;
  // The plugin's hooks trace unless they are told not to.
  if (plugin !== undefined) hookEnv[SWITCH] ||= 'true';
  const there = await readHookSettings(hookEnv, cwd);
  const findLayer = (variable: string) =>
    layers.findLast(({ env }) => isSet(env[variable]) && env[variable] === hookEnv[variable])?.place ??
    layers.findLast(({ env }) => isSet(env[variable]))?.place;
  const isFromPlugin = (variable: string) => Boolean(hookEnv[variable]) && hookEnv[variable] !== own[variable];
  return {
    shell,
    hookEnv,
    settings: await readSettings(there.env),
    ignored: [...ignored, ...(there.problems ?? []).filter((problem) => problem !== there.optOutProblem)],
    hidden: listHiddenVariables(shell, cwd),
    trusted: await readSettings((await readCommandSettings(shell, cwd)).env),
    optOut: there.optOut,
    plugin,
    findPlace: (variable) => {
      const place = (isFromPlugin(variable) ? plugin : findLayer(variable)) ?? SHELL;
      return place === SHELL && isPluginOption(shell, variable) ? (plugin ?? "the plugin's options") : place;
    },
  };
}

const SHELL = 'the shell';
const SWITCH = 'TRACE_TO_LANGFUSE';
/** Values by which someone turned tracing off on purpose; `1` was meant to turn it on. */
const OFF = /^(?:false|no|off|0)$/i;

function checkTracing({ hookEnv, shell, findPlace, optOut }: SettingsInForce): Finding {
  const variable = variableFor(SWITCH, hookEnv);
  if (variable === undefined)
    return about('tracing').broken(
      `off: ${SWITCH} is not set`,
      installOrSet(`"${SWITCH}": "true"`, shell),
      NOT_INSTALLED,
    );
  const value = hookEnv[variable] ?? '';
  const place = findPlace(variable);
  const tracing = about('tracing', { place });
  if (value === 'true' && optOut !== undefined)
    return tracing.warning(`off in this directory: ${optOut}`, 'if that is not intended, remove it there');
  if (value === 'true') return tracing.ok(`on (from ${place})`);
  const status = OFF.test(value) ? 'warning' : 'broken';
  const message = `off: ${variable} is "${showValue(value)}" (from ${place})`;
  return tracing[status](message, `set "${variable}": "true" in ${place}`);
}

function* checkTranscripts({ hookEnv, findPlace }: SettingsInForce): Generator<Finding> {
  if (!hasNoTranscripts(hookEnv)) return;
  const place = findPlace(NO_TRANSCRIPTS);
  yield about('transcripts', { place }).broken(
    `off: with ${NO_TRANSCRIPTS} (from ${place}) Claude Code writes no transcripts, so there is nothing to send`,
    place === SHELL ? `unset ${NO_TRANSCRIPTS}` : `remove "${NO_TRANSCRIPTS}" from ${place}`,
  );
}

function installOrSet(entry: string, shell: NodeJS.ProcessEnv): string {
  return `${ownCommand()} install, or set ${entry} in the env block of ${settingsPath('user', shell, '')}`;
}

/** Essential settings have findings of their own name: without a good one nothing is sent. */
function findingName(variable: string): string {
  if (/LANGFUSE_(?:BASE_?URL|HOST)$/.test(variable)) return 'base-url';
  const [, essential] =
    /LANGFUSE_(PUBLIC_KEY|SECRET_KEY(?=$|_COMMAND)|OTLP_URL|OTLP_HEADERS|HEADERS)(?:_COMMAND)?$/.exec(variable) ?? [];
  return essential?.toLowerCase().replace('_', '-') ?? 'setting';
}

/** Their last words are a reason, and need no place. */
function checkIgnoredSettings({ ignored, trusted }: SettingsInForce): Finding[] {
  const fix = trusted.destination
    ? 'if you set it, set it in your own settings instead; otherwise do nothing'
    : `set it in your own settings`;
  return ignored.map(({ variable, text }) => about('ignored', { variable }).warning(text, fix));
}

function checkHiddenSettings({ hidden }: SettingsInForce): Finding[] {
  return hidden.map(({ variable, text }) =>
    about('hidden', { variable }).warning(text, 'set it in your own settings, which hooks read'),
  );
}

function checkBadSettings({ settings, optOut, shell, findPlace, plugin }: SettingsInForce): Finding[] {
  return settings.problems.map(({ kind, variable, text }) => {
    const name = findingName(variable);
    const setting = about(name, { variable });
    if (name === 'secret-key' && plugin !== undefined)
      return setting.none(
        `Claude Code keeps it for ${plugin}; commands that you run yourself need the keys in the shell`,
      );
    if (kind === 'missing') return setting.broken(text, installOrSet(`"${variable}"`, shell), NOT_INSTALLED);
    const place = findPlace(variable);
    const message = `${text} (from ${place})`;
    const isHeld = settings.hold !== undefined && kind === 'bad rule';
    if (optOut !== undefined && variable === 'CC_LANGFUSE_EXCLUDE')
      return setting.broken(message, `correct ${variable} in ${place}, or remove it`);
    if (isHeld) return setting.broken(`${message}: nothing is sent`, `correct ${variable} in ${place}, or remove it`);
    const isVital = name !== 'setting' && settings.destination === undefined;
    if (isVital && name === 'base-url')
      return setting.broken(message, `set "${variable}": "https://cloud.langfuse.com", or your own server's URL`);
    return setting[isVital ? 'broken' : 'warning'](message, `correct ${variable} in ${place}, or remove it`);
  });
}

function checkGoodSettings({ hookEnv, settings, findPlace }: SettingsInForce): Finding[] {
  const { problems } = settings;
  const target = settings.destination && findTarget(settings.destination);
  const bad = problems.map(({ variable }) => variable);
  const given = givenSettings(hookEnv);
  const findings = given
    .filter(({ name, variable }) => name !== SWITCH && !bad.includes(variable))
    .map((setting) => checkSetting(setting, findPlace(setting.variable), target));
  if (!target?.langfuse || given.some(({ name }) => name === 'LANGFUSE_BASE_URL')) return findings;
  const { origin } = target.url;
  return [...findings, about('base-url', { value: origin }).ok(`${origin} (the default)`)];
}

function checkSetting(setting: GivenSetting, place: string, target?: Target): Finding {
  const { name, variable, value } = setting;
  const isForLangfuse =
    ['LANGFUSE_PUBLIC_KEY', 'LANGFUSE_BASE_URL', 'CC_LANGFUSE_HEADERS'].includes(name) || name.includes('SECRET_KEY');
  if (isForLangfuse && target && !target.langfuse)
    return about(findingName(variable), { variable, place }).none(
      `${variable} is not used, because ${target.settings.url} is set`,
    );
  switch (name) {
    case 'LANGFUSE_PUBLIC_KEY':
      return checkKey(variable, value, maskPublicKey(value), 'sk-', place);
    case 'LANGFUSE_SECRET_KEY':
      return checkKey(variable, value, maskSecretKey(value), 'pk-', place);
    case 'CC_LANGFUSE_SECRET_KEY_COMMAND':
      return about('secret-key', { variable, place }).ok(`${variable} prints it (from ${place})`);
    case 'LANGFUSE_BASE_URL':
    case 'CC_LANGFUSE_OTLP_URL':
      return checkUrl(variable, new URL(value), place);
    case 'CC_LANGFUSE_HEADERS':
    case 'CC_LANGFUSE_OTLP_HEADERS': {
      const names = Object.keys(parseOtlpHeaders(value) ?? {});
      const message = `${variable} sets ${names.join(', ')} (from ${place})`;
      return about(findingName(variable), { variable, names, place }).ok(message);
    }
    default: {
      const shown = name === 'LANGFUSE_METADATA' || name === 'CC_LANGFUSE_REDACT_EXTRA' ? 'set' : showValue(value);
      return about('setting', { variable, value: shown, place }).ok(`${variable} is ${shown} (from ${place})`);
    }
  }
}

/** `other` is how the other key of the two begins. */
function checkKey(variable: string, value: string, shown: string, other: string, place: string): Finding {
  const key = about(findingName(variable), { variable, value: shown, place });
  const broken = (problem: string, fix = `copy the key again from the project's settings in Langfuse to ${place}`) =>
    key.broken(`${variable} ${problem} (from ${place})`, fix);
  if (value.includes('…')) return broken("is the example's placeholder");
  if (!isKey(value)) return broken('has a character that no key has, such as a space or a quote');
  if (value.startsWith(other)) return broken(`begins with ${other}, like the other key`, 'swap the two keys');
  return key.ok(`${variable} is ${shown} (from ${place})`);
}

function checkUrl(variable: string, url: URL, place: string): Finding {
  const name = findingName(variable);
  const shown = showUrl(url);
  const setting = about(name, { variable, value: shown, place });
  const message = `${variable} is ${shown} (from ${place})`;
  const hasPassword = url.username !== '' || url.password !== '';
  const warn = (problem: string, better: string) =>
    setting.warning(message + problem, `set "${variable}": "${better}"`);
  if (name === 'base-url' && hasPassword) return warn('; the user name and password in it are not used', shown);
  const isLocal = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (url.protocol !== 'http:' || isLocal) return setting.ok(message);
  return warn(': keys and content are sent unencrypted', `https://${url.host}`);
}

/** Whether hooks in this directory send to the same place as commands that are run by hand, such as this one. */
function* checkDestination({ hookEnv, settings, trusted, findPlace }: SettingsInForce): Generator<Finding> {
  if (!settings.destination || !trusted.destination) return;
  const [here, there] = [findTarget(settings.destination), findTarget(trusted.destination)];
  if (isDeepStrictEqual(here.account, there.account)) return;
  const deciding = givenSettings(hookEnv).filter(({ variable }) => findingName(variable) !== 'setting');
  const places = [...new Set(deciding.map(({ variable }) => findPlace(variable)))].join(' and ');
  const [hooks, byHand] = [describeTarget(here), describeTarget(there)];
  yield about('destination', { hooks, byHand }).warning(
    `hooks here send to ${hooks}, but commands that you run yourself send to ${byHand}, which is checked below`,
    `if that is not intended, make ${places} agree with the shell and your own settings`,
  );
}

function describeTarget({ langfuse, name, url: { host } }: Target): string {
  return langfuse ? `${host} (${maskPublicKey(langfuse.publicKey)})` : `${name} at ${host}`;
}

function* checkExposedKeys({ files }: { readonly files: readonly SettingsFile[] }): Generator<Finding> {
  for (const { scope, path, content } of files) {
    const hasSecretKey = givenSettings(envBlock(content)).some(({ name }) => name === 'LANGFUSE_SECRET_KEY');
    if (scope !== 'managed' && hasSecretKey) yield* checkExposure(path);
  }
}

/** Whether others can read a file that contains the secret key. */
export function* checkExposure(path: string): Generator<Finding> {
  const exposed = (problem: string, fix: string) =>
    about('keys-exposed').warning(`${path} contains the secret key, and ${problem}`, fix);
  if (isReadByOthers(path)) yield exposed('others on this machine can read it', `chmod 600 ${quoteForShell(path)}`);
  // The settings may be a link into a repository of dotfiles.
  const file = realpathSync(path);
  // Claude Code makes git ignore only the local settings that it creates itself.
  if (mayBeCommitted(file)) yield exposed('git does not ignore it', ignoreInGit(`${file}*`));
}

/** On Windows modes mean nothing. */
export function isReadByOthers(path: string): boolean {
  return process.platform !== 'win32' && ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0;
}

/** Whether git might take the backup that install made. */
export function* checkBackup(path: string): Generator<Finding> {
  if (mayBeCommitted(path))
    yield about('backup-exposed').warning(`git does not ignore the backup ${path}`, ignoreInGit(path));
}

function mayBeCommitted(file: string): boolean {
  const { status } = spawnSync('git', ['-C', dirname(file), 'check-ignore', '-q', file], { stdio: 'ignore' });
  // 1: in a working tree and not ignored.
  return status === 1;
}

function ignoreInGit(file: string): string {
  return `add ${basename(file)} to ${dirname(file)}/.gitignore`;
}
