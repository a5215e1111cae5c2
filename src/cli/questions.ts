import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';

/** The user has left a question unanswered, with Ctrl-C or Ctrl-D. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** Whether there is someone to ask. */
export function canAsk(): boolean {
  return process.stdin.isTTY && process.stdout.isTTY;
}

/** What the user answers, without the space around it. */
export function ask(question: string): Promise<string> {
  return answerTo(question, process.stdout);
}

/** The same, and nothing of it is shown. */
export async function askHidden(question: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const answer = answerTo('', nowhere);
  // Not before: until then the terminal itself would show what is typed.
  process.stdout.write(question);
  return answer.finally(() => process.stdout.write('\n'));
}

export async function confirm(question: string): Promise<boolean> {
  return /^y(?:es)?$/i.test(await ask(`${question} [y/N] `));
}

function answerTo(question: string, output: NodeJS.WritableStream): Promise<string> {
  const prompt = createInterface({ input: process.stdin, output, terminal: true });
  return new Promise((resolve, reject) => {
    const stop = () => {
      process.stdout.write('\n');
      reject(new Interrupted('stopped; nothing was done'));
    };
    prompt.on('close', stop);
    prompt.question(question, (answer) => {
      resolve(answer.trim());
      prompt.off('close', stop);
      prompt.close();
    });
  });
}
