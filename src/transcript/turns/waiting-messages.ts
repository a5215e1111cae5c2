import type { LineLocation } from '../file/reader.js';
import type { AnsweredMessage } from './turn.js';

/** The messages to the model that no response has answered yet, and how often the request for one was sent again. */
export class WaitingMessages {
  #waiting: { readonly message: AnsweredMessage; readonly location: LineLocation | undefined }[] = [];
  #retries: LineLocation[] = [];
  /** Where those are that the last response answers, and the retries before it. */
  taken: readonly LineLocation[] = [];
  lastAt: number | undefined;

  /** The tool whose result is the last message, if it is one. */
  get lastToolName(): string | undefined {
    const last = this.#waiting.at(-1)?.message;
    return last?.role === 'tool' ? last.toolName : undefined;
  }

  push(message: AnsweredMessage, at: number, location?: LineLocation): void {
    this.#waiting.push({ message, location });
    this.lastAt = Math.max(this.lastAt ?? at, at);
  }

  addRetry(location: LineLocation): void {
    this.#retries.push(location);
  }

  /** Forgets the retries of a request that has failed for good. */
  dropRetries(): void {
    this.#retries = [];
  }

  /** Returns what the response that begins now answers, and the number of retries before it. */
  take(): { answered: AnsweredMessage[]; retries: number } {
    const [all, retries] = [this.#waiting, this.#retries];
    this.clear();
    this.taken = [...all.flatMap(({ location }) => location ?? []), ...retries];
    return { answered: all.map(({ message }) => message), retries: retries.length };
  }

  /** Forgets the result of a call. */
  dropResult(toolCallId: string | undefined): void {
    this.#waiting = this.#waiting.filter(({ message }) => message.role === 'user' || message.toolCallId !== toolCallId);
  }

  clear(): void {
    this.#waiting = [];
    this.#retries = [];
  }
}
