import { findRequestTime, type HookRun, type Response } from '../../transcript/turns/turn.js';
import { asksPerson, findWait } from './permission.js';

/** What a turn can wait for, and what counts if it waits for more than one of them at a time. */
const WAITED_FOR = ['hook', 'person', 'model', 'tool'] as const;
type WaitedFor = (typeof WAITED_FOR)[number];

/** How long a turn waited for each, up to a time. */
export type TimeSpent = { readonly [kind in WaitedFor | 'until']: number };

export const NO_TIME: TimeSpent = { hook: 0, person: 0, model: 0, tool: 0, until: 0 };

interface Wait {
  readonly kind: WaitedFor;
  readonly from: number;
  readonly to: number;
}

/**
 * Adds the time of a turn, or of a part of it, from `start` on. Response by response, so that the parts of a turn add up to the
 * same as the whole.
 */
export function addTime(
  before: TimeSpent,
  { responses, hooks }: { readonly responses: readonly Response[]; readonly hooks: readonly HookRun[] },
  start: number,
): TimeSpent {
  let spent: TimeSpent = { ...before, until: Math.max(before.until, start) };
  let rest = hooks;
  for (const [index, response] of responses.entries()) {
    const end = responses[index + 1]?.firstLine ?? Number.POSITIVE_INFINITY;
    const later = rest.findIndex(({ line }) => line >= end);
    const own = later < 0 ? rest : rest.slice(0, later);
    rest = rest.slice(own.length);
    spent = addWaits(spent, [...listWaits(response), ...own.map(waitForHook)]);
  }
  return addWaits(spent, rest.map(waitForHook));
}

function waitForHook({ at, ms }: HookRun): Wait {
  return { kind: 'hook', from: at - ms, to: at };
}

function listWaits(response: Response): Wait[] {
  const calls = response.calls.flatMap((call): Wait[] => {
    const { at, result } = call;
    if (!result) return [];
    if (!asksPerson(call)) return [{ kind: 'tool', from: at, to: result.at }];
    const asked = at + (findWait(call) ?? result.at - at);
    return [
      { kind: 'person', from: at, to: asked },
      { kind: 'tool', from: asked, to: result.at },
    ];
  });
  return [{ kind: 'model', from: findRequestTime(response), to: response.lastBlockAt }, ...calls];
}

/** Each moment after `until` counts once. */
function addWaits(before: TimeSpent, waits: readonly Wait[]): TimeSpent {
  const spent: { -readonly [kind in keyof TimeSpent]: number } = { ...before };
  const open = { hook: 0, person: 0, model: 0, tool: 0 };
  const steps = waits.flatMap(({ kind, from, to }) => {
    const start = Math.max(from, before.until);
    return to > start ? [{ kind, time: start, by: 1 } as const, { kind, time: to, by: -1 } as const] : [];
  });
  for (const { kind, time, by } of steps.toSorted((a, b) => a.time - b.time)) {
    const counted = WAITED_FOR.find((each) => open[each] > 0);
    if (counted) spent[counted] += time - spent.until;
    spent.until = time;
    open[kind] += by;
  }
  return spent;
}
