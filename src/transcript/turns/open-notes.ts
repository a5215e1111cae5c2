import { NOTE_KINDS } from './note-kinds.js';
import type { CompactionCost, Note } from './turn.js';

/** The notes of a turn that is still open. */
export class OpenNotes {
  /** Those of earlier turns that were never answered. */
  #inherited: readonly Note[];
  #own: Note[] = [];

  constructor(inherited: readonly Note[]) {
    this.#inherited = inherited;
  }

  get own(): readonly Note[] {
    return this.#own;
  }

  get all(): Note[] {
    return [...this.#inherited, ...this.#own];
  }

  add(note: Note): void {
    this.#own.push(note);
  }

  /** Takes what the next turn takes over if this one does not count: all but how this one ended. */
  take(): Note[] {
    const taken = [...this.#inherited, ...this.#own.filter((note) => !tellsEnd(note))];
    this.#own = this.#own.filter(tellsEnd);
    return taken;
  }

  /** The last compaction, if it has no cost yet. */
  get openCompaction(): Note | undefined {
    const last = this.#own.findLast((note) => note.kind === 'compaction');
    return last?.cost === undefined ? last : undefined;
  }

  /** Adds what the last compaction used. Returns whether there is one. */
  addCost(cost: CompactionCost): boolean {
    const last = this.#own.findLastIndex(({ kind }) => kind === 'compaction');
    const note = this.#own[last];
    if (note?.kind !== 'compaction') return false;
    this.#own[last] = { ...note, cost };
    return true;
  }

  /** Forgets those before a line. */
  dropBefore(line: number): void {
    this.#inherited = [];
    this.#own = this.#own.filter((note) => note.line >= line);
  }
}

function tellsEnd({ kind }: Note): boolean {
  return NOTE_KINDS[kind].onlyTellsEnd ?? false;
}
