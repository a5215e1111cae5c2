import { redactPrivateKeys } from './private-keys.js';
import * as patterns from './secret-patterns.js';

export const REDACTED = '[redacted]';

/** Returns the text without its secrets. */
export type Redact = (text: string) => string;

/** A text cannot be redacted as the user wants, so that nothing of it may be sent. The message does not contain any of it. */
export class RedactionError extends Error {
  override readonly name = 'RedactionError';
}

/** By its name, since each bundle of the program has a class of its own. */
export function isRedactionError(error: unknown): error is RedactionError {
  return error instanceof Error && error.name === 'RedactionError';
}

/** Redacts private keys, then everything in secret-patterns.ts, then what the user's own rules match. */
export function createRedactor(ownRules: readonly Redact[]): Redact {
  return withCache((text) => {
    let rest = redactPrivateKeys(text).replace(patterns.TOKEN, redactToken);
    for (const { mark, pattern } of patterns.TOKENS_BY_MARK)
      if (rest.includes(mark)) rest = rest.replace(pattern, REDACTED);
    if (patterns.HINT.test(rest)) {
      rest = rest.replace(patterns.QUOTED_VALUE, redactQuoted).replace(patterns.BARE_VALUE, redactBare);
      for (const pattern of patterns.PREFIXED_VALUES) rest = rest.replace(pattern, `$1${REDACTED}`);
    }
    for (const redactOwn of ownRules) rest = redactOwn(rest);
    return rest;
  });
}

const CACHE_SIZE = 32;
const MIN_CACHED_CHARS = 256;

/** A tool's result is redacted twice: as the tool's output and, soon after, as what the next generation answers. */
function withCache(redact: Redact): Redact {
  const cache = new Map<string, string>();
  return (text) => {
    if (text.length < MIN_CACHED_CHARS) return redact(text);
    const redacted = cache.get(text) ?? redact(text);
    const [oldest] = cache.keys();
    if (oldest !== undefined && cache.size === CACHE_SIZE && !cache.has(text)) cache.delete(oldest);
    cache.set(text, redacted);
    return redacted;
  };
}

/** Whether a field of this name holds a secret, whatever its value looks like. */
export function isSecretName(name: string): boolean {
  const [ending] = patterns.SECRET_NAME.exec(name) ?? [];
  return ending !== undefined && !isHarmless(ending, name.slice(0, -ending.length));
}

/** How much of the text before a match is looked at. */
const CHARS_BEFORE = 64;
/** An escape, of a newline or a colour, is not part of the word after it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const ESCAPE_AT_END = /(?:\\[nrtbf]|(?:\x1b|\\u001b|\\x1b|\\e|\\033)\[[\d;]{0,9}m)$/;

function redactToken(token: string, index: number, text: string): string {
  const before = textBefore(text, index);
  return /[\w-]$/.test(before) && !ESCAPE_AT_END.test(before) ? token : REDACTED;
}

/** One of the three groups is the opening quote. */
function redactQuoted(match: string, name: string, q1 = '', q2 = '', q3 = '', index: number, text: string): string {
  return isHarmless(name, wordBefore(text, index)) ? match : `${name}${q1}${q2}${q3}${REDACTED}`;
}

const MIN_VALUE_CHARS = 6;
/** A variable, a path, a call, a comparison, or just a number. */
const NO_VALUE = /^(?:[$/=<{(%*[]|process\.env|os\.|\d{1,20}(?![\w.-]))/;
const WORD = /^[^(){}<>[\],]*/;
const LINE_START = /(?:^|[\r\n]|\\[nr])[ \t]*(?:- )?$/;

/** A value without quotes may be code: its name and what it looks like must decide. */
function redactBare(match: string, name: string, between: string, value: string, index: number, text: string): string {
  const prefix = wordBefore(text, index);
  if (isHarmless(name, prefix) || NO_VALUE.test(value)) return match;
  const isUpperCase = !/[a-z]/.test(prefix.replace(ESCAPE_AT_END, '') + name);
  const before = text.slice(Math.max(0, index - CHARS_BEFORE), index - prefix.length);
  const isOwnLine = LINE_START.test(before) || /\\[nr]$/.test(prefix);
  const isAssignment = between === '=' || (between.includes('=') && /^aws_/i.test(prefix + name));
  if (!isAssignment && !(between.startsWith(':') && isOwnLine)) return match;
  if (isAssignment && (isUpperCase || /[?&;]$/.test(before))) return `${name}${between}${REDACTED}`;
  const [word = ''] = WORD.exec(value) ?? [];
  const isCode =
    value.charAt(word.length) === '(' || word.length < MIN_VALUE_CHARS || (!isUpperCase && !/\d/.test(word));
  return isCode ? match : `${name}${between}${REDACTED}${value.slice(word.length)}`;
}

function wordBefore(text: string, index: number): string {
  return /[\w\\-]*$/.exec(textBefore(text, index))?.[0] ?? '';
}

function textBefore(text: string, index: number): string {
  return text.slice(Math.max(0, index - CHARS_BEFORE), index);
}

/** Some names only end like that of a secret: `jsonwebtoken`, `forgotPassword`. */
function isHarmless(name: string, before: string): boolean {
  return (/^token/i.test(name) && /web$/i.test(before)) || (/^password/i.test(name) && /forgot[_-]?$/i.test(before));
}
