import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Exporter } from './support/exporter.js';
import { recordings, transcriptsOf } from './support/recording.js';
import { describeTraces } from './support/traces.js';

describe('a recorded session becomes the observations that were read and approved', () => {
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
