import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openExactRequests } from '../../src/export/exact-requests.lazy.js';
import type { Observation } from '../../src/observations/model.js';
import { readLines } from '../../src/transcript/file/lines.js';
import { appendLines, text } from '../support/lines.js';
import { ScriptedSession } from '../support/requests.js';
import { OPTIONS, someObservations } from '../support/traces.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-requests-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a generation keeps its own input if building the request fails', async () => {
  const path = join(folder, 'session.jsonl');
  appendLines(path, ...new ScriptedSession().prompt('hi').answer(text('Hello.')).takeLines());
  const settings = {
    ...OPTIONS,
    input: 'request' as const,
    redact: () => {
      throw new Error('it cannot be redacted');
    },
  };
  const requests = openExactRequests(path);
  for (const line of readLines(path)) requests.observe(line);
  const [root] = someObservations(1) as [Observation];
  expect(await requests.withRequest({ ...root, requestRef: 'request-1' }, settings)).toMatchObject({
    input: root.input,
    metadata: { request_missing: true },
  });
  requests.close();
});
