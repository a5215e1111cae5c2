import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { Exporter } from '../support/exporter.js';
import type { StoredObservation } from '../support/langfuse-server.js';
import { recordings, transcriptsOf } from '../support/recording.js';
import { describeTraces } from '../support/traces.js';

describe('a recorded session becomes the observations in its expected.json', () => {
  test.each(recordings())('$name', async (recording) => {
    const exporter = await Exporter.open();
    try {
      for (const path of transcriptsOf(recording)) {
        expect(await exporter.export(path)).toMatchObject({ failure: undefined });
      }
      const { observations, lost } = exporter.server;
      await expect(describeTraces(observations)).toMatchFileSnapshot(join(recording.folder, 'expected.json'));
      expect(lost).toBe(0);
    } finally {
      await exporter.close();
    }
  });
});

test.each(recordings())(
  'each turn, agent and event of $name has an input and an output, as the default view of sessions requires',
  ({ folder }) => {
    const traces: { observations: StoredObservation[] }[] = JSON.parse(
      readFileSync(join(folder, 'expected.json'), 'utf8'),
    );
    const shown = traces
      .flatMap(({ observations }) => observations)
      .filter(({ type }) => /agent|event/.test(`${type}`));
    expect(shown.length).toBeGreaterThan(0);
    expect(shown.filter(({ input, output }) => !input || !output)).toEqual([]);
  },
);

test('the session in fixtures/handmade, with what no recording has, becomes the observations in its expected.json', async () => {
  const folder = fileURLToPath(new URL('../../fixtures/handmade/', import.meta.url));
  const exporter = await Exporter.open();
  try {
    const path = join(folder, '88888888-8888-4888-8888-888888888888.jsonl');
    expect(await exporter.export(path)).toMatchObject({ failure: undefined });
    await expect(describeTraces(exporter.server.observations)).toMatchFileSnapshot(join(folder, 'expected.json'));
  } finally {
    await exporter.close();
  }
});
