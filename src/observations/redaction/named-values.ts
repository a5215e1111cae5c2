import { REDACTED } from './mark.js';
import { isHarmlessName, isVagueName, NAME, textBefore, wordBefore } from './secret-names.js';

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const COLOUR = /(?:\x1b\[[\d;]{0,9}m){0,2}/.source;
/** The type of a variable, between its name and `=`. */
const TYPE = "(?:\\??:[ \\t]{0,3}[&\\w][\\w.<>&' ]{0,32}=(?!=)[ \\t]{0,3})";

/** `"name": "value"`, `name = 'value'`, and the same inside a string. Only the value is redacted. */
const QUOTED_VALUE = new RegExp(
  `(${NAME}(?:\\\\{0,3}["'\`])?\\]?(?:\\[\\d{0,4}\\])?${COLOUR}\\s{0,8}(?:${TYPE}|=>|:=|\\?\\?=|\\|\\|=|[:=]\\*{0,2})\\s{0,8}${COLOUR}[bfru@]{0,2})` +
    '(?:(")(?:\\\\.|[^"\\\\\\r\\n]){1,16384}|(\')(?:\\\\.|[^\'\\\\\\r\\n]){1,16384}|(`)(?:\\\\.|[^`\\\\\\r\\n]){1,16384}|' +
    '(\\\\{1,3}["\'])(?:(?!\\\\{1,3}["\'])[^\\r\\n]){1,16384})',
  'gi',
);

/**
 * `NAME=value` and `name: value`, which may also be code. A value goes up to a space or a quote: only where another `name=`
 * follows, `&` and `;` separate. A backslash belongs to it unless it begins an escape.
 */
const BARE_VALUE = new RegExp(
  `(${NAME})(${COLOUR}(?:[ \\t]{0,3}\\??=[ \\t]{0,3}|:\\*{0,2}[ \\t]{1,8}|[ \\t](?:is|was)(?: now)?:?[ \\t])${COLOUR})` +
    '((?:[^\\s"\'`\\\\&;\\x1b]|\\\\(?![nrtu"\'\\\\])|[&;](?![\\w .%-]{1,40}=)){3,65536})',
  'gi',
);

export function redactNamedValues(text: string): string {
  return text.replace(QUOTED_VALUE, redactQuoted).replace(BARE_VALUE, redactBare);
}

/** One of the four groups is the opening quote. */
function redactQuoted(
  match: string,
  name: string,
  q1 = '',
  q2 = '',
  q3 = '',
  q4 = '',
  index: number,
  text: string,
): string {
  const opening = name + q1 + q2 + q3 + q4;
  const value = match.slice(opening.length);
  const isHarmless =
    isHarmlessName(name, wordBefore(text, index)) ||
    isReference(value) ||
    isHarmlessFor(name, value) ||
    (q3 !== '' && isProse(opening, value));
  return isHarmless ? match : `${opening}${REDACTED}`;
}

/** Backticks are quotes of templates, and of words in comments. */
function isProse(opening: string, value: string): boolean {
  return value.includes('${') || (/:\s*`$/.test(opening) && !looksSecret(value));
}

/** Something that stands for a secret, and what is already redacted. */
const REFERENCE =
  /^(?:\$\{?[A-Za-z_][A-Za-z_.:]*\}?|\$\{\{[^{}]*\}\}|\$\{[^{}]*\}|\$\([^()]*\)|\{\{[^{}]*\}\}|\{\w*\}|<[^<>]*>|%\w+%|\*+|[xX.…•-]{3,}|\[redacted\]|secretKeyRef|(?:process|import\.meta)\.env[.\w]*)$/;

export function isReference(value: string): boolean {
  return REFERENCE.test(value);
}

/** `"pwd": "/home/me"` is a folder, and `"pass": "ok"` a result. */
function isHarmlessFor(name: string, value: string): boolean {
  if (/^pwd/i.test(name)) return /^(?:[/~.]|[A-Za-z]:[\\/])/.test(value);
  if (/^pass(?![a-z])/i.test(name)) return /^(?:pass(?:ed)?|fail(?:ed)?|ok|[\d/. %]+)$/i.test(value);
  return isVagueName(name) && !looksSecret(value);
}

/** A word with digits in it that a person or a program made up, not the name of something. */
export function looksSecret(value: string): boolean {
  if (value.startsWith('base64:')) return true;
  return (
    value.length >= 6 && /\d/.test(value.replace(TECHNICAL, '')) && /[A-Za-z]/.test(value) && !IDENTIFIER.test(value)
  );
}

/** Digits that belong to the name of a type or an algorithm. */
const TECHNICAL =
  /(?:int|float|double|base|utf-?|sha-?|md|oauth|argon|ed|rs|hs|es|aes-?|ec|rsa|v|x|ipv|http\/?)\d{1,4}/gi;
/** Words and a version or place: `user-key-1`, `oauth2`, `eu-west-1`. A UUID names something, too. */
const IDENTIFIER = /^(?:[a-z]+[._:/-])+[a-z]*\d{0,3}$|^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** A variable, a call, a comparison, a reference of YAML, or just a number. */
const NO_VALUE =
  /^(?:[$=<{(%*[|]|!\w*$|&\w*$|[~.]{0,2}\/|process\.env|import\.meta|os\.|env\.|secrets?\.|\d{1,20}(?![\w.-]))/;
/** The same in a line of shell, where a value may begin with any other character. */
const NO_SHELL_VALUE = /^(?:\$[\w{(]|[=<{([]|%\w+%|[~.]{0,2}\/|process\.env|import\.meta|os\.|\d{1,20}(?![\w.-]))/;
const CONSTANT =
  /^(?:true|false|yes|no|none|null|nil|undefined|on|off|enabled|disabled|required|optional|changeme|\[redacted\])[,;)}\]]*$/i;
const WORD = /^[^(){}<>[\],;|]*/;
/** A line of a file, also in a numbered listing, in a list, or in a diff. */
const LINE_START =
  /(?:^|[\r\n]|\\[nr])[ \t]*(?:\d{1,6}(?:→|\t|[:|] ?|\\t))?[+>-]?[ \t]*(?:- |# ?|\/\/ ?|\*\*|export |set |ENV |ARG )?["'`*]{0,3}$/;
const AFTER_QUERY = /[#)\]}>,;].*$/;
const BASE64 = /^[A-Za-z0-9+/]{30,}={0,2}$/;
const MIN_VALUE_CHARS = 6;

/** A value without quotes may be code: its name and what it looks like must decide. */
function redactBare(match: string, name: string, between: string, value: string, index: number, text: string): string {
  const prefix = wordBefore(text, index);
  if (isHarmlessName(name, prefix) || CONSTANT.test(value) || isHarmlessFor(name, value)) return match;
  const isUpperCase = !/[a-z]/.test(prefix + name);
  const separator = between.replace(/[^=:?]/g, '');
  const isTight = separator === '=' && !/[ \t]/.test(between);
  const isShell = isUpperCase && isTight;
  if ((isShell ? NO_SHELL_VALUE : NO_VALUE).test(value) && !(isShell && isPassword(name, value))) return match;
  const before = textBefore(text, index - prefix.length);
  const isOwnLine = LINE_START.test(before);
  const kept = `${name}${between}${REDACTED}`;
  const isQuery = isTight && /[?&]$/.test(before);
  const [tail = ''] = (isQuery ? AFTER_QUERY : isOwnLine ? /[,;]?$/ : /[,;:.)}\]>]*$/).exec(value) ?? [];
  const core = tail === '' ? value : value.slice(0, -tail.length);
  if (core === '') return match;
  if (isShell || isQuery || (isTight && before.endsWith(';'))) return kept + tail;
  if (core.length < MIN_VALUE_CHARS) return match;
  if (isTight && isSetting(before, prefix + name, value)) return kept + tail;
  if (/\b(?:host|user|username|dbname|port|sslmode|uid)=\S{1,64} $/i.test(before) && isTight) return kept + tail;
  const isAssignment = separator === '=' && (isTight || /^aws_/i.test(prefix + name) || isOwnLine);
  if (!isAssignment && !(separator === ':' && isOwnLine)) {
    return separator !== '=' && isMixed(core) && !isCode(value, core, false) ? kept + tail : match;
  }
  return isCode(value, core, isUpperCase) ? match : kept + tail;
}

/** A number may be a password, but seldom a token; what begins like a path may be Base64. */
function isPassword(name: string, value: string): boolean {
  return (/^P(?:ASS|WD|W)/.test(name) && /^\d{6,20}\W*$/.test(value)) || (BASE64.test(value) && isMixed(value));
}

/** A line of an .ini or .properties file: not indented, and no code in its value. */
function isSetting(before: string, name: string, value: string): boolean {
  return /(?:^|\n|\\n)[+-]?[\w.-]*$/.test(before) && !/[(){}[\],;]/.test(value) && value !== name && !isPath(value);
}

/** `settings.db1.password`: the parts of the names of things end in one or two digits at most. */
function isPath(value: string): boolean {
  return /^[a-z_]+\d{0,2}(?:\.[a-z_]+\d{0,2})+$/i.test(value);
}

function isMixed(value: string): boolean {
  return value.length >= 8 && /[a-z]/.test(value) && /[A-Z]/.test(value) && /\d/.test(value);
}

/** `body.password`, `token` */
const NAMED_LIKE_SECRET = new RegExp(`^(?:[\\w$]{1,64}[.?!]{1,2}){0,8}(?:[\\w$]{1,64}[.?!_])?${NAME}$`, 'i');

function isCode(value: string, core: string, isUpperCase: boolean): boolean {
  const [word = ''] = WORD.exec(value) ?? [];
  if (value.charAt(word.length) === '(') return true;
  if (isUpperCase) return core.length < MIN_VALUE_CHARS;
  const expression = core.replace(/[,;:.)}\]>]+$/, '');
  if (NAMED_LIKE_SECRET.test(expression) || isPath(expression)) return true;
  const plain = core.replace(TECHNICAL, '');
  const isWord = !/\d/.test(plain) && !/[@#%^~+=*&!](?=.)/.test(plain);
  return isWord || (word.length < MIN_VALUE_CHARS && /^\w*[<[]/.test(value.slice(0, word.length + 1)));
}
