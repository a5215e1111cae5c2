import { describe, expect, test } from 'vitest';
import { Ledger, type OwnRun } from '../../src/export/ledger.js';
import { type Entry, NEW_ENTRY } from '../../src/state/entry.js';
import type { Run, RunIdentity } from '../../src/state/runs.js';
import { groupTurns, turnLines } from '../support/lines.js';

/** Three turns of two lines each: they begin at lines 1, 3 and 5. */
const [first, second, third] = groupTurns([1, 2, 3].flatMap((n) => turnLines(n, { promptId: `p${n}` }))).all;
if (!first || !second || !third) throw new Error('expected three turns');

const entryOf = (runs: Run[], more: Partial<Entry> = {}): Entry => ({ ...NEW_ENTRY, runs, ...more });
const identityOf = (destination: string, tags = 'x'): RunIdentity => ({ destination, given: { LANGFUSE_TAGS: tags } });
const own = (identity: RunIdentity, more: Partial<OwnRun> = {}): OwnRun => ({ identity, claims: 'own turn', ...more });
const [atA, atB] = [identityOf('A'), identityOf('B')];

describe('the runs of a turn', () => {
  const ledger = new Ledger(
    entryOf([
      { ...atA, fromLine: 1, toLine: 2 },
      { ...atB, fromLine: 5 },
    ]),
    'A',
    undefined,
  );

  test('are known only if all of its prompts were given in runs for this destination', () => {
    expect(ledger.findRuns([1])).toEqual([{ ...atA, fromLine: 1, toLine: 2 }]);
    expect(ledger.findRuns([3])).toBeUndefined();
    expect(ledger.findRuns([5])).toBeUndefined();
    expect(ledger.findRuns([1, 3])).toBeUndefined();
    expect(ledger.findRuns([1, 5])).toBeUndefined();
  });

  test('are each named once, since the settings of all of them count', () => {
    const strict = { ...identityOf('A', 'y'), fromLine: 3 };
    const mixed = new Ledger(entryOf([{ ...atA, fromLine: 1 }, strict, { ...atA, fromLine: 5 }]), 'A', undefined);
    expect(mixed.findRuns([1, 3, 5])).toEqual([{ ...atA, fromLine: 1 }, strict]);
    expect(mixed.findAllRuns()).toEqual([{ ...atA, fromLine: 1 }, strict]);
  });

  test('of the whole session are unknown if some lines belong to no run', () => {
    expect(ledger.findAllRuns()).toBeUndefined();
  });
});

describe('a hook whose event names the prompt of a turn', () => {
  const claimAll = (ledger: Ledger) => {
    for (const turn of [first, second, third]) ledger.claim(turn);
    return ledger.takeChanged();
  };

  test('claims that turn alone, of a session that was unknown', () => {
    const ledger = new Ledger(NEW_ENTRY, 'A', own(atA, { promptId: 'p2' }));
    expect(ledger.hasChanged).toBe(false);
    expect(claimAll(ledger)).toEqual([{ ...atA, fromLine: 3 }]);
    expect(ledger.takeChanged()).toEqual([]);
  });

  test('also claims the turns before it that had no event', () => {
    const ledger = new Ledger(NEW_ENTRY, 'A', own(atA, { promptId: 'p3' }));
    expect(ledger.claim(third, [second])).toBe(true);
    expect(ledger.takeChanged()).toEqual([{ ...atA, fromLine: 3 }]);
  });

  test('takes it from the run of another, which nothing says has ended', () => {
    const ledger = new Ledger(entryOf([{ ...atB, fromLine: 1 }]), 'A', own(atA, { promptId: 'p3' }));
    expect(claimAll(ledger)).toEqual([{ ...atA, fromLine: 5 }]);
    expect(ledger.findRuns([3])).toBeUndefined();
  });

  test('claims nothing that is its own already, even under a destination that was corrected', () => {
    const corrected = { ...atA, fromLine: 1, namedDestination: 'typo' };
    expect(claimAll(new Ledger(entryOf([corrected]), 'A', own(atA, { promptId: 'p2' })))).toEqual([]);
    const late = new Ledger(entryOf([corrected]), 'typo', own(identityOf('typo'), { promptId: 'p2' }));
    expect(claimAll(late)).toEqual([]);
  });

  test('claims the last turn, if its prompt has no id and it belongs to no run', () => {
    const ledger = new Ledger(entryOf([{ ...atA, fromLine: 1, toLine: 2 }]), 'A', own(atA, { promptId: 'other' }));
    expect(ledger.claimLast(third)).toBe(true);
    expect(ledger.claimLast(third)).toBe(false);
    expect(ledger.takeChanged()).toEqual([{ ...atA, fromLine: 5 }]);
  });
});

describe('a hook whose event names no prompt', () => {
  test('begins a run after what earlier runs knew, wherever they sent it', () => {
    const elsewhere = { B: { lastLine: 2, turnCount: 1 }, C: { lastLine: 0, turnCount: 0, sentLine: 4 } };
    const entry = entryOf([{ ...atB, fromLine: 1 }], { elsewhere });
    expect(new Ledger(entry, 'A', own(atA)).takeChanged()).toEqual([{ ...atA, fromLine: 5 }]);
    expect(new Ledger(NEW_ENTRY, 'A', own(atA)).takeChanged()).toEqual([{ ...atA, fromLine: 1 }]);
  });

  test('begins none after an end, nor if its run is known', () => {
    const ended = entryOf([{ ...atA, fromLine: 1, toLine: 2 }]);
    expect(new Ledger(ended, 'A', own(atA)).hasChanged).toBe(false);
    const known = entryOf([
      { ...atA, fromLine: 1, toLine: 2 },
      { ...atB, fromLine: 3 },
    ]);
    expect(new Ledger(known, 'A', own(atA)).hasChanged).toBe(false);
  });
});

describe('a backfill', () => {
  const all = own({ destination: 'A', given: {} }, { claims: 'all' });

  test('takes the turns of no run, with the lines before them, and leaves the others', () => {
    const ledger = new Ledger(entryOf([{ ...atB, fromLine: 3, toLine: 4 }]), 'A', all);
    expect(ledger.take(first)).toEqual({ ...all.identity, fromLine: 1, toLine: 2 });
    expect(ledger.take(second)).toBeUndefined();
    expect(ledger.take(third)).toEqual({ ...all.identity, fromLine: 5, toLine: 6 });
    expect(ledger.findRuns([1])).toEqual([{ ...all.identity, fromLine: 1, toLine: 2 }]);
    expect(ledger.takeChanged()).toEqual([]);
  });

  test('makes one run of turns that follow each other', () => {
    const ledger = new Ledger(NEW_ENTRY, 'A', all);
    ledger.take(first);
    expect(ledger.take(second)).toEqual({ ...all.identity, fromLine: 1, toLine: 4 });
  });

  test('records that it has looked at what is left of the lines of no run', () => {
    const ledger = new Ledger(entryOf([{ ...atA, fromLine: 3, toLine: 4 }]), 'A', all);
    ledger.fillGaps(7);
    expect(ledger.takeChanged()).toEqual([
      { ...all.identity, fromLine: 1, toLine: 2 },
      { ...all.identity, fromLine: 5, toLine: 7 },
    ]);
    expect(ledger.gapsUpTo(7)).toEqual([]);
  });
});

describe('a destination', () => {
  const runs = [
    { ...identityOf('typo'), fromLine: 1, toLine: 2 },
    { given: {}, fromLine: 3, toLine: 4 },
    { ...atB, fromLine: 5 },
  ];
  const adopted = () => {
    const ledger = new Ledger(entryOf(runs), 'A', undefined);
    ledger.adopt((destination) => destination === 'typo');
    return ledger.takeChanged();
  };

  test('replaces those that were wrong or missing, and no other', () => {
    expect(adopted()).toEqual([
      { ...atA, fromLine: 1, toLine: 2, namedDestination: 'typo' },
      { destination: 'A', given: {}, fromLine: 3, toLine: 4, namedDestination: '' },
    ]);
  });

  test('that was wrong, too, is replaced without forgetting what the process named', () => {
    const ledger = new Ledger(entryOf(adopted()), 'C', undefined);
    ledger.adopt((destination) => destination === 'A');
    expect(ledger.takeChanged().map(({ destination, namedDestination }) => [destination, namedDestination])).toEqual([
      ['C', 'typo'],
      ['C', ''],
    ]);
  });

  test('gives the settings of its own run to one for which an older version saved none', () => {
    const ledger = new Ledger(entryOf([{ destination: 'A', fromLine: 1 }]), 'A', own(atA, { promptId: 'p1' }));
    ledger.adopt(() => false);
    expect(ledger.takeChanged()).toEqual([{ ...atA, fromLine: 1 }]);
  });
});

describe('a mute', () => {
  const muted = (fromLine: number, toLine?: number) =>
    new Ledger(entryOf([], { mutes: [{ fromLine, toLine }] }), 'A', undefined);

  test('holds for each turn that has a line in it', () => {
    const of = (ledger: Ledger) => [first, second, third].map((turn) => ledger.isMuted(turn));
    expect(of(muted(4, 4))).toEqual([false, true, false]);
    expect(of(muted(2, 3))).toEqual([true, true, false]);
    expect(of(muted(5))).toEqual([false, false, true]);
  });

  test('goes on until it has an end', () => {
    expect([muted(4, 4), muted(5)].map((each) => each.isMutedNow)).toEqual([false, true]);
    expect(new Ledger(NEW_ENTRY, 'A', undefined).isMutedNow).toBe(false);
  });
});
