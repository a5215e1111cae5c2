import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Exporter } from '../support/exporter.js';
import { sessionIdOf, writeSession } from '../support/generated.js';
import { expectEachSentOnce } from '../support/sent-once.js';

let exporter: Exporter;

beforeEach(async () => {
  exporter = await Exporter.open();
});

afterEach(() => exporter.close());

const RUN_MS = 3_000;

const write = (turns: number, callsPerTurn: number) =>
  writeSession(join(exporter.folder, 'projects'), {
    sessionId: sessionIdOf(1),
    cwd: '/home/dev/one',
    startsAt: Date.UTC(2026, 0, 1),
    resultChars: 2_000,
    callsPerTurn,
    turns,
  });

/** Lets the process do nothing for some time, as if the machine were busy. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

describe('a turn for which the time of one run is not enough', () => {
  test('is sent in parts: each run sends the next ones in the order of their lines, and the last one the root', async () => {
    const path = write(1, 700);
    const observer = { onAcknowledged: () => block(RUN_MS / 3) };
    const runs: { failure: string | undefined; types: (string | undefined)[]; from: number; to: number }[] = [];
    do {
      const before = new Set(exporter.server.observations.map(({ id }) => id));
      const { failure } = await exporter.export(path, {}, {}, { ms: RUN_MS, observer });
      const sent = exporter.server.observations.filter(({ id }) => !before.has(id));
      const ends = sent.flatMap(({ type, endTime }) => (type === 'tool' ? endTime : []));
      const types = [...new Set(sent.map(({ type }) => type))];
      runs.push({ failure, types, from: Math.min(...ends), to: Math.max(...ends) });
    } while (runs.at(-1)?.failure === 'out of time');
    const parts = runs.slice(0, -1);
    expect(parts.length).toBeGreaterThan(0);
    for (const { types } of parts) expect(types.toSorted()).toEqual(['generation', 'tool']);
    for (const [place, { to }] of parts.entries()) expect(runs[place + 1]?.from).toBeGreaterThan(to);
    expect(runs.at(-1)).toMatchObject({ failure: undefined, types: expect.arrayContaining(['agent']) });
    expect(exporter.server.observations).toHaveLength(700 + 701 + 1);
    expectEachSentOnce(exporter.server);
  }, 60_000);

  test('may be read for longer than half of it, since the next run would have to read it again, but no other turn', async () => {
    const path = write(2, 300);
    let reads = 0;
    // The first turn has 901 lines.
    const onRead = () => {
      reads += 1;
      if (reads === 3) block(RUN_MS * 0.6);
    };
    const first = await exporter.export(path, {}, {}, { ms: RUN_MS, observer: { onRead } });
    expect(first.failure).toBe('out of time while reading');
    expect(exporter.server.roots.map(({ name }) => name)).toEqual(['Turn 1']);
    expect((await exporter.export(path)).failure).toBeUndefined();
    expect(exporter.server.roots.map(({ name }) => name)).toEqual(['Turn 1', 'Turn 2']);
    expectEachSentOnce(exporter.server);
  });
});
