import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { UsageError } from './command-line.js';

/** The user pressed Ctrl-C or Ctrl-D at a question. */
class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** Whether a person is at the terminal. */
export function canAsk(): boolean {
  return process.stdin.isTTY && process.stdout.isTTY;
}

export function noTerminal(hint = 'use --yes; --dry-run shows what would be sent'): UsageError {
  return new UsageError(`there is no terminal to ask in: ${hint}`);
}

/** Returns the answer without surrounding space. */
export function ask(question: string): Promise<string> {
  return readAnswer(question, process.stdout);
}

/** Like `ask`, but what the user types is not shown. */
export async function askHidden(question: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const answer = readAnswer('', nowhere);
  // Print the question only now: until readline has taken over, the terminal itself echoes what is typed.
  process.stdout.write(question);
  return answer.finally(() => process.stdout.write('\n'));
}

export async function confirm(question: string): Promise<boolean> {
  return /^y(?:es)?$/i.test(await ask(`${question} [y/N] `));
}

async function readAnswer(question: string, output: NodeJS.WritableStream): Promise<string> {
  const prompt = createInterface({ input: process.stdin, output, terminal: true });
  const interrupted = once(prompt, 'close').then(() => undefined);
  const answer = await Promise.race([prompt.question(question).catch(() => undefined), interrupted]);
  prompt.close();
  if (answer !== undefined) return answer.trim();
  process.stdout.write('\n');
  throw new Interrupted('stopped; nothing was done');
}
