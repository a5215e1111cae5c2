import { parseBlocks } from '../file/content.js';
import type { Line } from '../file/line.js';

/**
 * Watches for the line of an answer. When Claude Code starts its Stop hooks, that line is not in the file yet; the hook's
 * payload has its text, trimmed. Only a line after `after` counts, and only the last answer to the prompt: two turns can
 * have the same text, and so can the two answers around a Stop hook that blocks.
 */
export class AnswerWatcher {
  readonly #text: string;
  readonly #after: number;
  readonly #promptId: string | undefined;
  #line: number | undefined;

  constructor({ text, promptId }: { text: string; promptId: string | undefined }, after: number) {
    this.#text = text.trim();
    this.#after = after;
    this.#promptId = promptId;
  }

  /** The number of the answer's line; undefined until it has come. */
  get line(): number | undefined {
    return this.#line;
  }

  observe(line: Line): void {
    if ((line.kind !== 'user' && line.kind !== 'assistant') || line.fields.isSidechain) return;
    const { number } = line.location;
    if (line.kind === 'user') {
      // A user line of the next prompt does not show that the answer was not the last one.
      if (!this.#isOfNextPrompt(line.fields.promptId)) this.#line = undefined;
    } else if (number > this.#after) {
      const last = parseBlocks(line.content).findLast((block) => block.kind === 'text');
      if (last?.text.trim() === this.#text) this.#line = number;
    }
  }

  #isOfNextPrompt(promptId: string | undefined): boolean {
    return this.#promptId !== undefined && promptId !== undefined && promptId !== this.#promptId;
  }
}
