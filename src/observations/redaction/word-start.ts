import { ESCAPE } from './escapes.js';

/**
 * Returns a pattern for any of these where a word begins, or after an escape. Those that share their first letter are tried
 * together. Both are for speed: in ordinary text, nothing but the first letter of a word is looked at.
 */
export function matchAtWordStart(patterns: readonly string[]): string {
  const groups = new Map<string, string[]>();
  for (const pattern of patterns.flatMap(splitStart)) {
    const letter = /^\w/.exec(pattern)?.[0] ?? '';
    groups.set(letter, [...(groups.get(letter) ?? []), pattern.slice(letter.length)]);
  }
  const alternatives = [...groups].map(([letter, rests]) => `${letter}(?:${rests.join('|')})`);
  return `(?:\\b|(?<=${ESCAPE}))(?:${alternatives.join('|')})`;
}

/** `(?:gsk_|csk-)\w` becomes `gsk_\w` and `csk-\w`, and `[ab]c` becomes `ac` and `bc`. */
function splitStart(pattern: string): string[] {
  const [start = '', words = '', letters = ''] = /^(?:\(\?:([\w|-]+)\)|\[(\w+)\])/.exec(pattern) ?? [];
  const rest = pattern.slice(start.length);
  return start === '' ? [pattern] : (words === '' ? [...letters] : words.split('|')).map((word) => word + rest);
}
