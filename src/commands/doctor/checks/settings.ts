import { isDeepStrictEqual } from 'node:util';
import { parseOtlpHeaders } from '../../../config/setting-formats.js';
import type { DestinationConfig, GivenSetting } from '../../../config/settings.js';
import { otlpEndpoint } from '../../../langfuse/endpoint.js';
import { isKey } from '../../setup/credentials.js';
import type { SettingsFacts, Source } from '../facts/settings.js';
import { broken, type Finding, none, ok, warning } from '../finding.js';
import { maskedPublicKey, maskedSecretKey, shownUrl, shownValue } from '../masking.js';

const SWITCH = 'TRACE_TO_LANGFUSE';
/** Somebody means it; `1` means something else than it does. */
const OFF = /^(?:false|no|off|0)$/i;
const CLOUD = 'https://cloud.langfuse.com';
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;
/** What is called so in a report; without a good one of these nothing is sent. */
const ESSENTIAL: readonly { readonly name: string; readonly variable: RegExp }[] = [
  { name: 'public-key', variable: /LANGFUSE_PUBLIC_KEY$/ },
  { name: 'secret-key', variable: /LANGFUSE_SECRET_KEY$/ },
  { name: 'base-url', variable: /LANGFUSE_(?:BASE_?URL|HOST)$/ },
  { name: 'otlp-url', variable: /LANGFUSE_OTLP_URL$/ },
  { name: 'otlp-headers', variable: /LANGFUSE_OTLP_HEADERS$/ },
];

export function checkSettings(facts: SettingsFacts): Finding[] {
  const { settings, given, sourceOf } = facts;
  const bad = settings.problems.map(variableIn);
  return [
    checkTracing(facts),
    ...settings.problems.map((problem) => checkProblem(problem, facts)),
    ...given
      .filter(({ name, variable }) => name !== SWITCH && !bad.includes(variable))
      .map((setting) => checkGiven(setting, sourceOf(setting.variable), settings.destination)),
    ...checkDefaultServer(facts),
    ...checkDestination(facts),
    ...facts.exposures.map(({ what, remedy }) => warning('keys-exposed', what, remedy)),
  ];
}

function checkTracing({ hookEnv, sourceOf, userFile }: SettingsFacts): Finding {
  const value = hookEnv[SWITCH] ?? '';
  if (value === '')
    return broken(
      'tracing',
      `off: ${SWITCH} is not set`,
      `cc-langfuse install, or "${SWITCH}": "true" in the env block of ${userFile}`,
    );
  const { place } = sourceOf(SWITCH);
  if (value === 'true') return ok('tracing', `on, by ${place}`, { place });
  const message = `off: ${SWITCH} is "${shownValue(value)}", by ${place}`;
  const fix = `make it "${SWITCH}": "true" in ${place}`;
  return OFF.test(value) ? warning('tracing', message, fix, { place }) : broken('tracing', message, fix, { place });
}

function variableIn(problem: string): string {
  return /^\w+/.exec(problem)?.[0] ?? '';
}

/** A problem names its variable, and no value. */
function checkProblem(problem: string, { settings, userFile, sourceOf, plugin }: SettingsFacts): Finding {
  const variable = variableIn(problem);
  const name = nameOf(variable);
  const details = { variable };
  if (name === 'secret-key' && plugin !== undefined)
    return none(name, `Claude Code keeps it for ${plugin}; commands by hand want the keys in the shell`, details);
  if (problem.endsWith(' is not set'))
    return broken(name, problem, `cc-langfuse install, or "${variable}" in the env block of ${userFile}`, details);
  const { place } = sourceOf(variable);
  const message = `${problem} (by ${place})`;
  const isVital = name !== 'setting' && settings.destination === undefined;
  if (isVital && name === 'base-url')
    return broken(name, message, `write "${variable}": "${CLOUD}", or your own server's`, details);
  return (isVital ? broken : warning)(name, message, `correct ${variable} in ${place}, or take it out`, details);
}

function nameOf(wanted: string): string {
  return ESSENTIAL.find(({ variable }) => variable.test(wanted))?.name ?? 'setting';
}

function checkGiven(
  { name, variable, value }: GivenSetting,
  source: Source,
  receiver: DestinationConfig | undefined,
): Finding {
  const { place } = source;
  switch (name) {
    case 'LANGFUSE_PUBLIC_KEY':
    case 'LANGFUSE_SECRET_KEY':
    case 'LANGFUSE_BASE_URL':
      if (receiver?.kind === 'collector')
        return none(nameOf(variable), `${variable} is not used, CC_LANGFUSE_OTLP_URL is`, { variable, place });
      return name === 'LANGFUSE_BASE_URL'
        ? checkUrl(variable, new URL(value), source)
        : checkKey(name, variable, value, source);
    case 'CC_LANGFUSE_OTLP_URL':
      return checkUrl(variable, new URL(value), source);
    case 'CC_LANGFUSE_OTLP_HEADERS': {
      const names = Object.keys(parseOtlpHeaders(value) ?? {});
      return ok('otlp-headers', `${variable} sets ${names.join(', ')}, by ${place}`, { variable, names, place });
    }
    default: {
      const shown = name === 'LANGFUSE_METADATA' || name === 'CC_LANGFUSE_REDACT_EXTRA' ? 'set' : shownValue(value);
      return ok('setting', `${variable} is ${shown}, by ${place}`, { variable, value: shown, place });
    }
  }
}

function checkKey(
  setting: 'LANGFUSE_PUBLIC_KEY' | 'LANGFUSE_SECRET_KEY',
  variable: string,
  value: string,
  { place }: Source,
): Finding {
  const isPublic = setting === 'LANGFUSE_PUBLIC_KEY';
  const name = nameOf(variable);
  const shown = isPublic ? maskedPublicKey(value) : maskedSecretKey(value);
  const details = { variable, value: shown, place };
  const again = `copy it once more from the project's settings in Langfuse into ${place}`;
  if (value.includes('…')) return broken(name, `${variable} is the example's, by ${place}`, again, details);
  if (!isKey(value)) return broken(name, `${variable} holds a space or a quote, by ${place}`, again, details);
  const other = isPublic ? 'sk-' : 'pk-';
  if (value.startsWith(other))
    return broken(
      name,
      `${variable} begins with ${other}, as the other key does, by ${place}`,
      'exchange the two',
      details,
    );
  return ok(name, `${variable} is ${shown}, by ${place}`, details);
}

function checkUrl(variable: string, url: URL, { place }: Source): Finding {
  const name = nameOf(variable);
  const shown = shownUrl(url);
  const details = { variable, value: shown, place };
  const message = `${variable} is ${shown}, by ${place}`;
  const hasPassword = url.username !== '' || url.password !== '';
  if (name === 'base-url' && hasPassword)
    return warning(
      name,
      `${message}, with a name and a password, which are not used`,
      `write "${variable}": "${shown}"`,
      details,
    );
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname))
    return warning(
      name,
      `${message}: keys and content go there unencrypted`,
      `write "${variable}": "https://${url.host}"`,
      details,
    );
  return ok(name, message, details);
}

function checkDefaultServer({ given, settings: { destination: receiver } }: SettingsFacts): Finding[] {
  if (receiver?.kind !== 'langfuse' || given.some(({ name }) => name === 'LANGFUSE_BASE_URL')) return [];
  const { origin } = receiver.baseUrl;
  return [ok('base-url', `${origin}, by default`, { value: origin })];
}

/** Whether hooks here go where the commands by hand, this one too, go. */
function checkDestination({ given, settings, trusted, sourceOf }: SettingsFacts): Finding[] {
  const [here, there] = [settings.destination, trusted.destination];
  if (!here || !there || isDeepStrictEqual(otlpEndpoint(here), otlpEndpoint(there))) return [];
  const deciding = given.filter(({ variable }) => nameOf(variable) !== 'setting');
  const places = [...new Set(deciding.map(({ variable }) => sourceOf(variable).place))].join(' and ');
  const [hooks, byHand] = [destinationOf(here), destinationOf(there)];
  return [
    warning(
      'destination',
      `hooks here send to ${hooks}, commands by hand to ${byHand}, which is what is asked below`,
      `where that is not meant, make ${places} say the same as the shell and your own settings`,
      { hooks, byHand },
    ),
  ];
}

function destinationOf(receiver: DestinationConfig): string {
  return receiver.kind === 'collector'
    ? `the Collector at ${receiver.url.host}`
    : `${receiver.baseUrl.host} (${maskedPublicKey(receiver.publicKey)})`;
}
