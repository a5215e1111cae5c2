import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { DestinationConfig } from '../../../src/config/settings.js';
import type { Destination } from '../../../src/langfuse/destination.js';
import { openDestination } from '../../../src/langfuse/open-destination.js';
import { LangfuseServer, langfuseAt, PUBLIC_KEY, SECRET_KEY } from '../../support/langfuse-server.js';
import { POLL } from '../../support/program.js';
import { expectEachSentOnce } from '../../support/sent-once.js';
import { send, someOutgoing } from '../../support/traces.js';

const KEYS = { authorization: `Basic ${Buffer.from(`${PUBLIC_KEY}:${SECRET_KEY}`).toString('base64')}` };

let server: LangfuseServer;
let destination: Destination;

beforeEach(async () => {
  server = await LangfuseServer.start();
  destination = open(server.url);
});

afterEach(async () => {
  await destination.close();
  await server.stop();
});

function open(url: string): Destination {
  return openDestination({ ...langfuseAt(url), transport: 'otlp' }, '');
}

const soon = () => ({ deadline: Date.now() + 10_000 });

describe('a request is repeated', () => {
  test.each([408, 429, 500, 502, 503])('after status %i', async (status) => {
    server.misbehave = (_, number) =>
      number < 2 ? { status, body: '<html>', headers: { 'retry-after': '0' } } : undefined;
    expect(await send(destination, someOutgoing(2), soon())).toEqual({ settled: 2, dropped: [], failure: undefined });
    expect(server.requests.map((request) => request.status)).toEqual([status, status, 200]);
    expect(server.observations).toHaveLength(2);
    expectEachSentOnce(server);
  });

  test('after a connection that ends without an answer', async () => {
    server.misbehave = (_, number) => (number === 0 ? { disconnect: 'before taking' } : undefined);
    expect(await send(destination, someOutgoing(1), soon())).toEqual({ settled: 1, dropped: [], failure: undefined });
  });

  test('after as long as the server asks to wait', async () => {
    server.misbehave = (_, number) => (number === 0 ? { status: 429, headers: { 'retry-after': '1' } } : undefined);
    const startedAt = Date.now();
    await send(destination, someOutgoing(1), soon());
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(990);
  });

  test('but not if the server asks to wait beyond the deadline, and then the deadline is not waited for', async () => {
    server.misbehave = () => ({ status: 429, headers: { 'retry-after': '600' } });
    // If it waited until then, the test would time out.
    const report = await send(destination, someOutgoing(1), { deadline: Date.now() + 300_000 });
    expect(report).toEqual({ settled: 0, dropped: [], failure: 'the server asks to wait (429)' });
    expect(server.requests).toHaveLength(1);
  });

  test('but not after the deadline, if the server hangs', async () => {
    server.misbehave = () => ({ delayMs: 5_000 });
    // With less than 200 ms it would not begin.
    const report = await send(destination, someOutgoing(1), { deadline: Date.now() + 1_000 });
    expect(report.settled).toBe(0);
    expect(report.failure).toMatch(/^127\.0\.0\.1:\d+ cannot be reached: no answer within [\d.]+ s$/);
  });

  test('but only a few times, if there is no server', async () => {
    const { url, port } = server;
    await server.stop();
    const report = await send(open(url), someOutgoing(1), soon());
    expect(report).toEqual({ settled: 0, dropped: [], failure: `127.0.0.1:${port} cannot be reached: ECONNREFUSED` });
    server = await LangfuseServer.start();
  });
});

test.each<[string, (url: string) => DestinationConfig]>([
  ['Langfuse by OTLP', (url) => ({ ...langfuseAt(url), transport: 'otlp' })],
  ['Langfuse by ingestion', (url) => ({ ...langfuseAt(url), transport: 'ingestion' })],
  ['Langfuse by either', (url) => ({ ...langfuseAt(url), transport: 'auto' })],
  [
    'a Collector',
    (url) => ({
      kind: 'collector',
      url: new URL(`${url}/api/public/otel/v1/traces`),
      headers: KEYS,
      semconv: 'none',
    }),
  ],
])('requests to %s are repeated', async (name, configure) => {
  server.isOlder = name === 'Langfuse by ingestion';
  server.misbehave = (_, number) => (number === 0 ? { status: 503, headers: { 'retry-after': '0' } } : undefined);
  const other = openDestination(configure(server.url), '');
  expect(await send(other, someOutgoing(1), soon())).toMatchObject({ settled: 1 });
  expect(server.requests.map(({ status }) => status)).toEqual([503, expect.any(Number)]);
  await other.close();
});

test('after one request was asked to wait, others wait too', async () => {
  server.misbehave = (_, number) => (number === 0 ? { status: 429, headers: { 'retry-after': '1' } } : undefined);
  const first = send(destination, someOutgoing(1), soon());
  await vi.waitUntil(() => destination.pausedUntil > 0, POLL);
  const { pausedUntil } = destination;
  await send(destination, someOutgoing(1), soon());
  expect(Date.now()).toBeGreaterThanOrEqual(pausedUntil);
  await first;
});

test('a request that is stopped while it waits is given up', async () => {
  const stop = new AbortController();
  server.misbehave = () => ({ status: 503, headers: { 'retry-after': '5' } });
  const sending = send(destination, someOutgoing(1), { ...soon(), stop: stop.signal });
  await vi.waitUntil(() => server.requests.length > 0, POLL);
  stop.abort();
  expect(await sending).toEqual({ settled: 0, dropped: [], failure: 'stopped' });
  expect(server.requests).toHaveLength(1);
});
