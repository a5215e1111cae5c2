import {
  ENCODED_END,
  ENCODED_QUOTE,
  ENCODED_SEPARATOR,
  GREATER_THAN,
  LESS_THAN,
  QUOTE,
  SLASH,
  SPACE,
} from './escapes.js';
import { REDACTED } from './mark.js';
import { once } from './once.js';
import { KEY, NAME } from './secret-names.js';
import { isHarmless } from './secret-values.js';

/** Where values of headers end. */
const HEADER_VALUE = `(?![$<{[])(?:(?!${ENCODED_QUOTE})[^\\s"',;\\\\]){6,65536}`;
const COLON = `${QUOTE}?${SPACE}{0,8}(?:[:=]|${ENCODED_SEPARATOR})${SPACE}{0,8}${QUOTE}?`;
/** The whole name of a secret. */
const NAMED = `(?<prefix>[\\w.:-]{0,64}?)(?<name>${NAME}|${KEY})`;
/** With quotes a value may contain spaces. */
const FIELD_VALUE = `(?:(?<=["'\`])[^"'\`\\\\\\r\\n]{1,16384}|(?![\${<|>])(?:(?!${ENCODED_QUOTE})[^\\s"'\`\\\\<>{}]){1,16384})`;
/** The same between the name and the value of an element. */
const COLON_OR_END = `(?:>|${COLON})`;
/** What may be between two fields of a record. */
const FIELDS = '(?:(?!name|key|value)[^{}]){0,200}?';

/** Values after other prefixes. The first group, the prefix, is kept. */
export const PREFIXED_VALUES: readonly RegExp[] = [
  // https://user:password@host, and a key instead of a user
  /(:\/\/[^\s/:@"']{0,256}:)(?![${<])[^\s/"'<>?#]{1,256}(?=@)/g,
  /(:\/\/)(?=[\w-]{0,32}\d)[\w-]{20,256}(?=@)/g,
  new RegExp(
    `(%2F%2F[^\\s/:@"'%]{0,256}%(?:25){0,3}3A)(?:(?!${ENCODED_END})[^\\s"'<>]){1,256}(?=%(?:25){0,3}40)`,
    'gi',
  ),
  // .npmrc, and the credentials of registries
  /(_(?:auth|authToken|password)\s{0,4}=\s{0,4}["']?)[^\s"'$\\]{6,65536}/gi,
  new RegExp(`(auth${QUOTE}\\s{0,8}:\\s{0,8}${QUOTE})[A-Za-z0-9+/]{12,65536}={0,2}`, 'g'),
  // headers
  new RegExp(
    `(authorization${COLON}(?:bearer|basic|token|apikey|api-key|bot|negotiate|digest|key|aws4-hmac-sha256)\\s{1,8})(?![\${<])(?:(?!${ENCODED_QUOTE})[^"'\`\\\\\\r\\n]){6,65536}`,
    'gi',
  ),
  new RegExp(`(authorization${COLON}[a-z][\\w-]{1,24}\\s{1,8})(?=[^\\s"'\\\\]{0,64}\\d)[\\w.~+/=:-]{8,65536}`, 'gi'),
  new RegExp(`(authorization${COLON})(?=[^\\s"'\\\\]{0,64}\\d)[\\w.~+/=:-]{16,65536}`, 'gi'),
  new RegExp(`(x-[\\w-]{0,24}(?:token|key|secret)${COLON})${HEADER_VALUE}`, 'gi'),
  new RegExp(`((?:-token|api-?key|subscription-key)${COLON})(?=[^\\s"']{0,64}\\d)${HEADER_VALUE}`, 'gi'),
  /(cookie(?:\\{0,3}["'`])?\s{0,4}[:=]\s{0,4}(?:\\{0,3}["'`])?)(?![${<\s])[\w.-]{1,128}=(?![\s=$<{])[^\r\n"'`\\]{1,65536}/gi,
  /(bearer\s{1,8})(?=\D{0,64}\d)[\w.~+/-]{20,65536}={0,2}/gi,
  /((?:[?&]sig|signature)=)[\w%+/-]{30,65536}/gi,
  // files of passwords
  /(login\s{1,8}\S{1,128}\s{1,8}password\s{1,8})(?![${<])[^\s"'\\]{1,1024}/g,
  new RegExp(
    `((?:auth(?:\\s{0,2}=\\s{0,2})?|\\.login)\\(\\s{0,8}${QUOTE}[^"'\\\\\\r\\n]{1,128}${QUOTE}\\s{0,4},\\s{0,8}${QUOTE})[^"'\\\\\\r\\n]{1,1024}`,
    'gi',
  ),
];

/** What rareValues() finds contains one of these, at the start of a word, or `</`. */
export const RARE_WORDS: readonly string[] = [
  ...[
    'jdbc:',
    'dockerconfig',
    'key>',
    'requirepass',
    'masterauth',
    'Private-Lines',
    '5432:',
    '5433:',
    '6432:',
    '26257:',
  ],
  ...[
    'value(?:["\'\\\\:=&%>]| {1,8}[:=])',
    'lt;/',
    'u003[cC]',
    '3[cC]%2[fF]',
    'content=',
    'identified ',
    'IDENTIFIED ',
    "password \\\\?'",
    "PASSWORD \\\\?'",
    'setx ',
    'setenv',
    'set -[gxU]',
    'ENV ',
    'ARG ',
  ],
  ...['setdefault', 'setItem', 'setRequestHeader', 'setProperty', 'set_var', 'SetEnvironmentVariable', 'putenv'],
  ...[
    'append\\(\\\\?["\']',
    'header\\(\\\\?["\']',
    'define\\(\\\\?["\']',
    'define\\s',
    'add-mask',
    'ConvertTo-SecureString',
  ],
  ...['variable \\\\?"', 'kty\\\\{0,7}"', 'hooks\\.', 'discord', 'webhook'],
  ...['[Jj](?:wt|WT)', 'JWT', '[Aa]uth', '[Tt]oken', '[Ee]ncryption', '[Ss]igning'].map(
    (name) => `${name}\\w{0,16}\\\\{0,7}": ?\\{`,
  ),
];

/** The same for formats that are seldom seen: most texts need not be searched for each of them. */
export const rareValues = once((): readonly RegExp[] => [
  // a container's environment variable, a field of a form, an entry of a configuration, a header of Postman
  new RegExp(
    `((?:name|key|id|header|variable)${COLON_OR_END}${NAMED}(?!\\w)(?:${QUOTE}|<\\/\\w{1,16}>)?${FIELDS}(?<![a-z_])(?:value|content)${COLON_OR_END})${FIELD_VALUE}`,
    'gi',
  ),
  new RegExp(
    `((?:value|content)${COLON}(?<=["']))[^"'\\\\\\r\\n]{1,512}(?=${QUOTE}${FIELDS}(?:name|key|id)${COLON}${NAMED}${QUOTE})`,
    'gi',
  ),
  // XML, property lists; {AQAAA…} is Jenkins'
  new RegExp(
    `(${LESS_THAN}(?:[\\w-]{1,32}:)?${NAMED}(?:\\s[^<>]{0,128})?${GREATER_THAN}(?:<!\\[CDATA\\[)?${SPACE}{0,40})(?:(?![\${@#])(?:(?!${SPACE}|${LESS_THAN})[^<>{}\\s]){1,16384}|\\{[^<>{}]{0,128}AQAAA[^<>{}]{1,16384}\\})(?=${SPACE}{0,40}(?:\\]\\]>|${LESS_THAN}${SLASH}))`,
    'gi',
  ),
  /(jdbc:oracle:[a-z\d]{1,8}:[^\s/:@"']{1,128}\/)[^\s@"']{1,128}(?=@)/g,
  /(\.dockerconfigjson["']?\s{0,4}:\s{0,4}["']?)[A-Za-z0-9+/]{12,65536}={0,2}/g,
  new RegExp(`(<key>${NAMED}<\\/key>${SPACE}{0,40}<string>)(?!\\$)[^<>]{1,16384}`, 'gi'),
  /((?:^|\n|\\n)[\w.*-]{1,253}:(?:5432|5433|6432|26257|\*):[\w.*-]{1,63}:[\w.*-]{1,63}:)[^\s"':\\]{3,1024}(?=$|[\r\n]|\\n)/g,
  /((?:requirepass|masterauth)\s{1,4})(?!["'$<])[^\s"'\\]{3,1024}/g,
  /(Private-Lines: \d{1,3}\s{1,2})(?:[A-Za-z0-9+/=]{1,64}\s{1,2}){1,200}/g,
  // SQL
  /((?:identified\s{1,4}(?:with\s{1,4}\w{1,64}\s{1,4})?by|password)\s{1,4}\\?')[^'\\\r\n]{1,1024}(?=\\?')/gi,
  // shells
  new RegExp(
    `((?:setx|setenv|set -[gxU]{1,3}|ENV|ARG)\\s{1,4}${NAMED}\\s{1,4}(?:${QUOTE})?)(?![\${<%])[^\\s"'\\\\]{3,16384}`,
    'g',
  ),
  /(::add-mask::)(?!\))[^\s"'\\$]{3,16384}/g,
  new RegExp(`(ConvertTo-SecureString\\s{1,4}(?:-String\\s{1,4})?${QUOTE})[^"'$\\\\\\r\\n]{1,1024}`, 'gi'),
  // calls
  new RegExp(
    `((?:setenv|putenv|setdefault|setItem|setRequestHeader|SetEnvironmentVariable|setProperty|append|header|set_var|define)\\(\\s{0,8}\\\\?["']${NAMED}\\\\?["']\\s{0,4},\\s{0,8}\\\\?["'])[^"'\\\\\\r\\n]{1,16384}`,
    'gi',
  ),
  new RegExp(`(#define\\s{1,8}${NAMED}\\s{1,32}\\\\?")[^"\\\\\\r\\n]{1,1024}`, 'gi'),
  // blocks whose name is that of the secret
  new RegExp(
    `(variable\\s{1,4}${QUOTE}${NAMED}${QUOTE}\\s{0,8}\\{[^{}]{0,400}?default\\s{0,16}=\\s{0,8}${QUOTE})[^"\\\\$\\r\\n]{1,16384}`,
    'gi',
  ),
  new RegExp(
    `((?:jwt|auth|token|encryption|signing)\\w{0,16}${QUOTE}\\s{0,8}:\\s{0,8}\\{[^{}]{0,400}?${QUOTE}(?:signing|signature)?key${QUOTE}\\s{0,8}:\\s{0,8}${QUOTE})[^"'\\\\]{6,16384}`,
    'gi',
  ),
  new RegExp(
    `(kty${QUOTE}\\s{0,4}:\\s{0,4}${QUOTE}(?:(?!kty\\\\{0,7}")[^{}]){0,2048}?${QUOTE}[dk]${QUOTE}\\s{0,4}:\\s{0,4}${QUOTE})[\\w-]{20,2048}`,
    'g',
  ),
  // webhook URLs of chat channels
  /(hooks\.slack\.com\/(?:services|workflows|triggers)\/)[\w/-]{20,65536}/g,
  /(discord(?:app)?\.com\/api\/webhooks\/\d{1,20}\/)[\w-]{40,65536}/g,
  /(webhook\.office\.com\/webhookb2\/)[\w@/-]{40,65536}/g,
  /(hooks\.zapier\.com\/hooks\/catch\/)[\w/-]{10,65536}/g,
]);

/** Replaces what comes after the first group, unless a name in it says that it is no secret. */
export function redactPrefixed(text: string, patterns: readonly RegExp[]): string {
  let rest = text;
  for (const pattern of patterns) rest = rest.replace(pattern, redactValue);
  return rest;
}

function redactValue(match: string, before: string, ...others: unknown[]): string {
  const groups = others.at(-1);
  return isNamed(groups) && isHarmless(groups.name, groups.prefix, match.slice(before.length))
    ? match
    : before + REDACTED;
}

function isNamed(groups: unknown): groups is { readonly name: string; readonly prefix: string } {
  return typeof groups === 'object' && groups !== null && 'name' in groups;
}
