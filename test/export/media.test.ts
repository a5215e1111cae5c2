import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { exportSession } from '../../src/export/session.js';
import { DryRunDestination } from '../../src/langfuse/dry-run-destination.js';
import type { Observation } from '../../src/observations/model.js';
import { openLog } from '../../src/shared/log.js';
import { DryRunState } from '../../src/state/dry-run.js';
import { StateStore } from '../../src/state/store.js';
import { appendLines, assistant, SESSION, user } from '../support/lines.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-media-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

class CountingDestination extends DryRunDestination {
  uploads = 0;

  override async uploadMedia() {
    this.uploads += 1;
    return super.uploadMedia();
  }
}

test('an observation without images is sent without an upload', async () => {
  const path = join(folder, `${SESSION}.jsonl`);
  appendLines(path, user('go'), assistant('m1', 'ok'));
  const destination = new CountingDestination();
  const sent: Observation[] = [];
  await exportSession(
    {
      sessionId: SESSION,
      path,
      occasion: 'backfill',
      includesOpen: true,
      run: { destination: 'x', given: {} },
      takesAll: true,
    },
    {
      state: new DryRunState(new StateStore(folder, () => {})),
      destination,
      destinationId: 'x',
      env: {},
      deadline: Date.now() + 20_000,
      log: openLog(folder, { debug: false }),
      observer: { onObservation: (observation) => sent.push(observation) },
    },
  );
  expect(sent.map(({ type }) => type)).toEqual(['generation', 'agent']);
  expect(destination.uploads).toBe(0);
});
