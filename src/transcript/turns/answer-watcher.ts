import { parseBlocks } from '../file/content.js';
import type { Line } from '../file/line.js';

/**
 * Watches for the line of an answer. When Claude Code starts its Stop hooks, that line is not in the file yet; the hook's
 * payload has its text, trimmed. Only a line after `after` counts, and only the last answer to the prompt: two turns can
 * have the same text, and so can the two answers around a Stop hook that blocks.
 */
export class AnswerWatcher {
  /** The number of the answer's line; undefined until it has come. */
  line: number | undefined;
  readonly #answer: { readonly text: string; readonly promptId: string | undefined };
  readonly #after: number;

  constructor({ text, promptId }: { text: string; promptId: string | undefined }, after: number) {
    this.#answer = { text: text.trim(), promptId };
    this.#after = after;
  }

  observe(line: Line): void {
    if ((line.kind !== 'user' && line.kind !== 'assistant') || line.fields.isSidechain) return;
    const { text, promptId } = this.#answer;
    if (line.kind === 'user') {
      // A line of the next prompt does not mean that the answer was not the last one.
      const isSamePrompt = line.fields.promptId === promptId;
      if (isSamePrompt || promptId === undefined || line.fields.promptId === undefined) this.line = undefined;
    } else if (line.location.number > this.#after) {
      const last = parseBlocks(line.content).findLast((block) => block.kind === 'text');
      if (last?.text.trim() === text) this.line = line.location.number;
    }
  }
}
