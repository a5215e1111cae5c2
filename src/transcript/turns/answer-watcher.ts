import { parseBlocks } from '../file/content.js';
import type { Line } from '../file/line.js';

/**
 * Looks out for the line of an answer. When Claude Code starts its Stop hooks that line is not in the file yet; the hook's
 * payload has its text, trimmed. Only a line beyond `after` counts, and only the last answer to the prompt: two turns, or
 * the two answers around a Stop hook that blocks, may read the same.
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

  observe(line: Line): void {
    if ((line.kind !== 'user' && line.kind !== 'assistant') || line.fields.isSidechain) return;
    if (line.kind === 'user') {
      if (!this.#isOfNextPrompt(line.fields.promptId)) this.#line = undefined;
      return;
    }
    if (line.location.number <= this.#after) return;
    const last = parseBlocks(line.content).findLast((block) => block.kind === 'text');
    if (last?.text.trim() === this.#text) this.#line = line.location.number;
  }

  /** A user line behind the answer that is of another prompt takes nothing from the answer. */
  #isOfNextPrompt(promptId: string | undefined): boolean {
    return this.#promptId !== undefined && promptId !== undefined && promptId !== this.#promptId;
  }

  /** The number of the answer's line; undefined as long as it is not there. */
  get line(): number | undefined {
    return this.#line;
  }
}
