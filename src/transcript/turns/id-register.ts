/** Which message and tool call ids are taken, and by whom: a line that is repeated elsewhere is not collected again. */
export class IdRegister {
  readonly #owners = new Map<string, number>();
  #collectors = 0;

  /** A number for someone who takes ids. */
  newOwner(): number {
    this.#collectors += 1;
    return this.#collectors;
  }

  /** Takes an id, unless another has it. */
  take(id: string, owner: number): boolean {
    const holder = this.#owners.get(id);
    if (holder === undefined) this.#owners.set(id, owner);
    return holder === undefined || holder === owner;
  }
}
