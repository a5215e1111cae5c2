import { ESCAPE, SHORT_ESCAPE } from './escapes.js';

const WORD_START = `(?:\\b|(?<=${SHORT_ESCAPE}))`;
/** After any escape, which is the first group of the match: a lookbehind for all of them would take a third longer. */
export const WORD_START_OR_ESCAPE = `(\\b|${ESCAPE})`;

/**
 * Returns a pattern for any of these where a word begins, or after an escape. Those that share their first letter are tried
 * together. Both are for speed: in ordinary text, nothing but the first letter of a word is looked at.
 */
export function matchAtWordStart(patterns: readonly string[], start = WORD_START): string {
  const groups = new Map<string, string[]>();
  for (const pattern of patterns.flatMap(splitStart)) {
    const letter = /^\w/.exec(pattern)?.[0] ?? '';
    groups.set(letter, [...(groups.get(letter) ?? []), pattern.slice(letter.length)]);
  }
  const alternatives = [...groups].map(([letter, rests]) => `${letter}(?:${rests.join('|')})`);
  return `${start}(?:${alternatives.join('|')})`;
}

/** `(?:gsk_|csk-)\w` becomes `gsk_\w` and `csk-\w`, and `[ab]c` becomes `ac` and `bc`. */
function splitStart(pattern: string): string[] {
  const [start = '', words = '', letters = ''] = /^(?:\(\?:([\w|-]+)\)|\[(\w+)\])/.exec(pattern) ?? [];
  const rest = pattern.slice(start.length);
  return start === '' ? [pattern] : (words === '' ? [...letters] : words.split('|')).map((word) => word + rest);
}
