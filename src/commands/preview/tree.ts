import { groupBy } from './grouped.js';
import type { ShownObservation, ShownTurn } from './session.js';

/** An observation where it stands in its turn's tree. */
export interface Branch {
  readonly observation: ShownObservation;
  /** 0 for the root. */
  readonly depth: number;
  /** For each level above, and last for itself, whether another follows on it. */
  readonly goesOn: readonly boolean[];
  readonly hasChildren: boolean;
}

/** A turn's observations as a tree: each followed by what hangs below it, in the order of time. */
export function buildTree({ observations }: ShownTurn): Branch[] {
  const ids = new Set(observations.map(({ id }) => id));
  // Whose parent is not there hangs below nothing.
  const below = groupBy(observations, ({ parentId }) => (ids.has(parentId ?? '') ? parentId : undefined));
  const branches: Branch[] = [];
  const add = (parent: string | undefined, above: readonly boolean[]) => {
    const siblings = below.get(parent) ?? [];
    for (const [place, observation] of siblings.entries()) {
      const goesOn = [...above, place < siblings.length - 1];
      branches.push({ observation, depth: above.length, goesOn, hasChildren: below.has(observation.id) });
      add(observation.id, goesOn);
    }
  };
  add(undefined, []);
  return branches;
}

/** An observation and all below it. */
export function findSubtree(branches: readonly Branch[], branch: Branch): ShownObservation[] {
  const start = branches.indexOf(branch);
  const end = branches.findIndex(({ depth }, place) => place > start && depth <= branch.depth);
  return branches.slice(start, end < 0 ? undefined : end).map(({ observation }) => observation);
}
