import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LangfuseConfig } from '../../../src/config/settings.js';
import type { Destination } from '../../../src/langfuse/destination.js';
import { openDestination } from '../../../src/langfuse/open-destination.js';
import { LangfuseServer, langfuseAt } from '../../support/langfuse-server.js';
import { send as sendTo, someOutgoing } from '../../support/traces.js';

const FILE_NAME = 'cc-langfuse_no_otlp';
const HOUR = 3_600_000;

let folder: string;
let server: LangfuseServer;
const opened: Destination[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-older-'));
  server = await LangfuseServer.start();
  server.isOlder = true;
});

afterEach(async () => {
  for (const destination of opened.splice(0)) await destination.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

function open(stateFolder = folder, config: LangfuseConfig = langfuseAt(server.url)): Destination {
  const destination = openDestination(config, stateFolder);
  opened.push(destination);
  return destination;
}

const soon = () => ({ deadline: Date.now() + 10_000 });
const send = async (count: number) => sendTo(open(), someOutgoing(count), soon());
const paths = () => server.requests.map(({ path }) => path.replace('/api/public/', ''));
const names = () => server.observations.map(({ name }) => name);
const all = (count: number) => ({ settled: count, dropped: [], failure: undefined });

describe('a server without an OTLP endpoint', () => {
  test('gets observations by the ingestion API', async () => {
    expect(await send(2)).toEqual(all(2));
    expect(names()).toEqual(['Turn 1', 'Turn 2']);
    expect(paths()).toEqual(['otel/v1/traces', 'ingestion']);
    expect(server.requests[1]?.headers).toMatchObject({
      'x-langfuse-sdk-name': 'cc-langfuse',
      'user-agent': expect.stringMatching(/^cc-langfuse\//),
    });
  });

  test('is not asked for one again for a day', async () => {
    await send(1);
    await send(1);
    expect(paths()).toEqual(['otel/v1/traces', 'ingestion', 'ingestion']);
    const kept = Object.entries<number>(JSON.parse(readFileSync(join(folder, FILE_NAME), 'utf8')));
    expect(kept).toHaveLength(1);
    for (const [hours, isTried] of [
      [23, false],
      [25, true],
    ] as const) {
      server.requests.length = 0;
      const foundAt = kept.map(([destination]) => [destination, Date.now() - hours * HOUR]);
      writeFileSync(join(folder, FILE_NAME), JSON.stringify(Object.fromEntries(foundAt)));
      await send(1);
      expect(paths().includes('otel/v1/traces')).toBe(isTried);
    }
  });

  test('is remembered per project', async () => {
    await send(1);
    const other = { ...langfuseAt(server.url), publicKey: 'pk-lf-other' };
    await sendTo(open(folder, other), someOutgoing(1), soon());
    expect(new Set(paths().slice(2))).toEqual(new Set(['otel/v1/traces']));
  });

  test('that has been upgraded gets observations by OpenTelemetry once it refuses ingestion', async () => {
    await send(1);
    server.isOlder = false;
    expect(await send(2)).toEqual(all(2));
    expect(paths().slice(2)).toEqual(['ingestion', 'otel/v1/traces']);
    await send(1);
    expect(paths().slice(4)).toEqual(['otel/v1/traces']);
  });

  test('that had one when the run started fails, and the next run uses the ingestion API', async () => {
    const destination = open();
    const encoded = () =>
      someOutgoing(1).flatMap(({ observation }) => (observation ? destination.encode(observation) : []));
    server.isOlder = false;
    expect(await sendTo(destination, encoded(), soon())).toEqual(all(1));
    server.isOlder = true;
    expect(await sendTo(destination, encoded(), soon())).toMatchObject({
      settled: 0,
      failure: expect.stringContaining('404'),
    });
    expect(paths()).toEqual(['otel/v1/traces', 'otel/v1/traces']);
    expect(await send(1)).toEqual(all(1));
  });

  test.each(['', '{', '[]', 'null', '{"a":"b"}'])(
    'is discovered again if the remembered file contains %j',
    async (memory) => {
      writeFileSync(join(folder, FILE_NAME), memory);
      expect(await send(1)).toEqual(all(1));
    },
  );

  test('is discovered by each run if the file cannot be written', async () => {
    writeFileSync(join(folder, 'file'), '');
    const destination = open(join(folder, 'file'));
    expect(await sendTo(destination, someOutgoing(1), soon())).toEqual(all(1));
  });

  test('or an ingestion API is a failure, and is not remembered', async () => {
    server.misbehave = () => ({ status: 404 });
    const failure =
      "the server has neither an OTLP endpoint nor an ingestion API (404), so it is not Langfuse; set LANGFUSE_BASE_URL to the address of your project's page in a browser";
    expect(await send(1)).toEqual({ settled: 0, dropped: [], failure });
    await send(1);
    expect(paths()).toEqual(['otel/v1/traces', 'ingestion', 'otel/v1/traces', 'ingestion']);
  });
});
