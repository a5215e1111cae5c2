import { redactBlocks } from './blocks.js';
import { COMMAND_WORDS, redactCommandLines } from './command-lines.js';
import { redactManifests } from './manifests.js';
import { REDACTED } from './mark.js';
import { redactNamedValues } from './named-values.js';
import { PREFIXED_VALUES, RARE_WORDS, rareValues, redactPrefixed } from './prefixed-values.js';
import { redactPrivateKeys } from './private-keys.js';
import { isAfterWord } from './secret-names.js';
import { MARK, MARKED_TOKENS, TOKENS } from './tokens.js';
import { matchAtWordStart, WORD_START_OR_ESCAPE } from './word-start.js';

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

/** Every secret with a name or prefix contains one of these. Most texts contain none, and one test is faster than forty. */
const HINT =
  /secret|token|pass|pwd|psk|creds|credential|key|auth|bearer|sig|otlp|:\/\/|%2F%2F|hooks|cookie|mnemonic|phrase|words|add-mask|identified|jwt|connection.?string|private-lines|jdbc|dockerconfig|\bkty\b|\.login\(|:(?:5432|5433|6432|26257|\*):|\bpw\b/i;

/** Redacts what has the form of a secret, then what a name or a command says is one, then what the user's own rules match. */
export function createRedactor(ownRules: readonly Redact[]): Redact {
  return withCache((text) => {
    let rest = text.length < MIN_CHARS ? text : redactKnownForms(text);
    for (const redactOwn of ownRules) rest = redactOwn(rest);
    return rest;
  });
}

/** Roles, types and numbers are shorter than any name with a value. */
const MIN_CHARS = 6;

/** One search finds tokens, and the words without which the text need not be searched for commands and rare formats. */
const WORD = new RegExp(
  matchAtWordStart(
    [...TOKENS, ...COMMAND_WORDS.map((name) => `${name}(?:\\.exe)? `), ...RARE_WORDS],
    WORD_START_OR_ESCAPE,
  ),
  'g',
);
const COMMAND = new RegExp(`^(?:${COMMAND_WORDS.join('|')})(?:\\.exe)? $`);
const RARE_WORD = new RegExp(`^(?:${RARE_WORDS.join('|')})$`);

function redactKnownForms(text: string): string {
  let hasCommand = false;
  let isRare = text.includes(':*:') || text.includes('</');
  let rest = redactPrivateKeys(text).replace(WORD, (match: string, before: string, index: number, whole: string) => {
    const word = match.slice(before.length);
    const isCommand = COMMAND.test(word);
    const isRareWord = !isCommand && RARE_WORD.test(word);
    hasCommand ||= isCommand;
    isRare ||= isRareWord;
    return isCommand || isRareWord || (before === '' && isAfterWord(whole, index)) ? match : before + REDACTED;
  });
  if (MARK.test(rest))
    for (const { mark, token } of MARKED_TOKENS) if (mark.test(rest)) rest = rest.replace(token, REDACTED);
  if (HINT.test(rest)) {
    rest = redactManifests(redactNamedValues(redactBlocks(rest)));
    rest = redactPrefixed(rest, PREFIXED_VALUES);
    if (isRare) rest = redactPrefixed(rest, rareValues());
  }
  return hasCommand ? redactCommandLines(rest) : rest;
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
