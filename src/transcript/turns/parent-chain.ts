/** Who follows whom: the lines of a conversation name the line before them, attachments among them. */
export class ParentChain {
  readonly #parents = new Map<string, { parentUuid: string | undefined; line: number }>();

  remember(uuid: string, parentUuid: string | undefined, line: number): void {
    this.#parents.set(uuid, { parentUuid, line });
  }

  forgetBefore(line: number): void {
    for (const [uuid, parent] of this.#parents) if (parent.line < line) this.#parents.delete(uuid);
  }

  /** The nearest of the given lines that a line with this parent descends from. A chain that bites its tail ends. */
  nearestAncestor<T>(parentUuid: string | undefined, among: ReadonlyMap<string, T>): T | undefined {
    let uuid = parentUuid;
    for (let steps = 0; uuid !== undefined && steps <= this.#parents.size; steps += 1) {
      const found = among.get(uuid);
      if (found !== undefined) return found;
      uuid = this.#parents.get(uuid)?.parentUuid;
    }
    return undefined;
  }
}
