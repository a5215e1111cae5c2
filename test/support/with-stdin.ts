import { Readable } from 'node:stream';

/** Runs what reads this process's stdin, with a text there. */
export async function withStdin<T>(text: string, work: () => Promise<T>): Promise<T> {
  const stdin = Object.getOwnPropertyDescriptor(process, 'stdin');
  Object.defineProperty(process, 'stdin', { value: Readable.from([text]), configurable: true });
  try {
    return await work();
  } finally {
    if (stdin) Object.defineProperty(process, 'stdin', stdin);
  }
}
