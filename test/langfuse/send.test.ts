import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { OtlpTransport } from '../../src/langfuse/otlp/otlp-transport.js';
import { otlpEndpoint } from '../../src/langfuse/receiver.js';
import { Sender } from '../../src/langfuse/send.js';
import { LangfuseServer, langfuseAt, type OtlpSpan } from '../support/langfuse-server.js';
import { someOutgoing } from '../support/traces.js';

let server: LangfuseServer;
let sender: Sender;

beforeEach(async () => {
  server = await LangfuseServer.start();
  sender = senderTo(server.url);
});

afterEach(async () => {
  await sender.close();
  await server.stop();
});

function senderTo(url: string, secretKey?: string): Sender {
  return new Sender(new OtlpTransport(langfuseAt(url, secretKey)));
}

const soon = () => Date.now() + 10_000;

const names = () => server.observations.map(({ name }) => name);

describe('a request that the server takes', () => {
  test('settles all of its spans, and says at the door who it is', async () => {
    expect(await sender.send(someOutgoing(3), soon())).toEqual({ settled: 3, dropped: [], failure: undefined });
    expect(names()).toEqual(['Turn 1', 'Turn 2', 'Turn 3']);
    expect(server.requests).toMatchObject([
      {
        path: '/api/public/otel/v1/traces',
        headers: {
          'content-type': 'application/json',
          'content-encoding': 'gzip',
          'x-langfuse-ingestion-version': '4',
          'x-langfuse-sdk-name': 'cc-langfuse',
        },
      },
    ]);
  });

  test('a base URL may have a path of its own, and a slash at its end', () => {
    const endpoint = (url: string) => otlpEndpoint(langfuseAt(url)).url.href;
    expect(endpoint('https://a.example/langfuse/')).toBe('https://a.example/langfuse/api/public/otel/v1/traces');
    expect(endpoint('https://a.example')).toBe('https://a.example/api/public/otel/v1/traces');
  });
});

describe('what passes is tried again', () => {
  test.each([408, 429, 500, 502, 503])('%i', async (status) => {
    server.misbehave = (_, number) =>
      number < 2 ? { status, body: '<html>', headers: { 'retry-after': '0' } } : undefined;
    expect(await sender.send(someOutgoing(2), soon())).toEqual({ settled: 2, dropped: [], failure: undefined });
    expect(server.requests.map((request) => request.status)).toEqual([status, status, 200]);
    expect([...server.arrivals.values()]).toEqual([1, 1]);
  });

  test('a connection that ends without an answer', async () => {
    server.misbehave = (_, number) => (number === 0 ? { disconnect: 'before taking' } : undefined);
    expect(await sender.send(someOutgoing(1), soon())).toEqual({ settled: 1, dropped: [], failure: undefined });
  });

  test('after as long as the server asks to wait', async () => {
    server.misbehave = (_, number) => (number === 0 ? { status: 429, headers: { 'retry-after': '1' } } : undefined);
    const startedAt = Date.now();
    await sender.send(someOutgoing(1), soon());
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(990);
  });

  test('but not beyond the deadline', async () => {
    server.misbehave = () => ({ status: 429, headers: { 'retry-after': '60' } });
    const startedAt = Date.now();
    const report = await sender.send(someOutgoing(1), Date.now() + 500);
    expect(report).toEqual({ settled: 0, dropped: [], failure: 'the server asks to wait (429)' });
    expect(Date.now() - startedAt).toBeLessThan(500);
  });

  test('a server that hangs is left at the deadline', async () => {
    server.misbehave = () => ({ delayMs: 5_000 });
    const report = await sender.send(someOutgoing(1), Date.now() + 300);
    expect(report.settled).toBe(0);
    expect(report.failure).toMatch(/^cannot reach the server: no answer within \d+ ms$/);
  });

  test('a server that is not there is given up after a few tries', async () => {
    const { url } = server;
    await server.stop();
    const report = await senderTo(url).send(someOutgoing(1), soon());
    expect(report).toEqual({ settled: 0, dropped: [], failure: 'cannot reach the server: ECONNREFUSED' });
    server = await LangfuseServer.start();
  });
});

describe('what is final is not tried again', () => {
  test.each([
    [401, 'the server refuses the keys (401)'],
    [403, 'the server refuses the keys (403)'],
    [404, 'the server has no OTLP endpoint (404); Langfuse has one from 3.22 on'],
    [418, 'the server answers 418'],
  ])('%i', async (status, failure) => {
    server.misbehave = () => ({ status });
    expect(await sender.send(someOutgoing(3), soon())).toEqual({ settled: 0, dropped: [], failure });
    expect(server.requests).toHaveLength(1);
  });

  test('wrong keys', async () => {
    const report = await senderTo(server.url, 'sk-lf-wrong').send(someOutgoing(1), soon());
    expect(report.failure).toBe('the server refuses the keys (401)');
  });

  test('a redirect is not followed: it would take the keys to another host', async () => {
    const elsewhere = await LangfuseServer.start();
    server.misbehave = () => ({ status: 307, headers: { location: `${elsewhere.url}/api/public/otel/v1/traces` } });
    const report = await sender.send(someOutgoing(1), soon());
    expect(report).toMatchObject({
      settled: 0,
      failure: 'the server redirects elsewhere (307), which is not followed',
    });
    expect(elsewhere.requests).toEqual([]);
    await elsewhere.stop();
  });
});

describe('a request that is refused for a part of it', () => {
  const poison = (name: string) => (_: unknown, __: number, spans: readonly OtlpSpan[]) =>
    spans.some((span) => span.name === name) ? { status: 400 } : undefined;

  test('400: the span at fault is found and left out, the others arrive once', async () => {
    server.misbehave = poison('Turn 4');
    expect(await sender.send(someOutgoing(9), soon())).toEqual({ settled: 9, dropped: [3], failure: undefined });
    expect(names()).toEqual([1, 2, 3, 5, 6, 7, 8, 9].map((n) => `Turn ${n}`));
    expect([...server.arrivals.values()].every((times) => times === 1)).toBe(true);
  });

  test('400 for the first one too', async () => {
    server.misbehave = poison('Turn 1');
    expect(await sender.send(someOutgoing(2), soon())).toEqual({ settled: 2, dropped: [0], failure: undefined });
  });

  test('400 for everything loses nothing, and the server is not asked about every span', async () => {
    server.misbehave = () => ({ status: 400 });
    const report = await sender.send(someOutgoing(200), soon());
    expect(report).toEqual({ settled: 0, dropped: [], failure: 'the server refuses every span (400)' });
    expect(server.requests.length).toBeLessThan(50);
  });

  test('400 for one alone in its request: it is left out where the server takes a request without spans', async () => {
    server.misbehave = poison('Turn 1');
    expect(await sender.send(someOutgoing(1), soon())).toEqual({ settled: 1, dropped: [0], failure: undefined });
    server.misbehave = () => ({ status: 400 });
    const failure = 'the server refuses every span (400)';
    expect(await sender.send(someOutgoing(1), soon())).toEqual({ settled: 0, dropped: [], failure });
  });

  test('200 with a page: whatever answered, it was not Langfuse', async () => {
    server.misbehave = () => ({ status: 200, headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<html>' });
    const report = await sender.send(someOutgoing(2), soon());
    expect(report).toMatchObject({ settled: 0, failure: 'what answers 200 is no Langfuse: it sent a page' });
  });

  test('413: smaller requests, in order', async () => {
    server.misbehave = (_, __, spans) => (spans.length > 2 ? { status: 413 } : undefined);
    expect(await sender.send(someOutgoing(7), soon())).toEqual({ settled: 7, dropped: [], failure: undefined });
    expect(names()).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => `Turn ${n}`));
  });

  test('413 for a single span: it stays to be sent, what came before it is settled', async () => {
    server.misbehave = (_, __, spans) => (spans.some(({ name }) => name === 'Turn 3') ? { status: 413 } : undefined);
    expect(await sender.send(someOutgoing(4), soon())).toEqual({
      settled: 2,
      dropped: [],
      failure: 'the server refuses a single observation for its size (413)',
    });
  });

  test('a failure in the middle leaves what was acknowledged before it settled', async () => {
    server.misbehave = (_, __, spans) => {
      if (spans.length > 2) return { status: 413 };
      return spans.some(({ name }) => name === 'Turn 3') ? { status: 401 } : undefined;
    };
    expect(await sender.send(someOutgoing(4), soon())).toEqual({
      settled: 2,
      dropped: [],
      failure: 'the server refuses the keys (401)',
    });
  });
});
