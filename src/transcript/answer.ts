import { blocksOf } from './content.js';
import type { Line } from './line.js';

/**
 * Looks out for the line of an answer. When Claude Code starts its Stop hooks that line is not in the file yet; the hook's
 * payload has its text, trimmed. Only a line beyond `after` counts, and only the last answer: two turns, or the two
 * answers around a Stop hook that blocks, may read the same.
 */
export class AnswerWatch {
  readonly #text: string;
  readonly #after: number;
  #line: number | undefined;

  constructor(text: string, after: number) {
    this.#text = text.trim();
    this.#after = after;
  }

  see(line: Line): void {
    if (line.kind === 'user' && !line.fields.isSidechain) this.#line = undefined;
    if (line.kind !== 'assistant' || line.fields.isSidechain || line.place.number <= this.#after) return;
    const last = blocksOf(line.content).findLast((block) => block.kind === 'text');
    if (last?.text.trim() === this.#text) this.#line = line.place.number;
  }

  /** The number of the answer's line; undefined as long as it is not there. */
  get line(): number | undefined {
    return this.#line;
  }
}
