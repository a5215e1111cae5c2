import { REDACTED } from './mark.js';
import { textBefore, wordBefore } from './secret-names.js';
import { isReference, isUuid, looksSecret } from './secret-values.js';

/**
 * What follows the name of a flag: `--password value`, `-Token "value"`, `"--api-key", "value"`, `/pass:value`. With `=` it
 * looks like any other name and value.
 */
export const FLAG_VALUE =
  '(?<separator>(?:(?<=(?:^|[^\\w)\\]-])--?[A-Za-z][\\w-]{0,60})(?:[ \\t]{1,4}|\\\\{0,7}["\'],\\s{0,4})|(?<=\\s\\/\\w{1,16}):)' +
  '(?:\\$?\\\\{0,7}["\'])?)(?!-)' +
  '(?<value>(?<=["\'])(?:(?!\\\\{0,7}["\'])[^\\r\\n]){1,4096}|(?:[^\\s"\'`\\\\]|\\\\(?![nrt"\'\\\\])){3,4096})';

/** A reference, a path, a constant, or a placeholder. */
const NO_VALUE =
  /^(?:[$<{[(]|%\w+%|[~.]{0,2}\/|\.{3}|(?:id|name|type|env|file|source|src|projects)[=/:]|\[redacted\]|(?:true|false|yes|no|none|null|string|value|stdin)\W*$|[A-Z][A-Z_]*$|\w+\.(?:pem|key|txt|json|ya?ml|env|p12|pfx|crt|jks|ts|js|md|py|go|sh)$)/;
/** After a space: another flag, an operator, or a word of a sentence. */
const NO_WORD = /^(?:[-=|>&@]|[a-z]{1,16}[.,;:)\]]*$)/;

/** Whether a name is that of a flag. */
export function isFlag(text: string, index: number): boolean {
  const flag = wordBefore(text, index);
  return /^--?(?:[A-Za-z]|$)/.test(flag) && !/[\w)\]]$/.test(textBefore(text, index - flag.length, 1));
}

export function redactFlag(match: string, name: string, separator: string, value: string, after: string): string {
  if (isReference(value) || isHarmlessValue(name, value)) return match;
  if (!/["'=]$/.test(separator) && NO_WORD.test(value) && !(/^pass/i.test(name) && isArgument(value, after)))
    return match;
  const [tail = ''] = /\s$/.test(separator) ? (/[,;)}\]>]*$/.exec(value) ?? []) : [];
  return `${name}${separator}${REDACTED}${tail}`;
}

/** A plain word is a password at the end of a command, or before another flag, unless it is one of the words about flags. */
function isArgument(value: string, after: string): boolean {
  return /^(?:$|[\r\n]| -| [|&>]|\\[nr"])/.test(after) && /^[a-z]{4,16}$/.test(value) && !ABOUT_FLAGS.test(value);
}

const ABOUT_FLAGS =
  /^(?:option|flag|argument|parameter|value|string|prompt|file|stdin|text|password|here|instead|again|with|from)s?$/;

function isHarmlessValue(name: string, value: string): boolean {
  if (/^(?:secret|credentials?)/i.test(name) && !looksSecret(value) && !isUuid(value)) return true;
  if (/^pass$/i.test(name) && /^\d{1,2}$/.test(value)) return true;
  return NO_VALUE.test(value);
}
