import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { LangfuseConfig } from '../../../src/config/settings.js';
import type { Destination } from '../../../src/langfuse/destination.js';
import { openDestination } from '../../../src/langfuse/open-destination.js';
import type { Observation } from '../../../src/observations/model.js';
import type { IngestedEvent } from '../../support/ingestion-store.js';
import { LangfuseServer, langfuseAt } from '../../support/langfuse-server.js';
import { outgoing, send as sendTo, someObservations, someOutgoing } from '../../support/traces.js';

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

function open(transport: LangfuseConfig['transport'] = 'auto'): Destination {
  const destination = openDestination({ ...langfuseAt(server.url), transport }, folder);
  opened.push(destination);
  return destination;
}

const soon = () => ({ deadline: Date.now() + 10_000 });
const send = async (count: number, transport?: LangfuseConfig['transport']) =>
  sendTo(open(transport), someOutgoing(count), soon());
const paths = () => server.requests.map(({ path }) => path.replace('/api/public/', ''));
const names = () => server.observations.map(({ name }) => name);
const spanOf = (turn: number) => (event: IngestedEvent) =>
  event.type === 'span-create' && event.body.name === `Turn ${turn}`;
const all = (count: number) => ({ settled: count, dropped: [], failure: undefined });

describe('CC_LANGFUSE_TRANSPORT', () => {
  test('otlp never uses the ingestion API, even if there is no OTLP endpoint', async () => {
    const failure =
      "the server has no OTLP endpoint (404); Langfuse has one since version 3.22: update it, or set LANGFUSE_BASE_URL to the address of your project's page in a browser";
    expect(await send(1, 'otlp')).toEqual({ settled: 0, dropped: [], failure });
    expect(paths()).toEqual(['otel/v1/traces']);
  });

  test('ingestion never uses OTLP', async () => {
    expect(await send(1, 'ingestion')).toEqual(all(1));
    expect(paths()).toEqual(['ingestion']);
  });

  test('ingestion settles nothing with Langfuse 4, and the failure says what to do', async () => {
    server.isOlder = false;
    const destination = open('ingestion');
    const report = await sendTo(destination, someOutgoing(3), soon());
    const failure =
      'Langfuse refuses every event (400): since version 4 its ingestion API accepts no traces; unset CC_LANGFUSE_TRANSPORT to send them by OpenTelemetry';
    expect(report).toEqual({ settled: 0, dropped: [], failure });
    expect(destination.health.isHealthy).toBe(false);
    expect(server.requests).toHaveLength(1);
    // A single observation is not dropped as if it were at fault.
    const [{ observation } = {}] = someOutgoing(1);
    const child = observation && outgoing({ ...observation, parentId: '0123456789abcdef' });
    expect(await sendTo(destination, child ? [child] : [], soon())).toEqual({ settled: 0, dropped: [], failure });
  });
});

const REFUSED = 'the server refuses the keys (401); make new ones for "cc-langfuse install", or for the plugin';

describe('the answer to a batch is read event by event', () => {
  beforeEach(async () => {
    await send(1);
    server.requests.length = 0;
    server.ingested.events.length = 0;
  });

  test.each([429, 500, 503])(
    'an observation that is refused temporarily (%i) is sent again, the others are not',
    async (status) => {
      let times = 0;
      server.ingested.refuse = (event) => {
        if (!spanOf(2)(event)) return undefined;
        times += 1;
        return times < 3 ? status : undefined;
      };
      expect(await send(3)).toEqual(all(3));
      expect(server.requests.map(({ events }) => events)).toEqual([6, 2, 2]);
      const spans = server.ingested.events.filter(({ type }) => type === 'span-create').map(({ body }) => body.name);
      expect(spans).toEqual(['Turn 1', 'Turn 3', 'Turn 2']);
    },
  );

  test('after an observation that stays refused, none is settled', async () => {
    server.ingested.refuse = (event) => (spanOf(2)(event) ? 500 : undefined);
    expect(await send(3)).toEqual({ settled: 1, dropped: [], failure: 'the server answers 500' });
    expect(server.requests).toHaveLength(4);
  });

  test('an observation that is refused because of its content is dropped', async () => {
    server.ingested.refuse = (event) => (spanOf(2)(event) ? 400 : undefined);
    expect(await send(3)).toEqual({ settled: 3, dropped: [1], failure: undefined });
  });

  test('after 401 for an event nothing is settled, since the keys may not write', async () => {
    server.ingested.refuse = () => 401;
    expect(await send(2)).toEqual({ settled: 0, dropped: [], failure: REFUSED });
  });

  test('an observation that the answer does not mention is sent again', async () => {
    server.misbehave = (_, number) =>
      number === 0 ? { status: 207, body: '{"successes":[],"errors":[]}' } : undefined;
    expect(await send(2)).toEqual(all(2));
    expect(server.requests.map(({ events }) => events)).toEqual([4, 4]);
  });

  test.each([
    [{ status: 200, headers: { 'content-type': 'text/html' }, body: '<html>' }, 'this is not Langfuse'],
    [{ status: 200, body: '{}' }, 'this is not Langfuse'],
    [{ status: 207, body: '{"successes":[null],"errors":[{"id":1}]}' }, 'this is not Langfuse'],
    [{ status: 201, body: '' }, 'this is not Langfuse'],
    [{ status: 204, body: '' }, 'this is not Langfuse'],
    [{ status: 401 }, REFUSED],
    [{ status: 418 }, 'the server answers 418'],
    [{ status: 307, headers: { location: 'http://127.0.0.1:1/' } }, 'the server redirects elsewhere (307)'],
  ])('the answer %j settles nothing', async (answer, failure) => {
    server.misbehave = () => answer;
    const report = await send(1);
    expect(report).toMatchObject({ settled: 0, dropped: [], failure: expect.stringContaining(failure) });
    expect(server.requests.filter(({ events }) => events > 0)).toHaveLength(1);
  });

  test('a failed batch is sent again, after as long as the server asks to wait', async () => {
    server.misbehave = (_, number) => {
      if (number === 0) return { status: 429, headers: { 'retry-after': '1' } };
      return number === 1 ? { disconnect: 'after taking' } : undefined;
    };
    const startedAt = Date.now();
    expect(await send(1)).toEqual(all(1));
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(990);
    expect(server.requests).toHaveLength(3);
    // An event that was sent twice has the same id.
    const [first, second] = server.ingested.events.filter(({ type }) => type === 'span-create');
    expect(second?.id).toBe(first?.id);
    expect(server.observations).toHaveLength(1);
  });

  test('a server that hangs is given up at the deadline', async () => {
    server.misbehave = () => ({ delayMs: 5_000 });
    const destination = open();
    // With less than 200 ms it would not begin.
    expect((await sendTo(destination, someOutgoing(1), { deadline: Date.now() + 1_000 })).failure).toMatch(
      /no answer within [\d.]+ s$/,
    );
  });

  test('after 413 smaller batches are sent', async () => {
    server.misbehave = (request) => (Number(request.headers['content-length']) > 3_000 ? { status: 413 } : undefined);
    expect(await send(5)).toEqual(all(5));
    expect(new Set(names())).toEqual(new Set([1, 2, 3, 4, 5].map((n) => `Turn ${n}`)));
  });
});

test('an observation that is too large on its own is cut until it is accepted', async () => {
  const [root] = someObservations(1) as [Observation];
  const output = { role: 'assistant', content: 'x'.repeat(90_000) };
  server.misbehave = (request) => (Number(request.headers['content-length']) > 60_000 ? { status: 413 } : undefined);
  const destination = open();
  const report = await sendTo(destination, [destination.encode({ ...root, output })], {
    deadline: Date.now() + 10_000,
  });
  expect(report).toEqual({ settled: 1, dropped: [], cut: [0], failure: undefined });
  const content = expect.stringMatching(/^x{10000,}… \[\d+ more characters\]$/);
  expect(server.observations).toMatchObject([
    { id: root.id, input: root.input, output: { role: 'assistant', content }, metadata: { output_full_chars: 90_009 } },
  ]);
});

test('the package langfuse reads no environment variable and prints nothing', async () => {
  const printed = [vi.spyOn(console, 'error'), vi.spyOn(console, 'log'), vi.spyOn(console, 'warn')];
  vi.stubEnv('LANGFUSE_TRACING_ENVIRONMENT', 'Not Allowed!');
  vi.stubEnv('LANGFUSE_RELEASE', 'theirs');
  vi.stubEnv('LANGFUSE_SAMPLE_RATE', '0');
  vi.stubEnv('LANGFUSE_SECRET_KEY', 'sk-lf-theirs');
  expect(await send(2)).toEqual(all(2));
  expect(server.observations.map(({ trace: { environment, release } }) => ({ environment, release }))).toEqual([
    {},
    {},
  ]);
  for (const spy of printed) expect(spy).not.toHaveBeenCalled();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

test('the global fetch is not replaced', async () => {
  const before = globalThis.fetch;
  await send(1);
  expect(globalThis.fetch).toBe(before);
});
