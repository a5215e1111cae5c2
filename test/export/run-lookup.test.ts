import { describe, expect, test } from 'vitest';
import { RunLookup, type TranscriptPlaces } from '../../src/export/run-lookup.js';
import type { Place } from '../../src/shared/place.js';
import { apply, type Consent, NO_CONSENT, type Stop } from '../../src/state/facts.js';
import type { Run, RunIdentity } from '../../src/state/runs.js';
import type { Turn } from '../../src/transcript/turns/turn.js';
import { groupTurns, ms, turnLines } from '../support/lines.js';

/** Three turns of 100 bytes each. */
const turns = groupTurns([1, 2, 3].flatMap((n) => turnLines(n, { promptId: `p${n}` }))).all;
const [first, second, third] = turns.map((turn, index) => placeAt(turn, index * 100));
if (!first || !second || !third) throw new Error('expected three turns');
const all = [first, second, third];

function placeAt(turn: Turn, offset: number): Turn {
  const { prompts, start } = turn;
  return { ...turn, prompts: [{ ...prompts[0], offset }], start: { ...start, offset }, end: offset + 100 };
}

const place = (bytes: number): Place => ({ bytes, hash: '' });
/** A transcript that nobody has rewritten. */
const PLACES: TranscriptPlaces = { at: place, isIntact: () => true, afterLine: (line) => line * 50 };
const run = (identity: RunIdentity, from: number, to?: number, more: Partial<Run> = {}): Run => ({
  ...identity,
  from: place(from),
  ...(to !== undefined && { to: place(to) }),
  ...more,
});
const lookupOf = (known: Consent, destination: string, options?: ConstructorParameters<typeof RunLookup>[3]) =>
  new RunLookup(known, destination, PLACES, options);

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
  lookupOf(withStop(known, run, { promptId }), destination);
const claimOf = (prompt: number, startedAt: number) => ({
  kind: 'claim',
  at: AT,
  run: atA,
  prompts: [prompt],
  turnEnd: place(prompt + 100),
  startedAt,
});
const [atA, atB] = [identityOf('A'), identityOf('B')];

describe('the runs of a turn', () => {
  const lookup = lookupOf(entryOf([run(atA, 0, 100), run(atB, 200)]), 'A');

  test('are known only if all of its prompts were given in runs for this destination', () => {
    expect(lookup.findRuns([0])).toEqual([run(atA, 0, 100)]);
    expect(lookup.findRuns([100])).toBeUndefined();
    expect(lookup.findRuns([200])).toBeUndefined();
    expect(lookup.findRuns([0, 100])).toBeUndefined();
    expect(lookup.findRuns([0, 200])).toBeUndefined();
  });

  test('are each named once, since the settings of all of them count', () => {
    const strict = run(identityOf('A', 'y'), 100);
    const mixed = lookupOf(entryOf([run(atA, 0), strict, run(atA, 200)]), 'A');
    expect(mixed.findRuns([0, 100, 200])).toEqual([run(atA, 0), strict]);
    expect(mixed.findAllRuns()).toEqual([run(atA, 0), strict]);
  });

  test('of the whole session are unknown if a part of it belongs to no run', () => {
    expect(lookup.findAllRuns()).toBeUndefined();
  });

  test('of a whole session without a start are those that its Stops name, if they name each turn of its own', () => {
    const stop = (promptId: string): Stop => ({
      kind: 'stop',
      at: AT,
      run: atA,
      promptId,
      bytes: 0,
      isAfterFeedback: false,
      running: [],
    });
    const copied = { ...first, copied: true };
    const findAll = (of: readonly Turn[], more: object = {}) => {
      const known = { ...entryOf([]), stops: [stop('p2'), stop('p3')], ...more };
      const found = new RunLookup(known, 'A', PLACES);
      found.claim(of, 300, () => false);
      return found.findAllRuns();
    };
    expect(findAll([copied, second, third])).toMatchObject([{ ...atA, prompts: [100] }]);
    expect(findAll([first, second, third])).toBeUndefined();
    expect(findAll([copied, second, third], { kept: [{ prompts: [0], why: 'untraced' }] })).toBeUndefined();
    const facts = [{ kind: 'off', at: AT, after: place(0) }];
    expect(findAll([copied, second, third], { facts })).toBeUndefined();
  });

  test('of the whole session include one that ended before anything was written', () => {
    const [before, strict] = [run(atA, 0, 100), run(identityOf('A', 'y'), 100, 100)];
    expect(lookupOf(entryOf([before, strict]), 'A').findAllRuns()).toEqual([before, strict]);
    expect(lookupOf(entryOf([before, run(atB, 100, 100)]), 'A').findAllRuns()).toBeUndefined();
  });

  test('are unknown if the transcript has been rewritten since a Stop named the turn', () => {
    const entry = entryOf([], { claims: [{ ...atA, prompts: [0], turnEnd: place(100) }] });
    const changed = { ...PLACES, isIntact: ({ bytes }: Place) => bytes !== 100 };
    const lookups = [PLACES, changed].map((places) => new RunLookup(entry, 'A', places));
    expect(lookups.map((each) => each.findRuns([0])?.length)).toEqual([1, undefined]);
  });

  test('are unknown if the transcript has been rewritten since they began or ended', () => {
    const entry = entryOf([run(atA, 0, 100), run(atA, 100)]);
    const changed = { ...PLACES, isIntact: ({ bytes }: Place) => bytes !== 100 };
    expect([0, 100].map((prompt) => new RunLookup(entry, 'A', changed).findRuns([prompt]))).toEqual([
      undefined,
      undefined,
    ]);
  });
});

test('what the first cc-langfuse has sent ends after as many lines as it recorded', () => {
  const lookup = lookupOf({ ...NO_CONSENT, seedLine: 4 } as Consent, 'A');
  expect(lookup.takeAdded()).toEqual([{ kind: 'took', at: 0, run: {}, from: place(0), to: place(200) }]);
  expect(all.map((turn) => lookup.isKnown(turn))).toEqual([true, true, false]);
});

test('a turn may be a copy only if it is older than the run whose transcript may begin with copies', () => {
  const forked = (startedAt: number) => lookupOf(entryOf([run(atA, 0, undefined, { mayCopy: true, startedAt })]), 'A');
  expect(all.map((turn) => forked(ms(20)).mayBeCopied(turn))).toEqual([true, false, false]);
});

/** Lets a lookup see all turns, as an export does that reads the whole file. */
function claimAll(lookup: RunLookup, isCopy = (_: Turn) => false) {
  for (const [index, turn] of all.entries()) lookup.claim([turn], readTo(index), isCopy);
  return lookup.takeAdded();
}

/** The last turn ends with the file; the others with the prompt of the next one. */
const readTo = (index: number) => (index === 2 ? Number.POSITIVE_INFINITY : (index + 1) * 100 + 50);

describe('a Stop that names the prompt of a turn', () => {
  test('claims that turn alone, of a session that was unknown', () => {
    const lookup = stopped(NO_CONSENT, atA, 'p2', 'A');
    expect(claimAll(lookup)).toEqual([claimOf(100, ms(20))]);
    expect([0, 100, 200].map((prompt) => lookup.findRuns([prompt])?.length)).toEqual([undefined, 1, undefined]);
    expect(lookup.takeAdded()).toEqual([]);
  });

  test('takes it from the run of another, which nothing says has ended', () => {
    const lookup = stopped(entryOf([run(atB, 0)]), atA, 'p3', 'A');
    expect(claimAll(lookup)).toEqual([claimOf(200, ms(30))]);
    expect(lookup.findRuns([100])).toBeUndefined();
  });

  test('claims nothing that is its own already, even under a destination that was corrected', () => {
    const corrected = run(atA, 0, undefined, { namedDestination: 'typo' });
    expect(claimAll(stopped(entryOf([corrected]), atA, 'p2', 'A'))).toEqual([]);
    expect(claimAll(stopped(entryOf([corrected]), identityOf('typo'), 'p2', 'typo'))).toEqual([]);
  });

  test('claims nothing that was there when a process was seen to start, and nothing that a fork copied', () => {
    const entry = entryOf([run(atA, 200, undefined, { startedAt: 1 })]);
    expect(claimAll(stopped(entry, atA, 'p2', 'A'))).toEqual([]);
    expect(claimAll(stopped(NO_CONSENT, atA, 'p2', 'A'), () => true)).toEqual([]);
  });
});

describe('a Stop that names no prompt', () => {
  const stopAt = (bytes: number, known = NO_CONSENT) => lookupOf(withStop(known, atA, { bytes }), 'A');

  test('claims the last turn that began before it', () => {
    expect(claimAll(stopAt(100))).toEqual([claimOf(0, ms(10))]);
    expect(claimAll(stopAt(220))).toEqual([claimOf(100, ms(20))]);
    expect(claimAll(stopAt(300))).toEqual([claimOf(200, ms(30))]);
  });

  test('claims the last one of turns that interleave', () => {
    const lookup = stopAt(900);
    lookup.claim(all, Number.POSITIVE_INFINITY, () => false);
    expect(lookup.takeAdded()).toEqual([claimOf(200, ms(30))]);
  });

  test('claims nothing that was there when a process was seen to start', () => {
    const entry = entryOf([run(atA, 300, undefined, { startedAt: 1 })]);
    expect(claimAll(stopAt(300, entry))).toEqual([]);
  });
});

test('a turn that its own run has sent to another destination is claimed by no other', () => {
  const lineSentTo = (destination: string) => (destination === 'B' ? 2 : 0);
  const known = withStop(entryOf([run(atB, 0)]), atA, { promptId: 'p1' });
  const lookup = lookupOf(known, 'A', { lineSentTo });
  expect(claimAll(lookup)).toEqual([]);
});

describe('an export is outdated', () => {
  const now = lookupOf(entryOf([run(atA, 0)]), 'A');

  test('if the session has been muted, or a run of it has ended or begun', () => {
    expect(now.isOutdated(entryOf([run(atA, 0)], { mutes: [{ from: place(150), since: AT }] }))).toBe(true);
    expect(now.isOutdated(entryOf([run(atA, 0, 150)]))).toBe(true);
    expect(now.isOutdated(entryOf([run(atA, 0, 150), run(atB, 150)]))).toBe(true);
  });

  test('by nothing else', () => {
    const claims = [{ ...atA, prompts: [150], turnEnd: place(160) }];
    expect(now.isOutdated(entryOf([run(atA, 0)], { claims }))).toBe(false);
  });
});

describe('a backfill', () => {
  const own = { destination: 'A', given: {} };
  const backfill = { own, takesAll: true };
  const took = (from: number, to: number) => ({
    kind: 'took',
    at: expect.any(Number),
    run: own,
    from: place(from),
    to: place(to),
  });

  test('takes the turns of no run, with what is before them, and leaves the others', () => {
    const lookup = lookupOf(entryOf([run(atB, 100, 200)]), 'A', backfill);
    expect(lookup.take(first)).toEqual(took(0, 100));
    expect(all.map((turn) => lookup.mayTake(turn))).toEqual([true, false, true]);
    expect(lookup.take(third)).toEqual(took(200, 300));
    expect(lookup.findRuns([0])).toEqual([run(own, 0, 100)]);
    expect(lookup.hasChanged).toBe(false);
  });

  test('makes one run of turns that follow each other', () => {
    const lookup = lookupOf(NO_CONSENT, 'A', backfill);
    lookup.take(first);
    expect(lookup.take(second)).toEqual(took(0, 200));
  });

  test('records that it has looked at what is left of no run', () => {
    const lookup = lookupOf(entryOf([run(atA, 100, 200)]), 'A', backfill);
    lookup.fillGaps(350);
    expect(lookup.takeAdded()).toEqual([took(0, 100), took(200, 350)]);
    expect([0, 100, 300].map((prompt) => lookup.findRuns([prompt])?.length)).toEqual([1, 1, 1]);
  });
});

describe('a destination', () => {
  const runs = [run(identityOf('typo'), 0, 100), run({ given: {} }, 100, 200), run(atB, 200)];
  const adopt = (known: Consent, right: string, wrong: string): Consent => {
    const lookup = lookupOf(known, right, { own: { ...identityOf(right), given: { LANGFUSE_TAGS: 'own' } } });
    lookup.adopt((destination) => destination === wrong);
    return lookup.takeAdded().reduce(apply, known);
  };

  test('replaces those that were wrong or missing, and no other', () => {
    expect(adopt(entryOf(runs), 'A', 'typo').runs).toEqual([
      run(atA, 0, 100, { namedDestination: 'typo' }),
      run({ destination: 'A', given: {} }, 100, 200, { namedDestination: '' }),
      run(atB, 200),
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
    expect(adopt(entryOf([run({}, 0, 200)]), 'A', 'typo').runs).toEqual([
      run({ destination: 'A', given: { LANGFUSE_TAGS: 'own' } }, 0, 200, { namedDestination: '' }),
    ]);
  });
});

describe('a mute', () => {
  const muted = (from: number, to?: number) =>
    lookupOf(entryOf([], { mutes: [{ ...run({}, from, to), since: Number.MAX_SAFE_INTEGER }] }), 'A');

  test('holds for each turn that has a byte in it', () => {
    const of = (lookup: RunLookup) => all.map((turn) => lookup.isMuted(turn));
    expect(of(muted(150, 200))).toEqual([false, true, false]);
    expect(of(muted(50, 150))).toEqual([true, true, false]);
    expect(of(muted(200))).toEqual([false, false, true]);
  });

  test('holds by its time if the transcript has been rewritten', () => {
    const mutes = [{ ...run({}, 150, 200), since: ms(30), until: ms(60) }];
    const lookup = new RunLookup(entryOf([], { mutes }), 'A', { ...PLACES, isIntact: () => false });
    expect(all.map((turn) => lookup.isMuted(turn))).toEqual([false, false, true]);
  });

  test('goes on until it has an end', () => {
    expect([muted(150, 200), muted(200)].map((each) => each.isMutedNow)).toEqual([false, true]);
    expect(lookupOf(NO_CONSENT, 'A').isMutedNow).toBe(false);
  });
});
