import type { Branch, ShownObservation } from '../src/commands/preview/view-model.js';

/** The observations of one type in rows. */
interface Lane {
  readonly name: string;
  /** The observations of a row do not overlap. */
  readonly rows: readonly (readonly ShownObservation[])[];
}

const NAMES = { generation: 'generations', tool: 'tools', agent: 'subagents', event: 'events' } as const;

/** Builds the lanes of a turn. A subagent is one bar; what it did is left out. */
export function buildLanes(branches: readonly Branch[]): Lane[] {
  const own = selectOwnThread(branches);
  return (['generation', 'tool', 'agent', 'event'] as const).flatMap((type) => {
    const members = own.filter((observation) => observation.type === type);
    return members.length > 0 ? [{ name: NAMES[type], rows: packRows(members) }] : [];
  });
}

function selectOwnThread(branches: readonly Branch[]): ShownObservation[] {
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

function packRows(members: readonly ShownObservation[]): ShownObservation[][] {
  const rows: ShownObservation[][] = [];
  for (const member of members) {
    const row = rows.find((each) => (each.at(-1)?.endTime ?? 0) <= member.startTime);
    if (row) row.push(member);
    else rows.push([member]);
  }
  return rows;
}
