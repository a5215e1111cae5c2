import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Exporter } from './support/exporter.js';
import { recording, transcriptsOf } from './support/recording.js';
import { describeTraces } from './support/traces.js';

let exporter: Exporter;

beforeEach(async () => {
  exporter = await Exporter.open();
});

afterEach(() => exporter.close());

describe('a transcript that is exported after every single line', () => {
  test.each([
    'i-simple',
    'h-block1',
    'i-queue',
    'i-interrupt',
    'i-slash',
    'p-e500x2',
    'p-emid',
    'p-bigusage',
    'v1.0.128-toolloop',
  ])('%s ends as one that is exported once, and start times never move', async (name) => {
    const [source = ''] = transcriptsOf(recording(name));
    const path = join(exporter.folder, basename(source));
    const lines = readFileSync(source, 'utf8').trimEnd().split('\n');
    for (const [place] of lines.entries()) {
      writeFileSync(path, `${lines.slice(0, place + 1).join('\n')}\n`);
      expect(await exporter.export(path)).toMatchObject({ failure: undefined });
    }
    const expected = JSON.parse(readFileSync(join(recording(name).folder, 'expected.json'), 'utf8'));
    expect(JSON.parse(describeTraces(exporter.server.observations))).toEqual(expected);
    expect(exporter.server.lost).toBe(0);
  });
});

describe('a transcript that is exported while the server fails at random', () => {
  test.each([1, 2, 3])('arrives whole, and what was acknowledged is not sent again (%i)', async (seed) => {
    const [source = ''] = transcriptsOf(recording('p-streamjson'));
    const random = numbersFrom(seed);
    exporter.server.misbehave = (_, __, spans) => {
      if (spans.length > 3) return { status: 413 };
      return random() < 0.3 ? { status: 401 } : undefined;
    };
    const failures: (string | undefined)[] = [];
    do failures.push((await exporter.export(source)).failure);
    while (failures.at(-1) !== undefined);
    expect(failures.length).toBeGreaterThan(1);
    const expected = JSON.parse(readFileSync(join(recording('p-streamjson').folder, 'expected.json'), 'utf8'));
    expect(JSON.parse(describeTraces(exporter.server.observations))).toEqual(expected);
    expect([...exporter.server.arrivals.values()].every((times) => times === 1)).toBe(true);
  });

  function numbersFrom(seed: number): () => number {
    let state = seed;
    return () => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return state / 2 ** 31;
    };
  }
});
