import {
  mapUsed,
  type PartUse,
  type SessionUsage,
  type TaskUse,
  USED_KINDS,
  type UsageCauses,
  type Use,
} from './session-usage.js';

/** What most uses have in common. The index leaves it out, which makes it a third as large. */
const USUAL_USE = { branch: '', isAgent: false, isFast: false, isInUs: false } satisfies Partial<Use>;
const USUAL_TASK = { ...USUAL_USE, agent: '', skill: '', command: '', turn: 0 } satisfies Partial<TaskUse>;
const USUAL_PART = { ...USUAL_USE, isExact: false } satisfies Partial<PartUse>;
const NOTHING = mapUsed(() => 0);

/** A use without what is usual. */
type Packed<T extends Use> = Omit<Partial<T>, 'used'> & { readonly used: Partial<Use['used']> };

export type PackedUsage = Omit<SessionUsage, 'uses' | 'causes'> & { readonly uses: readonly Packed<Use>[] };

export interface PackedCauses {
  readonly tasks: readonly Packed<TaskUse>[];
  readonly parts: readonly Packed<PartUse>[];
}

export function packUsage({ uses, ...usage }: Omit<SessionUsage, 'causes'>): PackedUsage {
  return { ...usage, uses: uses.map((use) => pack(use, USUAL_USE)) };
}

export function unpackUsage({ uses, ...usage }: PackedUsage): SessionUsage {
  return { ...usage, uses: uses.map((use) => unpack<Use>(use, USUAL_USE)) };
}

export function packCauses({ tasks, parts }: UsageCauses): PackedCauses {
  return {
    tasks: tasks.map((task) => pack(task, USUAL_TASK)),
    parts: parts.map((part) => pack(part, USUAL_PART)),
  };
}

export function unpackCauses({ tasks, parts }: PackedCauses): UsageCauses {
  return {
    tasks: tasks.map((task) => unpack<TaskUse>(task, USUAL_TASK)),
    parts: parts.map((part) => unpack<PartUse>(part, USUAL_PART)),
  };
}

function pack<T extends Use>({ used, ...use }: T, usual: Partial<T>): Packed<T> {
  const names = Object.keys(use) as (keyof T & keyof typeof use)[];
  const rest = names.filter((name) => use[name] !== usual[name]).map((name) => [name, use[name]]);
  const counts = USED_KINDS.filter((kind) => used[kind] > 0).map((kind) => [kind, used[kind]]);
  return { ...Object.fromEntries(rest), used: Object.fromEntries(counts) };
}

function unpack<T extends Use>({ used, ...use }: Packed<T>, usual: Partial<T>): T {
  return { ...usual, ...use, used: { ...NOTHING, ...used } } as T;
}
