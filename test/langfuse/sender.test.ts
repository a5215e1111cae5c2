import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Destination } from '../../src/langfuse/destination.js';
import { langfuseOtlp } from '../../src/langfuse/endpoint.js';
import { openDestination } from '../../src/langfuse/open-destination.js';
import type { Observation } from '../../src/observations/model.js';
import {
  LangfuseServer,
  langfuseAt,
  type OtlpSpan,
  PUBLIC_KEY,
  SECRET_KEY,
  stored,
} from '../support/langfuse-server.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { send, someObservations, someOutgoing } from '../support/traces.js';

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

function open(url: string, secretKey?: string): Destination {
  return openDestination({ ...langfuseAt(url, secretKey), transport: 'otlp' }, '');
}

const encode = (observation: Observation) => destination.encode(observation);

const soon = () => ({ deadline: Date.now() + 10_000 });

const names = () => server.observations.map(({ name }) => name);

const NEW_KEYS = 'make new ones for "cc-langfuse install", or for the plugin';
const OTHER_KEYS = 'sending needs keys with full access, or for ingestion';

describe('the words of a server that refuses the keys', () => {
  const answer = (body: object | string, status = 401) => {
    server.misbehave = () => ({ status, body: typeof body === 'string' ? body : JSON.stringify(body) });
  };
  const failure = async () => (await send(destination, someOutgoing(2), soon())).failure;

  test.each([
    [{ message: 'API key has expired' }, 'API key has expired'],
    [{ error: 'Failed to authenticate' }, 'Failed to authenticate'],
    [{ message: 'Over the limit.', error: 'ForbiddenError' }, 'Over the limit'],
    [{ message: 'say "please"\n\u001b[2J\u202e now' }, "say 'please' [2J now"],
    [{ message: 'x'.repeat(500) }, 'x'.repeat(200)],
    [{ message: `${'x'.repeat(199)}\u{1f600}` }, `${'x'.repeat(199)}\ufffd`],
  ])('are quoted: %j', async (body, words) => {
    answer(body);
    expect(await failure()).toBe(`the server refuses the keys (401): "${words}"; ${NEW_KEYS}`);
  });

  test.each([
    ['nothing'],
    ['<html>401</html>'],
    [{ message: ' ' }],
    [{ message: { code: 1 } }],
    [[{ message: 'API key has expired' }]],
  ])('are not there: %j', async (body) => {
    answer(body);
    expect(await failure()).toBe(`the server refuses the keys (401); ${NEW_KEYS}`);
  });

  test('never contain a key, in no form', async () => {
    const both = Buffer.from(`${PUBLIC_KEY}:${SECRET_KEY}`).toString('base64');
    answer({ message: `Basic ${both}: ${PUBLIC_KEY} ${SECRET_KEY} sk-ant-api03-${'a'.repeat(93)}AA` });
    expect(await failure()).toBe(`the server refuses the keys (401): "Basic …: … … [redacted]"; ${NEW_KEYS}`);
  });

  test('never contain a secret that begins with the public key, as it is or encoded', async () => {
    await destination.close();
    destination = openDestination(
      { ...langfuseAt(server.url, 'demo/secret'), publicKey: 'demo', transport: 'otlp' },
      '',
    );
    answer({ message: 'demo/secret of demo, or pk=demo&sk=demo%2Fsecret' });
    expect(await failure()).toBe(`the server refuses the keys (401): "… of …, or pk=…&sk=…"; ${NEW_KEYS}`);
  });

  test("never contain a gateway's cookie, nor base64 without its filling", async () => {
    await destination.close();
    const headers = { cookie: 'first=chocolate; second=vanilla', 'x-gateway': 'Bearer c3RyYXdiZXJyeQ==' };
    destination = openDestination({ ...langfuseAt(server.url), headers, transport: 'otlp' }, '');
    answer({ message: 'chocolate, vanilla and c3RyYXdiZXJyeQ are over' });
    expect(await failure()).toBe(`the server refuses the keys (401): "…, … and … are over"; ${NEW_KEYS}`);
  });

  test('are waited for no longer than a quarter of the time that is left', async () => {
    server.misbehave = (_, __, spans) => (spans.length > 0 ? { status: 401 } : { after: new Promise(() => {}) });
    const startedAt = Date.now();
    const report = await send(destination, someOutgoing(2), { deadline: startedAt + 4_000 });
    expect(report.failure).toBe(`the server refuses the keys (401); ${NEW_KEYS}`);
    // A quarter is one second.
    expect(Date.now() - startedAt).toBeLessThan(3_900);
  });

  test('never contain what was said: they are those about a request without observations', async () => {
    server.misbehave = (_, __, spans) => {
      const message = spans.length > 0 ? `not allowed: ${spans.map(({ name }) => name)}` : 'Project is suspended';
      return { status: 403, body: JSON.stringify({ message }) };
    };
    expect(await failure()).toBe(`the server refuses the keys (403): "Project is suspended"; ${OTHER_KEYS}`);
    expect(server.requests.map(({ spans }) => spans)).toEqual([2, 0]);
  });

  test('are not asked for in vain: a firewall that objects to the content is named, and other sessions may get through', async () => {
    server.misbehave = (_, __, spans) => (spans.length > 0 ? { status: 403, body: '{"message":"Turn 1"}' } : undefined);
    expect(await destination.send(someOutgoing(2), soon())).toEqual({
      settled: 0,
      dropped: [],
      failure: {
        code: 'other',
        text: 'the server accepts the keys, but not this content (403): a firewall in front of it may object to what was said',
      },
    });
    expect(destination.health).toEqual({ isHealthy: true, hasAnswered: true });
  });
});

describe('an accepted request', () => {
  test('settles all of its spans, and its headers name the sender', async () => {
    expect(await send(destination, someOutgoing(3), soon())).toEqual({ settled: 3, dropped: [], failure: undefined });
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

  test('goes below the path of the base URL, which may end with a slash', () => {
    const endpoint = (url: string) => langfuseOtlp(langfuseAt(url)).url.href;
    expect(endpoint('https://a.example/langfuse/')).toBe('https://a.example/langfuse/api/public/otel/v1/traces');
    expect(endpoint('https://a.example')).toBe('https://a.example/api/public/otel/v1/traces');
  });
});

describe('a final refusal is not retried', () => {
  test.each([
    [401, `the server refuses the keys (401); ${NEW_KEYS}`],
    [403, `the server refuses the keys (403); ${OTHER_KEYS}`],
    [
      404,
      "the server has no OTLP endpoint (404); Langfuse has one since version 3.22: update it, or set LANGFUSE_BASE_URL to the address of your project's page in a browser",
    ],
    [418, 'the server answers 418'],
  ])('if it is %i: %s', async (status, failure) => {
    server.misbehave = () => ({ status });
    expect(await send(destination, someOutgoing(3), soon())).toEqual({ settled: 0, dropped: [], failure });
    expect(server.requests.filter(({ spans }) => spans > 0)).toHaveLength(1);
  });

  test('if the keys are wrong', async () => {
    const report = await send(open(server.url, 'sk-lf-wrong'), someOutgoing(1), soon());
    const words = "Invalid credentials. Confirm that you've configured the correct host";
    expect(report.failure).toBe(`the server refuses the keys (401): "${words}"; ${NEW_KEYS}`);
  });

  test('if it is a redirect, which is not followed because it would send the keys to another host', async () => {
    const elsewhere = await LangfuseServer.start();
    server.misbehave = () => ({ status: 307, headers: { location: `${elsewhere.url}/api/public/otel/v1/traces` } });
    const report = await send(destination, someOutgoing(1), soon());
    expect(report).toMatchObject({
      settled: 0,
      failure: 'the server redirects elsewhere (307); redirects are not followed',
    });
    expect(elsewhere.requests).toEqual([]);
    await elsewhere.stop();
  });
});

describe('after the answer', () => {
  const poison = (name: string) => (_: unknown, __: number, spans: readonly OtlpSpan[]) =>
    spans.some((span) => span.name === name) ? { status: 400 } : undefined;

  test('400 because of one span, that span is found and dropped, and the others arrive once', async () => {
    server.misbehave = poison('Turn 4');
    expect(await send(destination, someOutgoing(9), soon())).toEqual({ settled: 9, dropped: [3], failure: undefined });
    expect(names()).toEqual([1, 2, 3, 5, 6, 7, 8, 9].map((n) => `Turn ${n}`));
    expectEachSentOnce(server);
  });

  test('400 because of the first span, that span is found and dropped', async () => {
    server.misbehave = poison('Turn 1');
    expect(await send(destination, someOutgoing(2), soon())).toEqual({ settled: 2, dropped: [0], failure: undefined });
  });

  test('400 to every request, nothing is dropped, and not every span is tried', async () => {
    server.misbehave = () => ({ status: 400 });
    const report = await send(destination, someOutgoing(200), soon());
    expect(report).toEqual({ settled: 0, dropped: [], failure: 'the server refuses every span (400)' });
    expect(server.requests.length).toBeLessThan(50);
  });

  test('400 to a single span, that span is dropped only if the server accepts a request without spans', async () => {
    server.misbehave = poison('Turn 1');
    expect(await send(destination, someOutgoing(1), soon())).toEqual({ settled: 1, dropped: [0], failure: undefined });
    server.misbehave = () => ({ status: 400 });
    const failure = 'the server refuses every span (400)';
    expect(await send(destination, someOutgoing(1), soon())).toEqual({ settled: 0, dropped: [], failure });
  });

  test('200 with a web page, nothing is settled, since it is not from Langfuse', async () => {
    server.misbehave = () => ({ status: 200, headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<html>' });
    const report = await send(destination, someOutgoing(2), soon());
    expect(report).toMatchObject({ settled: 0, failure: 'this is not Langfuse: it answered 200 with a web page' });
  });

  test('413, smaller requests are sent, in order', async () => {
    server.misbehave = (_, __, spans) => (spans.length > 2 ? { status: 413 } : undefined);
    expect(await send(destination, someOutgoing(7), soon())).toEqual({ settled: 7, dropped: [], failure: undefined });
    expect(names()).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => `Turn ${n}`));
  });

  test('413 to a single span, its content is cut until it is accepted, and the others arrive whole', async () => {
    const [small, large, last] = someObservations(3);
    const output = { role: 'assistant', content: 'x'.repeat(90_000) };
    const all = [small, { ...large, output }, last].map((each) => encode(each as Observation));
    server.misbehave = (_, __, spans) => (JSON.stringify(spans).length > 30_000 ? { status: 413 } : undefined);
    const report = { settled: 3, dropped: [], cut: [1], failure: undefined };
    expect(await send(destination, all, soon())).toEqual(report);
    expect(names()).toEqual(['Turn 1', 'Turn 2', 'Turn 3']);
    expectEachSentOnce(server);
    const [, arrived] = server.observations;
    const { content = '' } = (arrived?.output ?? {}) as { content?: string };
    const [, kept, more] = /^(x+)… \[(\d+) more characters\]$/.exec(content) ?? [];
    expect([Number(kept?.length) > 10_000, Number(kept?.length) + Number(more)]).toEqual([true, 90_000]);
    const whole = stored(JSON.parse(all[1]?.json ?? ''));
    const metadata = { ...whole.metadata, output_full_chars: 90_009 };
    expect(arrived).toEqual({ ...whole, output: { role: 'assistant', content }, metadata });
  });

  test('413 to a single span even without its content, that span is dropped, and the others arrive', async () => {
    server.misbehave = (_, __, spans) => (spans.some(({ name }) => name === 'Turn 3') ? { status: 413 } : undefined);
    expect(await send(destination, someOutgoing(4), soon())).toEqual({ settled: 4, dropped: [2], failure: undefined });
    expect(names()).toEqual(['Turn 1', 'Turn 2', 'Turn 4']);
  });

  test('413 to every request, nothing is dropped', async () => {
    server.misbehave = () => ({ status: 413 });
    const failure =
      'the server refuses every span (413), also halved and cut: raise the limit of the proxy in front of it';
    for (const count of [1, 4, 40])
      expect(await send(destination, someOutgoing(count), soon())).toEqual({ settled: 0, dropped: [], failure });
  });

  test('401 in the middle, what was acknowledged before stays settled', async () => {
    server.misbehave = (_, __, spans) => {
      if (spans.length > 2) return { status: 413 };
      return spans.some(({ name }) => name === 'Turn 3') ? { status: 401 } : undefined;
    };
    expect(await send(destination, someOutgoing(4), soon())).toEqual({
      settled: 2,
      dropped: [],
      failure: `the server refuses the keys (401); ${NEW_KEYS}`,
    });
  });
});
