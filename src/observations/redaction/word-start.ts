/**
 * Returns a pattern for any of these where a word begins, or after an escape. Those that share their first letter are tried
 * together. Both are for speed: in ordinary text, nothing but the first letter of a word is looked at.
 */
export function matchAtWordStart(patterns: readonly string[]): string {
  const groups = new Map<string, string[]>();
  for (const pattern of patterns) {
    const letter = /^\w/.exec(pattern)?.[0] ?? '';
    groups.set(letter, [...(groups.get(letter) ?? []), pattern.slice(letter.length)]);
  }
  const alternatives = [...groups].map(([letter, rests]) => `${letter}(?:${rests.join('|')})`);
  return `(?:\\b|(?<=\\\\[nrtbf]|\\[[\\d;]{0,9}m))(?:${alternatives.join('|')})`;
}
