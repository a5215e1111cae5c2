import type { Kept } from '../state/entry.js';
import type { Turn } from '../transcript/turns/turn.js';

/**
 * The turns that were not sent, or not whole, although a later one was. Everything else before the last turn that was sent has been
 * acknowledged, is muted, or is sent by another session.
 */
export class KeptTurns {
  readonly #before: ReadonlySet<number>;
  /** By the first bytes of their prompts. */
  readonly #kept: Map<number, Kept>;
  /** Those that this export has read. */
  readonly #read = new Map<number, Kept>();

  constructor(known: readonly Kept[] = []) {
    this.#kept = new Map(known.map((each) => [each.prompts[0] ?? 0, each]));
    this.#before = new Set(this.#kept.keys());
  }

  /** Whether an earlier export has kept this turn. */
  has({ prompts }: Turn): boolean {
    return this.#before.has(prompts[0].offset);
  }

  keep({ prompts }: Turn, why: Kept['why']): void {
    const [{ offset: first }] = prompts;
    const kept = { prompts: prompts.map(({ offset }) => offset), why };
    this.#read.set(first, kept);
    if (this.#kept.has(first)) this.#kept.set(first, kept);
  }

  /** Call when a turn is sent, or never will be. */
  remove({ prompts }: Turn): void {
    this.#kept.delete(prompts[0].offset);
    this.#read.delete(prompts[0].offset);
  }

  /** Call when a later turn is sent. */
  settle(): void {
    for (const [first, kept] of this.#read) this.#kept.set(first, kept);
  }

  /** Call when the transcript has been read from the top, and its turns are over up to a byte. */
  forgetUnread(closedTo: number): void {
    for (const first of this.#kept.keys()) if (first < closedTo && !this.#read.has(first)) this.#kept.delete(first);
  }

  list(): Kept[] | undefined {
    return this.#kept.size > 0 ? [...this.#kept.values()] : undefined;
  }
}
