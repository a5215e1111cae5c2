import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { LangfuseConfig } from '../../../src/config/settings.js';
import { Sender } from '../../../src/langfuse/send.js';
import { transportTo } from '../../../src/langfuse/transport-to.js';
import type { IngestedEvent } from '../../support/ingestion-store.js';
import { LangfuseServer, langfuseAt } from '../../support/langfuse-server.js';
import { outgoing, someOutgoing } from '../../support/traces.js';

const MEMORY = 'cc-langfuse_no_otlp';
const HOUR = 3_600_000;

let folder: string;
let server: LangfuseServer;
const senders: Sender[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-older-'));
  server = await LangfuseServer.start();
  server.isOlder = true;
});

afterEach(async () => {
  for (const sender of senders.splice(0)) await sender.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function senderBy(transport: LangfuseConfig['transport'] = 'auto', memory = folder): Promise<Sender> {
  const sender = new Sender(await transportTo({ ...langfuseAt(server.url), transport }, memory));
  senders.push(sender);
  return sender;
}

const soon = () => Date.now() + 10_000;
const send = async (count: number, transport?: LangfuseConfig['transport']) =>
  (await senderBy(transport)).send(someOutgoing(count), soon());
const doors = () => server.requests.map(({ path }) => path.replace('/api/public/', ''));
const names = () => server.observations.map(({ name }) => name);
const spanOf = (turn: number) => (event: IngestedEvent) =>
  event.type === 'span-create' && event.body.name === `Turn ${turn}`;
const all = (count: number) => ({ settled: count, dropped: [], failure: undefined });

describe('a server without an OTLP endpoint', () => {
  test('gets it by the ingestion API', async () => {
    expect(await send(2)).toEqual(all(2));
    expect(names()).toEqual(['Turn 1', 'Turn 2']);
    expect(doors()).toEqual(['otel/v1/traces', 'ingestion']);
    expect(server.requests[1]?.headers).toMatchObject({
      'x-langfuse-sdk-name': 'cc-langfuse',
      'user-agent': expect.stringMatching(/^cc-langfuse\//),
    });
  });

  test('is not asked for it again for a day', async () => {
    await send(1);
    await send(1);
    expect(doors()).toEqual(['otel/v1/traces', 'ingestion', 'ingestion']);
    const kept = Object.entries<number>(JSON.parse(readFileSync(join(folder, MEMORY), 'utf8')));
    expect(kept).toHaveLength(1);
    for (const [hours, isAsked] of [
      [23, false],
      [25, true],
    ] as const) {
      server.requests.length = 0;
      const foundAt = kept.map(([destination]) => [destination, Date.now() - hours * HOUR]);
      writeFileSync(join(folder, MEMORY), JSON.stringify(Object.fromEntries(foundAt)));
      await send(1);
      expect(doors().includes('otel/v1/traces')).toBe(isAsked);
    }
  });

  test('is taken for no other: what is remembered is remembered of one project', async () => {
    await send(1);
    const other = { ...langfuseAt(server.url), publicKey: 'pk-lf-other' };
    const sender = new Sender(await transportTo(other, folder));
    senders.push(sender);
    await sender.send(someOutgoing(1), soon());
    expect(doors().slice(2)).toEqual(['otel/v1/traces']);
  });

  test('that has been upgraded gets it by OpenTelemetry: after a day, or when it refuses the other', async () => {
    await send(1);
    server.isOlder = false;
    expect(await send(2)).toEqual(all(2));
    expect(doors().slice(2)).toEqual(['ingestion', 'otel/v1/traces']);
    await send(1);
    expect(doors().slice(4)).toEqual(['otel/v1/traces']);
  });

  test('behind which a newer one has answered is left to the next run: nothing was kept to be written otherwise', async () => {
    const sender = await senderBy();
    const encoded = () => someOutgoing(1).flatMap(({ observation }) => (observation ? sender.encode(observation) : []));
    server.isOlder = false;
    expect(await sender.send(encoded(), soon())).toEqual(all(1));
    server.isOlder = true;
    expect(await sender.send(encoded(), soon())).toMatchObject({ settled: 0, failure: expect.stringContaining('404') });
    expect(doors()).toEqual(['otel/v1/traces', 'otel/v1/traces']);
    expect(await send(1)).toEqual(all(1));
  });

  test.each(['', '{', '[]', 'null', '{"a":"b"}'])('is found out where what is remembered reads %j', async (memory) => {
    writeFileSync(join(folder, MEMORY), memory);
    expect(await send(1)).toEqual(all(1));
  });

  test('is found out by each run where nothing can be remembered', async () => {
    writeFileSync(join(folder, 'file'), '');
    const sender = await senderBy('auto', join(folder, 'file'));
    expect(await sender.send(someOutgoing(1), soon())).toEqual(all(1));
  });

  test('and without the other is no Langfuse, which is not remembered', async () => {
    server.misbehave = () => ({ status: 404 });
    const failure = 'what LANGFUSE_BASE_URL names has neither an OTLP endpoint nor an ingestion API (404)';
    expect(await send(1)).toEqual({ settled: 0, dropped: [], failure });
    await send(1);
    expect(doors()).toEqual(['otel/v1/traces', 'ingestion', 'otel/v1/traces', 'ingestion']);
  });
});

describe('which door is taken', () => {
  test('otlp: no other, also where it is not there', async () => {
    const failure = 'the server has no OTLP endpoint (404); Langfuse has one from 3.22 on';
    expect(await send(1, 'otlp')).toEqual({ settled: 0, dropped: [], failure });
    expect(doors()).toEqual(['otel/v1/traces']);
  });

  test('ingestion: the other is not tried', async () => {
    expect(await send(1, 'ingestion')).toEqual(all(1));
    expect(doors()).toEqual(['ingestion']);
  });

  test('ingestion, of a Langfuse 4: it says what to do, and nothing is lost', async () => {
    server.isOlder = false;
    const sender = await senderBy('ingestion');
    const report = await sender.send(someOutgoing(3), soon());
    const failure =
      'Langfuse refuses every event (400): version 4 takes no traces by its ingestion API; unset CC_LANGFUSE_TRANSPORT, so that they go by OpenTelemetry';
    expect(report).toEqual({ settled: 0, dropped: [], failure });
    expect(sender.isWell).toBe(false);
    expect(server.requests).toHaveLength(1);
    // One that is alone in its request is not left out as its own fault.
    const [{ observation } = {}] = someOutgoing(1);
    const child = observation && outgoing({ ...observation, parentId: '0123456789abcdef' });
    expect(await sender.send(child ? [child] : [], soon())).toEqual({ settled: 0, dropped: [], failure });
  });
});

describe('the answer is read event by event', () => {
  beforeEach(async () => {
    await send(1);
    server.requests.length = 0;
    server.ingested.events.length = 0;
  });

  test.each([429, 500, 503])('one that is refused for now (%i) is sent again, the others are not', async (status) => {
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
  });

  test('one that stays refused keeps what comes behind it from being settled', async () => {
    server.ingested.refuse = (event) => (spanOf(2)(event) ? 500 : undefined);
    expect(await send(3)).toEqual({ settled: 1, dropped: [], failure: 'the server answers 500' });
    expect(server.requests).toHaveLength(4);
  });

  test('one that is refused for what it is is left out', async () => {
    server.ingested.refuse = (event) => (spanOf(2)(event) ? 400 : undefined);
    expect(await send(3)).toEqual({ settled: 3, dropped: [1], failure: undefined });
  });

  test('401: the keys may not write', async () => {
    server.ingested.refuse = () => 401;
    expect(await send(2)).toEqual({ settled: 0, dropped: [], failure: 'the server refuses the keys (401)' });
  });

  test('one that it does not mention was not taken', async () => {
    server.misbehave = (_, number) =>
      number === 0 ? { status: 207, body: '{"successes":[],"errors":[]}' } : undefined;
    expect(await send(2)).toEqual(all(2));
    expect(server.requests.map(({ events }) => events)).toEqual([4, 4]);
  });

  test.each([
    [{ status: 200, headers: { 'content-type': 'text/html' }, body: '<html>' }, 'what answers is no Langfuse'],
    [{ status: 200, body: '{}' }, 'what answers is no Langfuse'],
    [{ status: 207, body: '{"successes":[null],"errors":[{"id":1}]}' }, 'what answers is no Langfuse'],
    [{ status: 201, body: '' }, 'what answers is no Langfuse'],
    [{ status: 204, body: '' }, 'what answers is no Langfuse'],
    [{ status: 401 }, 'the server refuses the keys (401)'],
    [{ status: 418 }, 'the server answers 418'],
    [{ status: 307, headers: { location: 'http://127.0.0.1:1/' } }, 'the server redirects elsewhere (307)'],
  ])('%j settles nothing', async (answer, failure) => {
    server.misbehave = () => answer;
    const report = await send(1);
    expect(report).toMatchObject({ settled: 0, dropped: [], failure: expect.stringContaining(failure) });
    expect(doors()).toEqual(['ingestion']);
  });

  test('what passes is tried again, after as long as the server asks to wait', async () => {
    server.misbehave = (_, number) => {
      if (number === 0) return { status: 429, headers: { 'retry-after': '1' } };
      return number === 1 ? { disconnect: 'after taking' } : undefined;
    };
    const startedAt = Date.now();
    expect(await send(1)).toEqual(all(1));
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(990);
    expect(server.requests).toHaveLength(3);
    // What came twice is the same event.
    const [first, second] = server.ingested.events.filter(({ type }) => type === 'span-create');
    expect(second?.id).toBe(first?.id);
    expect(server.observations).toHaveLength(1);
  });

  test('a server that hangs is left at the deadline', async () => {
    server.misbehave = () => ({ delayMs: 5_000 });
    const sender = await senderBy();
    expect((await sender.send(someOutgoing(1), Date.now() + 300)).failure).toMatch(/no answer within \d+ ms$/);
  });

  test('413: smaller requests', async () => {
    server.misbehave = (request) => (Number(request.headers['content-length']) > 3_000 ? { status: 413 } : undefined);
    expect(await send(5)).toEqual(all(5));
    expect(new Set(names())).toEqual(new Set([1, 2, 3, 4, 5].map((n) => `Turn ${n}`)));
  });
});

test('what the package would read of the environment changes nothing, and it prints nothing', async () => {
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
