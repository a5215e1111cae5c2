import type { ShownObservation } from '../src/commands/preview/session.js';
import type { Branch } from '../src/commands/preview/tree.js';

/** What ran side by side, by its kind. */
export interface Lane {
  readonly name: string;
  /** Each row has what did not overlap. */
  readonly rows: readonly (readonly ShownObservation[])[];
}

const NAMES = { generation: 'generations', tool: 'tools', agent: 'subagents', event: 'events' } as const;

/** The lanes of a turn: what its own thread did, and its subagents, each as a whole. */
export function lanesOf(branches: readonly Branch[]): Lane[] {
  const own = ofOwnThread(branches);
  return (['generation', 'tool', 'agent', 'event'] as const).flatMap((type) => {
    const members = own.filter((observation) => observation.type === type);
    return members.length > 0 ? [{ name: NAMES[type], rows: packed(members) }] : [];
  });
}

function ofOwnThread(branches: readonly Branch[]): ShownObservation[] {
  const own: ShownObservation[] = [];
  let agentDepth = Number.POSITIVE_INFINITY;
  for (const { observation, depth } of branches) {
    if (depth === 0) continue;
    if (depth <= agentDepth) agentDepth = Number.POSITIVE_INFINITY;
    if (depth > agentDepth && observation.type !== 'agent') continue;
    if (observation.type === 'agent') agentDepth = Math.min(agentDepth, depth);
    own.push(observation);
  }
  return own;
}

function packed(members: readonly ShownObservation[]): ShownObservation[][] {
  const rows: ShownObservation[][] = [];
  for (const member of members) {
    const row = rows.find((each) => (each.at(-1)?.endTime ?? 0) <= member.startTime);
    if (row) row.push(member);
    else rows.push([member]);
  }
  return rows;
}
