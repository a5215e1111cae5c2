import { ENCODED_END, ENCODED_QUOTE, ENCODED_SEPARATOR, QUOTE, SHORT_ESCAPE } from './escapes.js';
import { FLAG_VALUE, isFlag, redactFlag } from './flags.js';
import { REDACTED } from './mark.js';
import { KEY, NAME, textBefore, wordBefore } from './secret-names.js';
import { isHarmless, isMixed, isPath, isUuid, looksRandom, looksSecret, TECHNICAL } from './secret-values.js';

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const COLOUR = /(?:(?:\x1b|\\u001b|\\x1b|\\e|\\033)\[[\d;]{0,9}m){0,2}/.source;
/** The type of a variable, between its name and `=`: `token: string =`, `token string =`. */
const TYPE =
  "(?:\\s{0,8}\\??:[ \\t]{0,3}[&\\w][\\w.<>&' ]{0,32}|[ \\t]{1,3}[*\\w][\\w.]{0,32}(?:\\(\\d{1,5}\\))?[ \\t]{1,3})=(?!=)";
/** `=`, and all that ends with it and assigns: `:=`, `::=`, `?=`, `+=`, `.=`, `??=`, `||=`. */
const ASSIGNMENT = '[:?+.|&]{0,3}=\\*{0,2}';
/** After the name of a function that sets a value: `setPassword(`, `withToken(`. */
const SETTER = `(?<=(?:(?<![A-Za-z])|(?<=${SHORT_ESCAPE}))(?:set|with)\\w{1,40})\\([ \\t]{0,8}`;
const IS = '[ \\t](?:is|was)(?: now)?:?[ \\t]';

/** Between a name and its value. */
const SEPARATOR = `${QUOTE}?\\]?(?:\\[\\d{0,4}\\])?${COLOUR}(?:${TYPE}|\\s{0,8}(?:=>|${ASSIGNMENT}|:\\*{0,2}|${ENCODED_SEPARATOR}))`;

/** `"name": "value"`, `name = 'value'`, and the same inside a string, a URL or HTML. */
const QUOTED =
  `(?<before>(?:${SEPARATOR}|${QUOTE}?${COLOUR}[ \\t](?=[ \\t]{0,8}\\\\?["'])|${SETTER}(?=${QUOTE}))\\s{0,8}${COLOUR}[bfru@]{0,2})` +
  '(?:(?<double>")(?:\\\\.|[^"\\\\\\r\\n]){1,16384}|(?<single>\')(?:\\\\.|[^\'\\\\\\r\\n]){1,16384}|' +
  '(?<backtick>`)(?:\\\\.|[^`\\\\\\r\\n]){1,16384}|(?<escaped>\\\\["\'])(?:\\\\{3}["\']|(?!\\\\["\'])[^\\r\\n]){1,16384}|' +
  '(?<nested>\\\\{2,7}["\'])(?:(?!\\\\{1,7}["\'])[^\\r\\n]){1,16384}|' +
  `(?<encoded>${ENCODED_QUOTE})(?:(?!\\k<encoded>)[^\\r\\n]){1,16384})`;

/**
 * `NAME=value` and `name: value`, which may also be code. A value goes up to a space or a quote: only where another `name=`
 * follows, `&` and `;` separate. A backslash belongs to it unless it begins an escape.
 */
const BARE =
  `(?<between>${COLOUR}(?:[ \\t]{0,3}[:?+.|&]{0,3}=[ \\t]{0,3}|:\\*{0,2}[ \\t]{1,8}|${IS})${COLOUR})` +
  '(?<bare>[^\\s"\'`\\\\](?:[^\\s"\'`\\\\&;\\x1b]|["\'](?=\\w)|\\\\{1,2}(?![nrt"\'\\\\]|u[\\da-f]{4}|x[\\da-f]{2})|&(?!(?:amp;)?(?:quot|apos|#\\w{2,4});|[\\w .%-]{1,40}=)|;(?![\\w .%-]{1,40}=)){2,65536})';

/** `name%3Dvalue` in a URL. */
const ENCODED = `(?<equals>${ENCODED_SEPARATOR})(?<url>(?:(?!${ENCODED_END})[\\w.~!*()+/%-]){4,16384})`;

/** The words of a wallet. */
const PHRASE =
  `(?<colon>(?<=phrase|words|mnemonic)(?:${QUOTE}?[ \\t]{0,3}[:=]{1,2}[ \\t]{0,3}|${IS})${QUOTE}?)` +
  '(?<phrase>[a-z]{3,8}(?: [a-z]{3,8}){11,23}(?![a-z]))';

/**
 * Where a value is not always a secret, but is if it looks like one: comparisons, calls (`.apiKey("…")`, `token.assign("…")`),
 * cells of a table (`"token","…"`, `| token | … |`), sentences, and `name:value`.
 */
const LOOSE_SEPARATOR = `(?:${QUOTE}?[ \\t]{0,3}[=!]==?[ \\t]{0,3}|${IS}|(?:\\.(?:assign|set))?\\([ \\t]{0,3}(?=${QUOTE})|${QUOTE}[ \\t]{0,3},[ \\t]{0,3}|,|[ \\t]{1,3}(?:\\|[ \\t]{0,3}|-[ \\t]{1,3})|:)`;
const LOOSE =
  `(?<loose>${LOOSE_SEPARATOR}(?<quote>${QUOTE}?))` +
  '(?<word>(?:(?<=["\'`])[^\\s"\'`\\\\=]{6,512}|[^\\s"\'`\\\\<>(){}[\\],;&|=:]{6,512})={0,2})(?=$|[\\s"\'`\\\\<>(){}[\\],;&|%])';

/** Whatever its name is that of, only a random value is a secret one, so that nothing else is matched. */
const KEYED =
  `(?<opening>(?:${SEPARATOR}\\s{0,8}${COLOUR}(?:[bfru@]{1,2}(?=["']))?|${LOOSE_SEPARATOR}|[ \\t]{1,4})${QUOTE}?)` +
  '(?<random>[\\w+/.~-]{16,512}={0,2})(?![\\w+/=:@~(])';

/** One pattern for all, since most of the time is spent on looking for the names. */
const NAMED_VALUE = new RegExp(
  `(?<name>${NAME})(?:${QUOTED}|${PHRASE}|${BARE}|${FLAG_VALUE}|${ENCODED}|${LOOSE})|(?<key>${KEY})${KEYED}`,
  'gi',
);

interface NamedValue {
  readonly [group: string]: string | undefined;
}

export function redactNamedValues(text: string): string {
  let kept = '';
  let from = 0;
  let next = 0;
  for (;;) {
    // Not in the loop's head: what a match contains is searched with the same pattern.
    NAMED_VALUE.lastIndex = next;
    const match = NAMED_VALUE.exec(text);
    if (match === null) return kept + text.slice(from);
    const redacted = redactMatch(match, text);
    const end = match.index + match[0].length;
    next = redacted === undefined ? match.index + nameOf(match).length : end;
    if (redacted === undefined || redacted === match[0]) continue;
    kept += text.slice(from, match.index) + redacted;
    from = end;
  }
}

function nameOf({ groups }: RegExpExecArray): string {
  return groups?.name ?? groups?.key ?? '';
}

/** Returns undefined if what follows the name belongs to something else. */
function redactMatch({ 0: match, index, groups = {} }: RegExpExecArray, text: string): string | undefined {
  const { name = '', before, between = '', bare = '', separator, value = '', url }: NamedValue = groups;
  const prefix = wordBefore(text, index);
  if (groups.key !== undefined) return redactKey(match, groups, prefix, index, text);
  if (prefix.endsWith('-no-')) return match;
  const after = text.slice(index + match.length, index + match.length + 10);
  if (before !== undefined) {
    const { double = '', single = '', backtick = '', escaped = '', nested = '', encoded = '' }: NamedValue = groups;
    const opening = before + double + single + backtick + escaped + nested + encoded;
    const quoted = match.slice(name.length + opening.length);
    if (before.trim() !== '') return redactQuoted(name, opening, quoted, prefix);
    if (isFlag(text, index)) return redactFlag(match, name, opening, quoted, after);
    return isWholeLine(text, index, match) ? redactQuoted(name, opening, quoted, prefix) : match;
  }
  if (groups.phrase !== undefined) return `${name}${groups.colon}${REDACTED}`;
  if (separator !== undefined) return redactFlag(match, name, separator, value, after);
  if (url !== undefined) return redactQuoted(name, groups.equals ?? '', url, prefix);
  if (groups.loose !== undefined) return redactLoose(groups, after, prefix);
  if (between === '=' && isFlag(text, index)) return redactFlag(match, name, between, bare, after);
  return redactBare(match, name, between, bare, index, text);
}

const CLOSING_QUOTE = new RegExp(`^${QUOTE}`);

function redactLoose(groups: NamedValue, after: string, prefix: string): string | undefined {
  const { name = '', loose = '', quote = '', word = '' } = groups;
  if (quote !== '' && !CLOSING_QUOTE.test(after)) return undefined;
  if (isHarmless(name, prefix, word) || !looksLikeValue(word, after, quote !== '')) return undefined;
  return `${name}${loose}${REDACTED}`;
}

function redactKey(match: string, groups: NamedValue, prefix: string, index: number, text: string): string | undefined {
  const { key = '', opening = '', random = '' } = groups;
  const isArgument = /^[ \t]+(?:\\?["'])?$/.test(opening);
  if (isArgument && !isFlag(text, index) && !isWholeLine(text, index, match)) return undefined;
  if (isPath(random) || NAMED_LIKE_KEY.test(random) || isHarmless(key, prefix, random)) return undefined;
  return key + opening + REDACTED;
}

/** Without quotes the word may be code, or a part of the name of something. */
function looksLikeValue(word: string, after: string, isQuoted: boolean): boolean {
  if (NAMED_LIKE_SECRET.test(word)) return false;
  if (isQuoted) return looksSecret(word) || isUuid(word);
  if (after.startsWith('(') || isCode(word, word, false)) return false;
  return looksRandom(word) || isUuid(word) || (word.length >= 8 && looksSecret(word) && !/[-.:/]/.test(word));
}

/** `storePassword "value"` is a setting only if nothing else is on its line. */
function isWholeLine(text: string, index: number, match: string): boolean {
  const end = index + match.length;
  return (
    /(?:^|[\r\n]|\\[nr])[ \t]*\w*$/.test(textBefore(text, index)) &&
    /^\\?["'][ \t]*(?:$|[\r\n]|\\[nr])/.test(text.slice(end, end + 16))
  );
}

/** A harmless value may be a text with names of its own. */
function redactQuoted(name: string, opening: string, value: string, prefix: string): string {
  const isKept = isHarmless(name, prefix, value) || (opening.endsWith('`') && isProse(opening, value));
  return `${name}${opening}${isKept ? redactNamedValues(value) : REDACTED}`;
}

/** Backticks are quotes of templates, and of words in comments. */
function isProse(opening: string, value: string): boolean {
  return value.includes('${') || (/:\s*`$/.test(opening) && !looksSecret(value));
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
/** `-H "Token: value"` */
const HEADER_START = /(?:-H|--header)[= ]?\\?["']$/;
const AFTER_USER = /(?:\b|\\[nrt])(?:user(?:name)?|login|e-?mail)\b[^\r\n]{0,40}$/i;
const AFTER_QUERY = /[#)\]}>,;].*$/;
const BASE64 = /^[A-Za-z0-9+/]{30,}={0,2}$/;
const MIN_VALUE_CHARS = 6;
/** So many letters and digits without a space are seldom the name of something. */
const MIN_LONG_CHARS = 16;
const LONG_WORD = /^[\w+/=~-]{16,}$/;

/** A value without quotes may be code: its name and what it looks like must decide. */
function redactBare(match: string, name: string, between: string, value: string, index: number, text: string): string {
  const prefix = wordBefore(text, index);
  if (CONSTANT.test(value) || isHarmless(name, prefix, value)) return match;
  const isUpperCase = !/[a-z]/.test(prefix + name);
  const operator = between.replace(/[^=:?+.|&]/g, '');
  const separator = isUpperCase && operator.endsWith('=') ? '=' : operator;
  const isTight = separator === '=' && !/[ \t]/.test(between);
  const isShell = isUpperCase && isTight;
  if ((isShell ? NO_SHELL_VALUE : NO_VALUE).test(value) && !(isShell && isPassword(name, value))) return match;
  const before = textBefore(text, index - prefix.length);
  const isOwnLine = LINE_START.test(before) || HEADER_START.test(before);
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
    const isSecret =
      isMixed(core) ||
      isUuid(core) ||
      (looksSecret(core) && (core.length >= MIN_LONG_CHARS || isPasswordName(name) || AFTER_USER.test(before)));
    return isSecret && (operator !== '=' || LONG_WORD.test(core)) && !isCode(value, core, false) ? kept + tail : match;
  }
  return isCode(value, core, isUpperCase) ? match : kept + tail;
}

function isPasswordName(name: string): boolean {
  return /^P(?:ASS|WD|W)/i.test(name);
}

/** A number may be a password, but seldom a token; what begins like a path may be Base64. */
function isPassword(name: string, value: string): boolean {
  return (/^P(?:ASS|WD|W)/.test(name) && /^\d{6,20}\W*$/.test(value)) || (BASE64.test(value) && isMixed(value));
}

/** A line of an .ini or .properties file: not indented, and no code in its value. */
function isSetting(before: string, name: string, value: string): boolean {
  return /(?:^|\n|\\n)[+-]?[\w.-]*$/.test(before) && !/[(){}[\],;]/.test(value) && value !== name && !isPath(value);
}

/** `body.password`, `users[0].password`, `token` */
const NAMED_LIKE_SECRET = new RegExp(
  `^(?:[\\w$]{1,64}(?:\\[\\w{1,8}\\])?[.?!]{1,2}){0,8}(?:[\\w$]{1,64}[.?!_])?${NAME}$`,
  'i',
);

/** `attributes.ITEM_KEY` */
const NAMED_LIKE_KEY = new RegExp(`(?:${NAME}|${KEY})$`, 'i');

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
