import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { otlpEndpoint } from '../src/langfuse/endpoint.js';
import { Sender } from '../src/langfuse/send.js';
import { openLog } from '../src/log.js';
import { exportSession } from '../src/session-export.js';
import { StateStore } from '../src/state/store.js';
import { LangfuseServer, PUBLIC_KEY, SECRET_KEY } from './support/langfuse-server.js';
import { recording, transcriptsOf } from './support/recording.js';
import { describeTraces, OPTIONS } from './support/traces.js';

let folder: string;
let server: LangfuseServer;
let sender: Sender;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-export-'));
  server = await LangfuseServer.start();
  sender = new Sender(otlpEndpoint({ baseUrl: new URL(server.url), publicKey: PUBLIC_KEY, secretKey: SECRET_KEY }));
});

afterEach(async () => {
  await sender.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

function exportNow(path: string, sessionId: string) {
  const store = new StateStore(folder, () => {});
  const log = openLog(folder, { debug: false });
  const tools = { store, sender, options: OPTIONS, destination: 'x', log, deadline: Date.now() + 10_000 };
  return exportSession({ sessionId, path, closing: { kind: 'everything' } }, tools);
}

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
    const sessionId = basename(source, '.jsonl');
    const path = join(folder, basename(source));
    const lines = readFileSync(source, 'utf8').trimEnd().split('\n');
    for (const [place] of lines.entries()) {
      writeFileSync(path, `${lines.slice(0, place + 1).join('\n')}\n`);
      expect(await exportNow(path, sessionId)).toMatchObject({ failure: undefined });
    }
    const expected = JSON.parse(readFileSync(join(recording(name).folder, 'expected.json'), 'utf8'));
    expect(JSON.parse(describeTraces(server.observations))).toEqual(expected);
    expect(server.lost).toBe(0);
  });
});

describe('a transcript that is exported while the server fails at random', () => {
  test.each([1, 2, 3])('arrives whole, and what was acknowledged is not sent again (%i)', async (seed) => {
    const [source = ''] = transcriptsOf(recording('p-streamjson'));
    const sessionId = basename(source, '.jsonl');
    const random = numbersFrom(seed);
    server.misbehave = (_, __, spans) => {
      if (spans.length > 3) return { status: 413 };
      return random() < 0.3 ? { status: 401 } : undefined;
    };
    const failures: (string | undefined)[] = [];
    do failures.push((await exportNow(source, sessionId)).failure);
    while (failures.at(-1) !== undefined);
    expect(failures.length).toBeGreaterThan(1);
    const expected = JSON.parse(readFileSync(join(recording('p-streamjson').folder, 'expected.json'), 'utf8'));
    expect(JSON.parse(describeTraces(server.observations))).toEqual(expected);
    expect([...server.arrivals.values()].every((times) => times === 1)).toBe(true);
  });

  function numbersFrom(seed: number): () => number {
    let state = seed;
    return () => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return state / 2 ** 31;
    };
  }
});
