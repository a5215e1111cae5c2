import { createHash } from 'node:crypto';
import { parseBlocks } from '../file/content.js';
import type { ChainLine, Line, UserLine } from '../file/line.js';
import { classifyLine } from './classify-line.js';

/** What a Stop's payload says about the answer. */
export interface AwaitedAnswer {
  /** Instead of its text, so that what is awaited may be written down. */
  readonly hash: string;
  readonly promptId: string | undefined;
  /** Whether a Stop hook has blocked before, so that this is the answer to what it said. */
  readonly isAfterFeedback: boolean;
}

/** Payloads have the text trimmed, transcripts as it was. */
export function hashAnswer(text: string): string {
  return createHash('sha256').update(text.trim()).digest('hex');
}

/**
 * Watches for the line of an answer. When Claude Code starts its Stop hooks, that line is not in the file yet; the hook's
 * payload has its text, trimmed. Only the last answer to the prompt counts: two turns can have the same text, and so can the
 * two answers around a Stop hook that blocks.
 */
export class AnswerWatcher {
  /** The number of the answer's line; undefined until it has come. */
  line: number | undefined;
  /** The number of the prompt's first line; undefined until it has come. */
  promptLine: number | undefined;
  /** Whether a Stop hook has objected to the answer, so that the turn goes on, and ends with another Stop. */
  isObjectedTo = false;
  readonly #answer: AwaitedAnswer;
  readonly #after: number;
  /** The prompt that each line descends from: the turns of two processes can interleave. */
  readonly #promptIds = new Map<string, string>();

  /** As long as the prompt has not been seen, an answer counts only after the line `after`. */
  constructor(answer: AwaitedAnswer, after: number) {
    this.#answer = answer;
    this.#after = after;
  }

  observe(line: Line): void {
    if (line.kind === 'request' || line.kind === 'unreadable' || line.fields.isSidechain) return;
    const promptId = this.#findPromptId(line);
    if (promptId !== undefined && promptId === this.#answer.promptId) this.promptLine ??= line.location.number;
    if (line.kind === 'user') {
      // A line of another prompt does not mean that the answer was not the last one.
      if (!this.#isWanted(promptId)) return;
      if (this.#isLaterFeedback(line)) this.isObjectedTo ||= this.line !== undefined;
      else this.line = undefined;
    } else if (line.kind === 'assistant' && this.#isWanted(promptId)) {
      const isNew = this.promptLine !== undefined || line.location.number > this.#after;
      const last = parseBlocks(line.content).findLast((block) => block.kind === 'text');
      if (isNew && last && hashAnswer(last.text) === this.#answer.hash) this.line = line.location.number;
    }
  }

  /** A hook that runs beside this one may block before this one looks. What it says is in the file then, after the answer. */
  #isLaterFeedback(line: UserLine): boolean {
    const classified = classifyLine(line);
    const isFeedback = classified.role === 'note' && classified.note.kind === 'stop-hook-feedback';
    return isFeedback && !this.#answer.isAfterFeedback;
  }

  /** If nothing has the wanted prompt's id, any answer may be the one. */
  #isWanted(promptId: string | undefined): boolean {
    return promptId === undefined || promptId === this.#answer.promptId || this.promptLine === undefined;
  }

  #findPromptId(line: ChainLine): string | undefined {
    const { uuid, parentUuid } = line.fields;
    const own = line.kind === 'user' ? line.fields.promptId : undefined;
    const promptId = own ?? (parentUuid === undefined ? undefined : this.#promptIds.get(parentUuid));
    if (uuid !== undefined && promptId !== undefined) this.#promptIds.set(uuid, promptId);
    return promptId;
  }
}
