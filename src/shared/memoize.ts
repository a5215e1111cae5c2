/** Returns a function that calls another one once for each key: that is the first argument, unless `keyOf` says otherwise. */
export function memoize<Args extends readonly unknown[], T>(
  find: (...args: Args) => T,
  keyOf: (...args: Args) => unknown = (...args) => args[0],
): (...args: Args) => T {
  const known = new Map<unknown, T>();
  return (...args) => {
    const key = keyOf(...args);
    if (!known.has(key)) known.set(key, find(...args));
    return known.get(key) as T;
  };
}
