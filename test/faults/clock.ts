import { setTimeout as sleep } from 'node:timers/promises';

/** Gives each line of a transcript a time of its own. */
export class Clock {
  #last = 0;

  next(): number {
    this.#last = Math.max(Date.now(), this.#last + 1);
    return this.#last;
  }

  /** What follows has a later time than now. */
  pass(): void {
    this.next();
  }

  /** Resolves once all lines lie in the past. */
  async catchUp(): Promise<void> {
    while (Date.now() <= this.#last) await sleep(1);
  }
}
