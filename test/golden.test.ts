import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { recordings, transcriptsOf } from './support/recording.js';
import { describeTraces, observationsOf } from './support/traces.js';

describe('a recorded session becomes the observations that were read and approved', () => {
  test.each(recordings())('$name', async (recording) => {
    const observations = transcriptsOf(recording).flatMap((path) => observationsOf(path));
    await expect(describeTraces(observations)).toMatchFileSnapshot(join(recording.folder, 'expected.json'));
  });
});
