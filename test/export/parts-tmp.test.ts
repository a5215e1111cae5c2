import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Exporter } from '../support/exporter.js';
import { recordings, transcriptsOf } from '../support/recording.js';

const norm = (observations: readonly any[]) =>
  observations.map(({ tags, seen, ...rest }) => rest).toSorted((a, b) => (a.id < b.id ? -1 : 1));
describe('parts', () => {
  test.each(recordings())('$name', async (recording) => {
    const [one, two] = [await Exporter.open(), await Exporter.open()];
    try {
      for (const path of transcriptsOf(recording)) {
        await one.export(path);
        await two.export(path, {}, {}, { partBytes: 0 });
      }
      expect(norm(two.server.observations)).toEqual(norm(one.server.observations));
    } finally {
      await one.close();
      await two.close();
    }
  });
});
