import { FLAG_VALUE, isFlag, redactFlag } from './flags.js';
import { REDACTED } from './mark.js';
import { isHarmlessName, isVagueName, NAME, textBefore, wordBefore } from './secret-names.js';
import { isMixed, isPath, isReference, looksSecret, TECHNICAL } from './secret-values.js';

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const COLOUR = /(?:(?:\x1b|\\u001b|\\x1b|\\e|\\033)\[[\d;]{0,9}m){0,2}/.source;
/** The type of a variable, between its name and `=`. */
const TYPE = "(?:\\??:[ \\t]{0,3}[&\\w][\\w.<>&' ]{0,32}=(?!=)[ \\t]{0,3})";

/** `"name": "value"`, `name = 'value'`, and the same inside a string. */
const QUOTED =
  `(?<before>(?:\\\\{0,7}["'\`])?\\]?(?:\\[\\d{0,4}\\])?${COLOUR}\\s{0,8}(?:${TYPE}|=>|:=|\\?\\?=|\\|\\|=|[:=]\\*{0,2}|[ \\t](?=[ \\t]{0,8}\\\\?["']))\\s{0,8}${COLOUR}[bfru@]{0,2})` +
  '(?:(?<double>")(?:\\\\.|[^"\\\\\\r\\n]){1,16384}|(?<single>\')(?:\\\\.|[^\'\\\\\\r\\n]){1,16384}|' +
  '(?<backtick>`)(?:\\\\.|[^`\\\\\\r\\n]){1,16384}|(?<escaped>\\\\["\'])(?:\\\\{3}["\']|(?!\\\\["\'])[^\\r\\n]){1,16384}|' +
  '(?<nested>\\\\{2,7}["\'])(?:(?!\\\\{1,7}["\'])[^\\r\\n]){1,16384})';

/**
 * `NAME=value` and `name: value`, which may also be code. A value goes up to a space or a quote: only where another `name=`
 * follows, `&` and `;` separate. A backslash belongs to it unless it begins an escape.
 */
const BARE =
  `(?<between>${COLOUR}(?:[ \\t]{0,3}\\??=[ \\t]{0,3}|:\\*{0,2}[ \\t]{1,8}|[ \\t](?:is|was)(?: now)?:?[ \\t])${COLOUR})` +
  '(?<bare>[^\\s"\'`\\\\](?:[^\\s"\'`\\\\&;\\x1b]|["\'](?=\\w)|\\\\{1,2}(?![nrtu"\'\\\\])|[&;](?![\\w .%-]{1,40}=)){2,65536})';

/** One pattern for all, since most of the time is spent on looking for the names. */
const NAMED_VALUE = new RegExp(`(?<name>${NAME})(?:${QUOTED}|${BARE}|${FLAG_VALUE})`, 'gi');

interface NamedValue {
  readonly [group: string]: string | undefined;
}

export function redactNamedValues(text: string): string {
  return text.replace(NAMED_VALUE, (match: string, ...rest: unknown[]) => {
    const [index, , groups] = rest.slice(-3) as [number, string, NamedValue];
    const after = text.slice(index + match.length, index + match.length + 3);
    const { name = '', before, between = '', bare = '', separator, value = '' } = groups;
    const prefix = wordBefore(text, index);
    if (prefix.endsWith('-no-')) return match;
    if (before !== undefined) {
      const { double = '', single = '', backtick = '', escaped = '', nested = '' } = groups;
      const opening = before + double + single + backtick + escaped + nested;
      const quoted = match.slice(name.length + opening.length);
      if (before.trim() !== '') return redactQuoted(match, name, opening, quoted, prefix);
      if (isFlag(text, index)) return redactFlag(match, name, opening, quoted, after);
      return isWholeLine(text, index, match) ? redactQuoted(match, name, opening, quoted, prefix) : match;
    }
    if (separator !== undefined) return redactFlag(match, name, separator, value, after);
    if (between === '=' && isFlag(text, index)) return redactFlag(match, name, between, bare, after);
    return redactBare(match, name, between, bare, index, text);
  });
}

/** `storePassword "value"` is a setting only if nothing else is on its line. */
function isWholeLine(text: string, index: number, match: string): boolean {
  const end = index + match.length;
  return (
    /(?:^|[\r\n]|\\[nr])[ \t]*\w*$/.test(textBefore(text, index)) &&
    /^\\?["'][ \t]*(?:$|[\r\n]|\\[nr])/.test(text.slice(end, end + 16))
  );
}

function redactQuoted(match: string, name: string, opening: string, value: string, prefix: string): string {
  const isHarmless =
    isHarmlessName(name, prefix) ||
    isReference(value) ||
    isHarmlessFor(name, value) ||
    (opening.endsWith('`') && isProse(opening, value));
  return isHarmless ? match : `${name}${opening}${REDACTED}`;
}

/** Backticks are quotes of templates, and of words in comments. */
function isProse(opening: string, value: string): boolean {
  return value.includes('${') || (/:\s*`$/.test(opening) && !looksSecret(value));
}

/** `"pwd": "/home/me"` is a folder, and `"pass": "ok"` a result. */
function isHarmlessFor(name: string, value: string): boolean {
  if (/^pwd/i.test(name)) return /^(?:[/~.]|[A-Za-z]:[\\/])/.test(value);
  if (/^pass(?![a-z])/i.test(name)) return /^(?:pass(?:ed)?|fail(?:ed)?|ok|[\d/. %]+)$/i.test(value);
  return isVagueName(name) && !looksSecret(value);
}

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
const AFTER_USER = /(?:\b|\\[nrt])(?:user(?:name)?|login|e-?mail)\b[^\r\n]{0,40}$/i;
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
    const isSecret = isMixed(core) || (looksSecret(core) && AFTER_USER.test(before));
    return separator !== '=' && isSecret && !isCode(value, core, false) ? kept + tail : match;
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
