import { redactPrivateKeys } from './private-keys.js';
import { BARE_VALUE, BEFORE, HINT, NAME_OF_A_SECRET, QUOTED_VALUE, SHAPES, TOKEN } from './secret-patterns.js';

export const REDACTED = '[redacted]';

/** Takes the secrets out of a text. */
export type Redact = (text: string) => string;

/** A rule of the user's own, besides those that are known. */
export interface RedactionRule {
  readonly pattern: RegExp;
  readonly replace: string;
}

/** Takes out provider keys, tokens, private keys, credentials in URLs and headers, and what the user's own rules match. */
export function createRedactor(own: readonly RedactionRule[]): Redact {
  const redact = (text: string): string => {
    let rest = redactPrivateKeys(text).replace(TOKEN, tokenRedacted);
    for (const { mark, pattern } of SHAPES) if (rest.includes(mark)) rest = rest.replace(pattern, REDACTED);
    if (HINT.test(rest)) {
      rest = rest.replace(QUOTED_VALUE, quotedRedacted).replace(BARE_VALUE, bareRedacted);
      for (const pattern of BEFORE) rest = rest.replace(pattern, `$1${REDACTED}`);
    }
    for (const { pattern, replace } of own) rest = rest.replace(pattern, replace);
    return rest;
  };
  return remembering(redact);
}

const REMEMBERED = 32;
const WORTH_REMEMBERING_CHARS = 256;

/** A tool's result is the tool's output and, soon after, what the next generation answers. */
function remembering(redact: Redact): Redact {
  const known = new Map<string, string>();
  return (text) => {
    if (text.length < WORTH_REMEMBERING_CHARS) return redact(text);
    const before = known.get(text);
    if (before !== undefined) return before;
    const redacted = redact(text);
    const [oldest = ''] = known.size < REMEMBERED ? [] : known.keys();
    if (known.size >= REMEMBERED) known.delete(oldest);
    known.set(text, redacted);
    return redacted;
  };
}

/** Whether a field of this name holds a secret, whatever it looks like. */
export function isSecretName(name: string): boolean {
  const [ending] = NAME_OF_A_SECRET.exec(name) ?? [];
  return ending !== undefined && !isHarmless(ending, name.slice(0, -ending.length));
}

const CHARS_BEFORE = 64;
/** What ends in an escape, a newline's or a colour's, is no part of the word behind it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const NO_PART = /(?:\\[nrtbf]|(?:\x1b|\\u001b|\\x1b|\\e|\\033)\[[\d;]{0,9}m)$/;

function tokenRedacted(token: string, place: number, text: string): string {
  const before = text.slice(Math.max(0, place - CHARS_BEFORE), place);
  return /[\w-]$/.test(before) && !NO_PART.test(before) ? token : REDACTED;
}

function quotedRedacted(
  ...[whole, name = '', double = '', single = '', escaped = '', place, text]: QuotedMatch
): string {
  return isHarmless(name, wordBefore(text, place)) ? whole : `${name}${double}${single}${escaped}${REDACTED}`;
}
type QuotedMatch = [
  whole: string,
  name: string,
  double: string | undefined,
  single: string | undefined,
  escaped: string | undefined,
  place: number,
  text: string,
];

/** Where a value is not quoted the name, and what it looks like, must tell it from code. */
function bareRedacted(
  whole: string,
  name: string,
  between: string,
  value: string,
  place: number,
  text: string,
): string {
  const prefix = wordBefore(text, place);
  if (isHarmless(name, prefix) || NO_VALUE.test(value)) return whole;
  const isLoud = !/[a-z]/.test(prefix.replace(NO_PART, '') + name);
  const before = text.slice(Math.max(0, place - CHARS_BEFORE), place - prefix.length);
  const isOwnLine = LINE_START.test(before) || /\\[nr]$/.test(prefix);
  const isAssignment = between === '=' || (between.includes('=') && /^aws_/i.test(prefix + name));
  if (!isAssignment && !(between.startsWith(':') && isOwnLine)) return whole;
  if (isAssignment && (isLoud || /[?&;]$/.test(before))) return `${name}${between}${REDACTED}`;
  const [word = ''] = WORD.exec(value) ?? [];
  const isCode = value.charAt(word.length) === '(' || word.length < SHORTEST_VALUE || (!isLoud && !/\d/.test(word));
  return isCode ? whole : `${name}${between}${REDACTED}${value.slice(word.length)}`;
}

const SHORTEST_VALUE = 6;
/** A variable, a path, a call, a comparison, or a mere number. */
const NO_VALUE = /^(?:[$/=<{(%*[]|process\.env|os\.|\d{1,20}(?![\w.-]))/;
const WORD = /^[^(){}<>[\],]*/;
const LINE_START = /(?:^|[\r\n]|\\[nr])[ \t]*(?:- )?$/;

function wordBefore(text: string, place: number): string {
  return /[\w\\-]*$/.exec(text.slice(Math.max(0, place - CHARS_BEFORE), place))?.[0] ?? '';
}

/** `jsonwebtoken`, `forgotPassword`: names that only end like a secret's. */
function isHarmless(name: string, before: string): boolean {
  return (/^token/i.test(name) && /web$/i.test(before)) || (/^password/i.test(name) && /forgot[_-]?$/i.test(before));
}
