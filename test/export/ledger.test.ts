import { describe, expect, test } from 'vitest';
import { Ledger } from '../../src/export/ledger.js';
import { apply, type Consent, NO_CONSENT, type Stop } from '../../src/state/facts.js';
import type { Run, RunIdentity } from '../../src/state/runs.js';
import type { Turn } from '../../src/transcript/turns/turn.js';
import { groupTurns, ms, turnLines } from '../support/lines.js';

/** Three turns of two lines each: they begin at lines 1, 3 and 5. */
const [first, second, third] = groupTurns([1, 2, 3].flatMap((n) => turnLines(n, { promptId: `p${n}` }))).all;
if (!first || !second || !third) throw new Error('expected three turns');
const all = [first, second, third];

/** When the events of these tests came. */
const AT = 17;
const entryOf = (runs: Run[], more: Partial<Consent> = {}): Consent => ({ ...NO_CONSENT, runs, ...more });
const identityOf = (destination: string, tags = 'x'): RunIdentity => ({ destination, given: { LANGFUSE_TAGS: tags } });
/** What is known once a Stop has come that names a prompt, or none. */
const withStop = (known: Consent, run: RunIdentity, more: Partial<Stop>): Consent => ({
  ...known,
  stops: [{ kind: 'stop', at: AT, run, bytes: 0, isAfterFeedback: false, running: [], ...more }],
});
const stopped = (known: Consent, run: RunIdentity, promptId: string, destination = run.destination ?? '') =>
  new Ledger(withStop(known, run, { promptId }), destination);
const claimOf = (line: number, startedAt: number) => ({ kind: 'claim', at: AT, run: atA, lines: [line], startedAt });
const [atA, atB] = [identityOf('A'), identityOf('B')];

describe('the runs of a turn', () => {
  const ledger = new Ledger(
    entryOf([
      { ...atA, fromLine: 1, toLine: 2 },
      { ...atB, fromLine: 5 },
    ]),
    'A',
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
    const mixed = new Ledger(entryOf([{ ...atA, fromLine: 1 }, strict, { ...atA, fromLine: 5 }]), 'A');
    expect(mixed.findRuns([1, 3, 5])).toEqual([{ ...atA, fromLine: 1 }, strict]);
    expect(mixed.findAllRuns()).toEqual([{ ...atA, fromLine: 1 }, strict]);
  });

  test('of the whole session are unknown if some lines belong to no run', () => {
    expect(ledger.findAllRuns()).toBeUndefined();
  });
});

/** Lets a ledger see all turns, as an export does that reads the whole file. Each is 100 bytes long. */
function claimAll(ledger: Ledger, isCopy = (_: Turn) => false) {
  for (const [place, turn] of all.entries()) ledger.claim([withOffset(turn, place * 100)], readTo(place), isCopy);
  return ledger.takeAdded();
}

const withOffset = (turn: Turn, offset: number): Turn => ({ ...turn, start: { ...turn.start, offset } });

/** The last turn ends with the file; the others with the prompt of the next one. */
const readTo = (place: number) => (place === 2 ? Number.POSITIVE_INFINITY : (place + 1) * 100 + 50);

describe('a Stop that names the prompt of a turn', () => {
  test('claims that turn alone, of a session that was unknown', () => {
    const ledger = stopped(NO_CONSENT, atA, 'p2', 'A');
    expect(claimAll(ledger)).toEqual([claimOf(3, ms(20))]);
    expect([1, 3, 5].map((line) => ledger.findRuns([line])?.length)).toEqual([undefined, 1, undefined]);
    expect(ledger.takeAdded()).toEqual([]);
  });

  test('takes it from the run of another, which nothing says has ended', () => {
    const ledger = stopped(entryOf([{ ...atB, fromLine: 1 }]), atA, 'p3', 'A');
    expect(claimAll(ledger)).toEqual([claimOf(5, ms(30))]);
    expect(ledger.findRuns([3])).toBeUndefined();
  });

  test('claims nothing that is its own already, even under a destination that was corrected', () => {
    const corrected = { ...atA, fromLine: 1, namedDestination: 'typo' };
    expect(claimAll(stopped(entryOf([corrected]), atA, 'p2', 'A'))).toEqual([]);
    expect(claimAll(stopped(entryOf([corrected]), identityOf('typo'), 'p2', 'typo'))).toEqual([]);
  });

  test('claims nothing that was there when a process was seen to start, and nothing that a fork copied', () => {
    const entry = entryOf([{ ...atA, fromLine: 5, startedAt: 1 }]);
    expect(claimAll(stopped(entry, atA, 'p2', 'A'))).toEqual([]);
    expect(claimAll(stopped(NO_CONSENT, atA, 'p2', 'A'), () => true)).toEqual([]);
  });
});

describe('a Stop that names no prompt', () => {
  const stopAt = (bytes: number, known = NO_CONSENT) => new Ledger(withStop(known, atA, { bytes }), 'A');

  test('claims the last turn that began before it', () => {
    expect(claimAll(stopAt(100))).toEqual([claimOf(1, ms(10))]);
    expect(claimAll(stopAt(220))).toEqual([claimOf(3, ms(20))]);
    expect(claimAll(stopAt(300))).toEqual([claimOf(5, ms(30))]);
  });

  test('claims the last one of turns that interleave', () => {
    const ledger = stopAt(900);
    ledger.claim(all, Number.POSITIVE_INFINITY, () => false);
    expect(ledger.takeAdded()).toEqual([claimOf(5, ms(30))]);
  });

  test('claims nothing that was there when a process was seen to start', () => {
    const entry = entryOf([{ ...atA, fromLine: 7, startedAt: 1 }]);
    expect(claimAll(stopAt(300, entry))).toEqual([]);
  });
});

test('a turn that its own run has sent to another destination is claimed by no other', () => {
  const lineSentTo = (destination: string) => (destination === 'B' ? 2 : 0);
  const known = withStop(entryOf([{ ...atB, fromLine: 1 }]), atA, { promptId: 'p1' });
  const ledger = new Ledger(known, 'A', { lineSentTo });
  expect(claimAll(ledger)).toEqual([]);
});

describe('an export is outdated', () => {
  const now = new Ledger(entryOf([{ ...atA, fromLine: 1 }]), 'A');

  test('if the session has been muted, or a run of it has ended or begun', () => {
    expect(now.isOutdated(entryOf([{ ...atA, fromLine: 1 }], { mutes: [{ fromLine: 4, since: AT }] }))).toBe(true);
    expect(now.isOutdated(entryOf([{ ...atA, fromLine: 1, toLine: 3 }]))).toBe(true);
    expect(
      now.isOutdated(
        entryOf([
          { ...atA, fromLine: 1, toLine: 3 },
          { ...atB, fromLine: 4 },
        ]),
      ),
    ).toBe(true);
  });

  test('by nothing else', () => {
    expect(now.isOutdated(entryOf([{ ...atA, fromLine: 1 }], { claims: [{ ...atA, fromLine: 4, lines: [4] }] }))).toBe(
      false,
    );
  });
});

describe('a backfill', () => {
  const own = { destination: 'A', given: {} };
  const backfill = { own, takesAll: true };
  const took = (fromLine: number, toLine: number) => ({
    kind: 'took',
    at: expect.any(Number),
    run: own,
    fromLine,
    toLine,
  });

  test('takes the turns of no run, with the lines before them, and leaves the others', () => {
    const ledger = new Ledger(entryOf([{ ...atB, fromLine: 3, toLine: 4 }]), 'A', backfill);
    expect(ledger.take(first)).toEqual(took(1, 2));
    expect(all.map((turn) => ledger.mayTake(turn))).toEqual([true, false, true]);
    expect(ledger.take(third)).toEqual(took(5, 6));
    expect(ledger.findRuns([1])).toEqual([{ ...own, fromLine: 1, toLine: 2 }]);
    expect(ledger.hasChanged).toBe(false);
  });

  test('makes one run of turns that follow each other', () => {
    const ledger = new Ledger(NO_CONSENT, 'A', backfill);
    ledger.take(first);
    expect(ledger.take(second)).toEqual(took(1, 4));
  });

  test('records that it has looked at what is left of the lines of no run', () => {
    const ledger = new Ledger(entryOf([{ ...atA, fromLine: 3, toLine: 4 }]), 'A', backfill);
    ledger.fillGaps(7);
    expect(ledger.takeAdded()).toEqual([took(1, 2), took(5, 7)]);
    expect(ledger.gapsUpTo(7)).toEqual([]);
  });
});

describe('a destination', () => {
  const runs = [
    { ...identityOf('typo'), fromLine: 1, toLine: 2 },
    { given: {}, fromLine: 3, toLine: 4 },
    { ...atB, fromLine: 5 },
  ];
  const adopt = (known: Consent, right: string, wrong: string): Consent => {
    const ledger = new Ledger(known, right, { own: { ...identityOf(right), given: { LANGFUSE_TAGS: 'own' } } });
    ledger.adopt((destination) => destination === wrong);
    return ledger.takeAdded().reduce(apply, known);
  };

  test('replaces those that were wrong or missing, and no other', () => {
    expect(adopt(entryOf(runs), 'A', 'typo').runs).toEqual([
      { ...atA, fromLine: 1, toLine: 2, namedDestination: 'typo' },
      { destination: 'A', given: {}, fromLine: 3, toLine: 4, namedDestination: '' },
      { ...atB, fromLine: 5 },
    ]);
  });

  test('that was wrong, too, is replaced without forgetting what the process named', () => {
    const twice = adopt(adopt(entryOf(runs), 'A', 'typo'), 'C', 'A');
    expect(twice.runs.map(({ destination, namedDestination }) => [destination, namedDestination])).toEqual([
      ['C', 'typo'],
      ['C', ''],
      ['B', undefined],
    ]);
  });

  test('gives the settings of its own run to what the first cc-langfuse has sent', () => {
    expect(adopt(entryOf([{ fromLine: 1, toLine: 4 }]), 'A', 'typo').runs).toEqual([
      { destination: 'A', given: { LANGFUSE_TAGS: 'own' }, fromLine: 1, toLine: 4, namedDestination: '' },
    ]);
  });
});

describe('a mute', () => {
  const muted = (fromLine: number, toLine?: number) =>
    new Ledger(entryOf([], { mutes: [{ fromLine, toLine, since: Number.MAX_SAFE_INTEGER }] }), 'A');

  test('holds for each turn that has a line in it', () => {
    const of = (ledger: Ledger) => [first, second, third].map((turn) => ledger.isMuted(turn));
    expect(of(muted(4, 4))).toEqual([false, true, false]);
    expect(of(muted(2, 3))).toEqual([true, true, false]);
    expect(of(muted(5))).toEqual([false, false, true]);
  });

  test('goes on until it has an end', () => {
    expect([muted(4, 4), muted(5)].map((each) => each.isMutedNow)).toEqual([false, true]);
    expect(new Ledger(NO_CONSENT, 'A').isMutedNow).toBe(false);
  });
});
