import type { ChainLine } from '../file/line.js';

/** Which line follows which: each line of a conversation names the one before it, and attachments are links too. */
export class ParentChain {
  readonly #parents = new Map<string, { parentUuid: string | undefined; line: number }>();

  remember({ fields: { uuid, parentUuid }, location }: ChainLine): void {
    if (uuid !== undefined) this.#parents.set(uuid, { parentUuid, line: location.number });
  }

  forgetBefore(line: number): void {
    for (const [uuid, parent] of this.#parents) if (parent.line < line) this.#parents.delete(uuid);
  }

  /** The nearest of some lines from which a line with this parent descends. A chain can be circular. */
  findAncestor(parentUuid: string | undefined, candidates: ReadonlySet<string>): string | undefined {
    let uuid = parentUuid;
    for (let steps = 0; uuid !== undefined && steps <= this.#parents.size; steps += 1) {
      if (candidates.has(uuid)) return uuid;
      uuid = this.#parents.get(uuid)?.parentUuid;
    }
    return undefined;
  }
}
