/** Creates a value when it is first needed: to make all patterns at the start would take a tenth of a hook's time. */
export function once<T>(create: () => T): () => T {
  let value: T | undefined;
  return () => {
    value ??= create();
    return value;
  };
}
