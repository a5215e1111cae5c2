import type { LineLocation } from '../file/reader.js';
import type { AnsweredMessage } from './turn.js';

/** The messages to the model that no response has answered yet. */
export class WaitingMessages {
  #waiting: { readonly message: AnsweredMessage; readonly location: LineLocation | undefined }[] = [];
  /** Where those are that the last response answers. */
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

  /** Returns what the response that begins now answers. */
  take(): AnsweredMessage[] {
    const all = this.#waiting;
    this.#waiting = [];
    this.taken = all.flatMap(({ location }) => location ?? []);
    return all.map(({ message }) => message);
  }

  /** Forgets the result of a call. */
  dropResult(toolCallId: string | undefined): void {
    this.#waiting = this.#waiting.filter(({ message }) => message.role === 'user' || message.toolCallId !== toolCallId);
  }

  clear(): void {
    this.#waiting = [];
  }
}
