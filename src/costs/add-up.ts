import type { Shares } from './causes/context.js';
import { OWN_PARTS } from './causes/parts.js';
import { NO_CAUSE, type ResponseCause, type SessionCauses, UNNAMED_AGENT } from './causes/read-causes.js';
import {
  ADVISOR,
  mapUsed,
  type PartUse,
  type SessionScan,
  type SessionUsage,
  type TaskUse,
  USED_KINDS,
  type Use,
  type Used,
  type UsedKind,
} from './session-usage.js';
import { separateUnaccounted } from './unaccounted.js';

/** The offset of each time zone is a multiple of this, so a period belongs to one day. */
export const PERIOD_MS = 15 * 60_000;

/** Adds up the responses whose ids are not in `seen`, and adds these ids to it. */
export function addUpResponses(scan: SessionScan, seen: Set<string>, causes?: SessionCauses): SessionUsage {
  const { responses: _responses, unreadable: _unreadable, ...session } = scan;
  const own = [...separateUnaccounted(scan)].filter(([id]) => !seen.has(id));
  for (const [id] of own) seen.add(id);
  const usage = { ...session, uses: addUpUses(own.map(([, use]) => [keyOf(use), use])) };
  if (!causes) return usage;
  const tasks = addUpUses(own.map(([id, use]) => findTask(id, use, causes)));
  return { ...usage, causes: { tasks, parts: addUpUses(listParts(own, causes)) } };
}

/** A use, and a text that differs if it must not be added to another. */
type Keyed<T extends Use> = readonly [key: string, use: T];

function addUpUses<T extends Use>(all: Iterable<Keyed<T>>): T[] {
  const sums = new Map<string, { readonly use: T; readonly used: { [kind in UsedKind]: number } }>();
  for (const [key, use] of all) {
    const known = sums.get(key);
    if (!known) sums.set(key, { use, used: { ...use.used } });
    else for (const kind of USED_KINDS) known.used[kind] += use.used[kind];
  }
  return [...sums.values()].map(({ use, used }) => ({ ...use, used }));
}

/** The same for uses that differ only in their counts and, within a period, in their time. */
function keyOf({ at, used: _, ...others }: Use, ...more: readonly (string | number | boolean)[]): string {
  return JSON.stringify([Math.floor(at / PERIOD_MS), others, ...more]);
}

function findTask(id: string, use: Use, causes: SessionCauses): Keyed<TaskUse> {
  const { agent: name, skill, command, turn, promptAt } = findCause(id, causes);
  const agent = name || (use.isAgent ? UNNAMED_AGENT : '');
  return [keyOf(use, agent, skill, command, turn), { ...use, agent, skill, command, turn, promptAt }];
}

/** One after the other: all at once would be many times as many as the responses. */
function* listParts(
  responses: readonly (readonly [id: string, use: Use])[],
  causes: SessionCauses,
): Generator<Keyed<PartUse>> {
  for (const [id, use] of responses) {
    const { isExact, shares } = findCause(id, causes);
    const key = keyOf(use, isExact);
    const parts = id.includes(ADVISOR) ? new Map([[OWN_PARTS.advisor, use.used]]) : splitIntoParts(use, shares);
    for (const [part, used] of parts)
      yield [`${key} ${part}`, { ...use, used: mapUsed((kind) => used[kind] ?? 0), part, isExact }];
  }
}

function findCause(id: string, { responses }: SessionCauses): ResponseCause {
  return responses.get(id.split(ADVISOR)[0] ?? id) ?? NO_CAUSE;
}

/** Splits a use among the parts: into whole tokens, which add up exactly. */
function splitIntoParts({ used }: Use, shares: Shares): Map<string, Partial<Used>> {
  const parts = new Map<string, Partial<Used>>();
  for (const kind of USED_KINDS.filter((each) => used[each] > 0))
    for (const [name, count] of splitCount(used[kind], shares, kind))
      if (count > 0) parts.set(name, { ...parts.get(name), [kind]: count });
  return parts;
}

/** Where a kind belongs if no part has a share of it. A web search has no tokens: the tool at Anthropic is paid for each. */
const REST: { readonly [kind in UsedKind]: string } = {
  ...mapUsed(() => OWN_PARTS.unknown),
  web_search_requests: 'web_search',
};

function splitCount(count: number, shares: Shares, kind: UsedKind): (readonly [name: string, count: number])[] {
  const total = [...shares.values()].reduce((sum, share) => sum + (share[kind] ?? 0), 0);
  if (total === 0) return [[REST[kind], count]];
  let sum = 0;
  let to = 0;
  return [...shares].map(([name, share]) => {
    const from = to;
    sum += share[kind] ?? 0;
    to = sum === total ? count : Math.round((sum * count) / total);
    return [name, to - from];
  });
}
