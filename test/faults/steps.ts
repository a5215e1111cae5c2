import fc from 'fast-check';
import type { ProjectKind } from './project.js';
import type { Capture, Config, Place } from './turn-oracle.js';

/** How a turn ends. No Stop follows `esc`, `esc at once` (nothing was answered) and `killed` (with its process). */
export type Ending = 'stop' | 'failure' | 'only tools' | 'no answer' | 'late answer' | 'esc' | 'esc at once' | 'killed';
/** What happens between the prompt of a turn and its answer. */
export type Midway = 'nothing' | 'mute' | 'unmute' | 'mute and unmute' | 'compact';

/** What happens to a session, or to everything. A session is given by its place among those that exist. */
export type Step =
  | {
      kind: 'turn';
      session: number;
      /** In which of the session's two processes. */
      who: number;
      config: Config;
      before: 'go on' | 'end' | 'kill';
      midway: Midway;
      ending: Ending;
      startsAgent: boolean;
    }
  | Each<'grow' | 'agent speaks' | 'mute' | 'unmute', { session: number }>
  | Each<'end' | 'kill' | 'compact' | 'clear' | 'leave plan mode', { session: number; who: number }>
  /** The session is resumed and left without a prompt. */
  | { kind: 'look'; session: number; config: Config; leave: 'end' | 'clear' | 'kill' }
  /** `isEarly`: SessionStart comes before the copied lines are written. */
  | { kind: 'fork'; session: number; config: Config; isEarly: boolean }
  | { kind: 'switch'; place: Place }
  | { kind: 'wait' }
  | { kind: 'backfill'; place: Place; capture: Capture; force: boolean };

type Each<Kind extends string, Fields> = Kind extends string ? { kind: Kind } & Fields : never;

/** What holds for a whole sequence. */
export interface Circumstances {
  /** Which processes' SessionStart a hook sees; `some` are every other one. */
  readonly starts: 'all' | 'some' | 'none';
  /** Versions before 2.1.91 name no prompts, and those up to 2.1.197 do not mark what a fork copies. */
  readonly version: '2.1.90' | '2.1.197' | '2.1.328';
  /** Whether hooks know the process of Claude Code. */
  readonly hasPids: boolean;
  readonly project: ProjectKind;
  /** Whether Claude Code runs in a folder that is a link, and the real one is excluded. Otherwise it is the other way round. */
  readonly isLinked: boolean;
  /** Whether both places have acknowledged something before. */
  readonly areProven: boolean;
  /** Whether hooks are called as Claude Code does: by the launcher, whose workers may overlap. Otherwise in this process, in front. */
  readonly areLaunched: boolean;
}

const capture = fc.constantFrom<Capture>('full', 'no_tool_io', 'metadata');
const place = fc.constantFrom<Place>('A', 'B');
const session = fc.nat(3);
const who = often(0, 5, 1);
const OTHERS: readonly Ending[] = ['failure', 'only tools', 'no answer', 'esc', 'esc', 'esc at once', 'killed'];
const config: fc.Arbitrary<Config> = fc.record({
  tracing: often<Config['tracing']>('on', 3, 'off', 'excluded'),
  goal: fc.constantFrom<Config['goal']>('A', 'A', 'B', 'B', 'typo'),
  capture,
  tag: fc.constantFrom('x' as const, 'y' as const),
  mute: often(false, 12, true),
});

export const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('turn' as const),
      session,
      who,
      config,
      before: often<'go on' | 'end' | 'kill'>('go on', 2, 'end', 'kill'),
      midway: often<Midway>('nothing', 12, 'mute', 'unmute', 'mute and unmute', 'compact'),
      ending: often<Ending>('stop', 12, ...OTHERS, ...OTHERS, 'late answer'),
      startsAgent: often(false, 4, true),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom(...(['grow', 'agent speaks', 'mute', 'unmute'] as const)), session }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom(...(['end', 'end', 'kill', 'compact', 'clear', 'leave plan mode'] as const)),
      session,
      who,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('look' as const),
      session,
      config,
      leave: fc.constantFrom('end', 'clear', 'kill'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fork' as const), session, config, isEarly: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('switch' as const), place }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('wait' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('backfill' as const), place, capture, force: fc.boolean() }),
  },
);

export function circumstances(areLaunched: boolean): fc.Arbitrary<Circumstances> {
  return fc.record({
    starts: fc.constantFrom('all', 'all', 'some', 'none'),
    version: fc.constantFrom('2.1.90', '2.1.197', '2.1.328', '2.1.328'),
    hasPids: fc.boolean(),
    project: often<ProjectKind>('plain', 4, 'widens', 'widens', 'opts out'),
    isLinked: fc.boolean(),
    areProven: fc.boolean(),
    areLaunched: fc.constant(areLaunched),
  });
}

/** The first one so many times as often as each of the others. Shrinks to the first. */
function often<T>(first: T, weight: number, ...others: readonly T[]): fc.Arbitrary<T> {
  return fc.oneof(
    { weight, arbitrary: fc.constant(first) },
    { weight: others.length, arbitrary: fc.constantFrom(...others) },
  );
}
