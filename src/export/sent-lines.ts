import type { Selection } from '../observations/build/observation.js';
import type { Entry } from '../state/entry.js';

interface Known {
  readonly sentLine?: number | undefined;
  readonly held?: readonly string[] | undefined;
}

/** An observation that is now held back, or no longer is: the state does not know that yet. */
interface Unsaved {
  readonly key: string;
  readonly line: number;
  readonly isGrowing: boolean;
}

interface Selecting {
  /** Ids that may still grow. They are not selected. */
  readonly growing?: ReadonlySet<string> | undefined;
  /** Everything after this line is new. Up to it, only what was held back is. */
  readonly after?: number | undefined;
  /** The line at which the turn began to count. Once any part has been sent, everything up to here was sent or held back. */
  readonly countsFrom?: number | undefined;
}

/**
 * Up to which line a session, or an agent, has been sent. What can still grow is held back while later lines are sent. The state
 * keeps its ids: if nothing is ever added to it, no later line shows that it is new.
 */
export class SentLines {
  readonly #before: number;
  readonly #held: Set<string>;
  #line: number;
  #atLeast = 0;
  #unsaved: Unsaved[] = [];

  constructor({ sentLine = 0, held = [] }: Known) {
    this.#before = sentLine;
    this.#line = sentLine;
    this.#held = new Set(held);
  }

  /** The last line that something sent depends on. */
  get line(): number {
    return this.#line;
  }

  /** Selects what has not been sent, without what still grows. */
  select({ growing, after = this.#before, countsFrom = 0 }: Selecting): Selection {
    return (parts) => {
      this.#atLeast = Math.max(this.#atLeast, countsFrom);
      const early = Math.max(this.#line, this.#atLeast);
      return parts.filter(({ key = '', line }) => {
        const isGrowing = growing?.has(key) === true;
        const isHeld = this.#held.has(key);
        // It may have been sent although it grows: the turn seemed to be over.
        const isNew = line > after || isHeld;
        const isUnsaved = isNew && (isGrowing || isHeld || line <= early);
        if (isUnsaved && key !== '') this.#unsaved.push({ key, line, isGrowing });
        return isNew && !isGrowing;
      });
    };
  }

  /** Returns what the state has to know once everything is acknowledged that was selected up to a line. */
  reach(line: number): Pick<Entry, 'sentLine' | 'held'> {
    this.#line = Math.max(this.#line, this.#atLeast, line);
    for (const { key, line: own, isGrowing } of this.#unsaved) {
      if (!isGrowing && own <= line) this.#held.delete(key);
      else if (own <= this.#line) this.#held.add(key);
    }
    this.#unsaved = this.#unsaved.filter(({ isGrowing, line: own }) => isGrowing || own > line);
    return { sentLine: this.#line, held: this.#held.size > 0 ? [...this.#held] : undefined };
  }

  /** Call when all turns with something held back have been sent. */
  releaseAll(): void {
    this.#held.clear();
    this.#unsaved = [];
  }
}
