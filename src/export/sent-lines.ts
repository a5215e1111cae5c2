import type { Selection } from '../observations/build/observation.js';
import type { Entry } from '../state/entry.js';

interface Known {
  readonly sentLine?: number | undefined;
  readonly held?: readonly string[] | undefined;
}

/** What the state does not know yet to be held back, or not to be any more. */
interface Unsaved {
  readonly key: string;
  readonly line: number;
  readonly isGrowing: boolean;
}

interface Progress {
  /** What may still grow: it is not selected. */
  readonly growing?: ReadonlySet<string> | undefined;
  /** Up to this line, all is new that was not held back. */
  readonly after?: number | undefined;
  /** The line that made the turn count. Up to there all of it is sent or held back, once anything of it is sent. */
  readonly countsFrom?: number | undefined;
}

/**
 * Up to which line a session, or an agent, has been sent. What can still grow is held back while later lines are sent, so the state
 * has to know what that is: if nothing is ever added to it, no later line says that it is new.
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

  /** The last line that anything depends on which has been sent. */
  get line(): number {
    return this.#line;
  }

  /** Selects what has not been sent, without what still grows. */
  select({ growing, after = this.#before, countsFrom = 0 }: Progress): Selection {
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

  /** Call when all turns are sent that something was held back of. */
  releaseAll(): void {
    this.#held.clear();
    this.#unsaved = [];
  }
}
