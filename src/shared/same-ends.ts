/** How many items two lists have in common at their beginnings, and how many after that at their ends. */
export function countSameEnds<T>(a: readonly T[], b: readonly T[]): { readonly head: number; readonly tail: number } {
  const shorter = Math.min(a.length, b.length);
  let head = 0;
  while (head < shorter && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
  return { head, tail };
}
