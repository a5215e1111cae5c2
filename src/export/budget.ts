/** The time there is for reading. Once `check` has found it used up, it stays used up, and what is unread is left to the next run. */
export class ReadingBudget {
  readonly #until: number;
  readonly #stop: AbortSignal | undefined;
  #isUsedUp = false;

  /** `until` is in ms since 1970; `stop` is the user's wish to end. */
  constructor(until: number, stop: AbortSignal | undefined) {
    this.#until = until;
    this.#stop = stop;
  }

  check(): boolean {
    this.#isUsedUp ||= this.#stop?.aborted === true || Date.now() >= this.#until;
    return this.#isUsedUp;
  }

  get isUsedUp(): boolean {
    return this.#isUsedUp;
  }
}
