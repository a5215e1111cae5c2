import type { BuildOptions } from '../observations/build/trace.js';
import type { EntryWriter } from './entry-writer.js';
import type { ExactRequests } from './exact-requests.lazy.js';
import type { ExportContext, ExportRequest } from './export-request.js';
import type { Start } from './start-position.js';

/** What git knows of a folder. */
export type GitFacts = Pick<BuildOptions, 'userId' | 'repository'>;

/** One run through a session. */
export interface SessionRun {
  readonly request: ExportRequest;
  readonly context: ExportContext;
  readonly start: Start;
  readonly writer: EntryWriter;
  readonly budget: ReadingBudget;
  /** Undefined if generations show only what they answer. */
  readonly requests: ExactRequests | undefined;
  /** Read once for each folder. */
  readonly gitFacts: Map<string | undefined, GitFacts>;
}

/** The time there is for reading. Once `check` has found it used up, it stays so, and what is unread is left to the next run. */
export class ReadingBudget {
  readonly #until: number;
  readonly #stop: AbortSignal | undefined;
  isUsedUp = false;

  constructor({ deadline, stop }: ExportContext) {
    this.#until = (Date.now() + deadline) / 2;
    this.#stop = stop;
  }

  check(): boolean {
    this.isUsedUp ||= this.#stop?.aborted === true || Date.now() >= this.#until;
    return this.isUsedUp;
  }
}
