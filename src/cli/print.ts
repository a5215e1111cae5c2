/** What a person is told besides what a command gives. */
export function printStderr(words: string): void {
  process.stderr.write(`${words}\n`);
}

/** Resolves when it is written: a pager that reads slowly must not make what follows pile up. */
export function printStdout(text: string): Promise<void> {
  return new Promise((resolve) => process.stdout.write(text, () => resolve()));
}
