import { createHash } from 'node:crypto';
import { LangfuseAPIClient, LangfuseMedia, uploadMedia } from '@langfuse/core';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Destination } from '../../../src/langfuse/destination.js';
import { openDestination } from '../../../src/langfuse/open-destination.js';
import { MediaPart } from '../../../src/observations/content/media.js';
import type { Media, Observation } from '../../../src/observations/model.js';
import {
  LangfuseServer,
  langfuseAt,
  type Misbehaviour,
  PUBLIC_KEY,
  SECRET_KEY,
} from '../../support/langfuse-server.js';
import { withSilentServer } from '../../support/silent-server.js';
import { someObservations } from '../../support/traces.js';

let server: LangfuseServer;
let destination: Destination;

beforeEach(async () => {
  server = await LangfuseServer.start();
  destination = openDestination(langfuseAt(server.url), '');
});

afterEach(async () => {
  await destination.close();
  await server.stop();
});

const soon = () => ({ deadline: Date.now() + 10_000 });
const picture = (words: string, field: Media['field'] = 'input') => mediaOf(words, 'image/png', field);

function mediaOf(words: string, contentType: string, field: Media['field'] = 'input'): Media {
  const bytes = Buffer.from(words);
  const sha256 = createHash('sha256').update(bytes).digest('base64');
  const about = { placeholder: `[${words}]`, contentType, sha256, length: bytes.length, bytes: () => bytes };
  return { ...new MediaPart(about).media, field };
}

const [root] = someObservations(1) as [Observation];
const traceId = root.trace.id;

function observationWith(id: string, ...media: Media[]): Observation {
  return { ...root, id, media };
}

const upload = (id: string, ...media: Media[]) => destination.uploadMedia?.(observationWith(id, ...media), soon());
const NOT_LANGFUSE = 'this is not Langfuse: its answer to a media request has no media ID or no usable upload URL';
const ALL = { missing: new Set(), failure: undefined };
/** With Retry-After, so that the repetitions do not take long. */
const FAILING: Misbehaviour = { status: 500, headers: { 'retry-after': '0' } };
const requestsSent = () =>
  server.requests.map(({ path, status }) => `${path.replace(/\/[\w-]{22}\b.*/, '/…')} ${status}`);
const stored = () => [...server.media.stored.values()];

/** Misbehaves only on requests whose method and path match. */
function misbehaveAt(request: RegExp, answer: (time: number) => Misbehaviour | undefined): void {
  let times = 0;
  server.misbehave = ({ method, url }) => {
    if (!request.test(`${method} ${url}`)) return undefined;
    times += 1;
    return answer(times);
  };
}

describe('an image', () => {
  test('is announced, stored, and belongs to its field', async () => {
    expect(await upload('a', picture('one'))).toEqual(ALL);
    expect(requestsSent()).toEqual(['/api/public/media 201', '/storage/… 200', '/api/public/media/… 200']);
    expect(stored()).toMatchObject([{ bytes: Buffer.from('one'), contentType: 'image/png', uploadStatus: 200 }]);
    expect([...(stored()[0]?.fields ?? [])]).toEqual([`${traceId} a input`]);
  });

  test('is uploaded as the package @langfuse/core does it', async () => {
    const media = new LangfuseMedia({ source: 'bytes', contentBytes: Buffer.from('one'), contentType: 'image/png' });
    const apiClient = new LangfuseAPIClient({
      environment: '',
      baseUrl: server.url,
      username: PUBLIC_KEY,
      password: SECRET_KEY,
    });
    await uploadMedia({ apiClient, media, traceId, observationId: 'a', field: 'input' });
    const theirs = stored();
    const theirRequests = requestsSent();
    const headersOf = (path: RegExp) => {
      const { headers } = server.requests.findLast((request) => path.test(request.path)) ?? {};
      return ['authorization', 'content-type', 'x-amz-checksum-sha256', 'x-ms-blob-type'].map(
        (name) => headers?.[name],
      );
    };
    const paths = [/^\/api\/public\/media$/, /^\/storage/, /^\/api\/public\/media\//];
    const theirHeaders = paths.map(headersOf);
    server.media.stored.clear();
    server.requests.splice(0);
    await upload('a', picture('one'));
    expect(stored()).toEqual(theirs);
    expect(requestsSent()).toEqual(theirRequests);
    expect(paths.map(headersOf)).toEqual(theirHeaders);
    expect(`@@@langfuseMedia:type=image/png|id=${await media.getId()}|`).toBe(
      picture('one').reference.replace('source=base64_data_uri@@@', ''),
    );
  });

  test('is uploaded once, even if several fields refer to it', async () => {
    const both = await Promise.all([
      upload('a', picture('one'), picture('one', 'output')),
      upload('b', picture('one')),
    ]);
    expect([...both, await upload('c', picture('one'), picture('one'))]).toEqual([ALL, ALL, ALL]);
    expect(stored()).toMatchObject([{ arrivals: 1 }]);
    expect([...(stored()[0]?.fields ?? [])].toSorted()).toEqual(
      ['a input', 'a output', 'b input', 'c input'].map((field) => `${traceId} ${field}`),
    );
  });

  test('is uploaded once also to a storage that answers like Azure', async () => {
    misbehaveAt(/^PUT/, () => ({ status: 201 }));
    expect([await upload('a', picture('one')), await upload('b', picture('one'))]).toEqual([ALL, ALL]);
    expect(stored()).toMatchObject([{ arrivals: 1, uploadStatus: 201 }]);
    expect(stored()[0]?.fields.size).toBe(2);
  });

  test('that the server already has is not uploaded', async () => {
    await upload('a', picture('one'));
    await destination.close();
    destination = openDestination(langfuseAt(server.url), '');
    await upload('a', picture('one'));
    expect(stored()).toMatchObject([{ arrivals: 1 }]);
  });

  test('is uploaded together with others', async () => {
    expect(await upload('a', picture('one'), mediaOf('two', 'application/pdf'), picture('three', 'output'))).toEqual(
      ALL,
    );
    expect(
      stored()
        .map(({ bytes }) => String(bytes))
        .toSorted(),
    ).toEqual(['one', 'three', 'two']);
  });

  test('is stored even if the storage calls its empty answer HTML', async () => {
    misbehaveAt(/^PUT/, () => ({ headers: { 'content-type': 'text/html' }, body: '' }));
    expect(await upload('a', picture('one'))).toEqual(ALL);
  });

  test('is uploaded without sending the keys to the storage', async () => {
    await upload('a', picture('one'));
    const toStorage = server.requests.filter(({ path }) => path.startsWith('/storage'));
    expect(toStorage.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  });
});

describe('a failed request is repeated', () => {
  test.each([
    ['the server', /^POST \/api\/public\/media$/],
    ['its storage', /^PUT /],
    ['the server, with the result', /^PATCH /],
  ])('to %s', async (_, request) => {
    misbehaveAt(request, (time) => (time === 1 ? FAILING : time === 2 ? { disconnect: 'before taking' } : undefined));
    expect(await upload('a', picture('one'))).toEqual(ALL);
    expect(stored()).toMatchObject([{ bytes: Buffer.from('one'), uploadStatus: 200 }]);
  });
});

test('a server that asks to wait is tried again as long as there is time', async () => {
  misbehaveAt(/^POST/, (time) => (time < 5 ? { status: 429, headers: { 'retry-after': '0' } } : undefined));
  expect(await upload('a', picture('one'))).toEqual(ALL);
  misbehaveAt(/^POST/, () => ({ status: 429, headers: { 'retry-after': '60' } }));
  expect(await upload('b', picture('two'))).toMatchObject({ failure: 'the server answers 429 to a media request' });
});

test('at most six files are uploaded at a time', async () => {
  let most = 0;
  let now = 0;
  misbehaveAt(/^PUT/, () => {
    now += 1;
    most = Math.max(most, now);
    setTimeout(() => {
      now -= 1;
    }, 30);
    return { delayMs: 30 };
  });
  const pictures = (id: string) => Array.from({ length: 10 }, (_, n) => picture(`picture ${n} of ${id}`));
  const reports = await Promise.all(['a', 'b', 'c'].map((id) => upload(id, ...pictures(id))));
  expect(reports).toEqual([ALL, ALL, ALL]);
  expect(stored()).toHaveLength(30);
  expect(most).toBeLessThanOrEqual(6);
});

test('after a stop only the requests under way are finished, and that is not a failure', async () => {
  const stop = new AbortController();
  misbehaveAt(/^PUT/, () => {
    stop.abort();
    return { status: 503 };
  });
  const pictures = Array.from({ length: 20 }, (_, n) => picture(`picture ${n}`));
  const report = await destination.uploadMedia?.(observationWith('a', ...pictures), { ...soon(), stop: stop.signal });
  expect(report).toEqual({ missing: new Set(pictures.map(({ reference }) => reference)), failure: undefined });
  expect(requestsSent().filter((request) => request.startsWith('/storage')).length).toBeLessThanOrEqual(6);
});

describe('a file that cannot be uploaded is missing', () => {
  const missing = (...media: Media[]) => new Set(media.map(({ reference }) => reference));

  test.each([
    ['the server accepts no media', /^POST/, { status: 404 }, 'the server accepts no media (404)'],
    ['the server has no storage', /^POST/, FAILING, 'the server answers 500 to a media request'],
    ['the keys are refused', /^POST/, { status: 401 }, 'the server answers 401 to a media request'],
    [
      'a web page answers',
      /^POST/,
      { status: 200, headers: { 'content-type': 'text/html' } },
      'the server answers 200 with a web page to a media request',
    ],
    ['something else answers', /^POST/, { status: 201, body: '{"ok":true}' }, NOT_LANGFUSE],
    [
      'the upload URL is not a web address',
      /^POST/,
      { status: 201, body: '{"mediaId":"x","uploadUrl":"file:///etc"}' },
      NOT_LANGFUSE,
    ],
    ['the storage refuses', /^PUT/, { status: 403 }, 'the storage at 127.0.0.1:PORT answers 403'],
    [
      'a web page answers for the storage',
      /^PUT/,
      { status: 200, headers: { 'content-type': 'text/html' }, body: '<p>Sign in first' },
      'the storage at 127.0.0.1:PORT answers 200 with a web page',
    ],
    ['the server does not accept the result', /^PATCH/, FAILING, 'the server answers 500 to a media request'],
  ])('because %s; the reason is reported, and no other is tried', async (_, request, answer, failure) => {
    misbehaveAt(request, () => answer);
    const [one, two] = [picture('one'), picture('two')];
    const words = failure.replace('PORT', String(server.port));
    expect(await upload('a', one)).toEqual({ missing: missing(one), failure: words });
    const requests = server.requests.length;
    expect(await upload('b', two)).toEqual({ missing: missing(two), failure: words });
    expect(server.requests).toHaveLength(requests);
  });

  test.each([400, 413, 422])('because it is refused itself (%i); others are uploaded', async (status) => {
    misbehaveAt(/^POST/, (time) => (time === 1 ? { status } : undefined));
    const [one, two] = [picture('one'), picture('two')];
    expect(await upload('a', one)).toEqual({
      missing: missing(one),
      failure: `the server refuses the file (${status})`,
    });
    expect(await upload('a', two)).toEqual(ALL);
  });

  test('because it is too large for the storage; others are uploaded', async () => {
    misbehaveAt(/^PUT/, (time) => (time === 1 ? { status: 413 } : undefined));
    const [one, two] = [picture('one'), picture('two')];
    const failure = `the storage at 127.0.0.1:${server.port} answers 413`;
    expect(await upload('a', one)).toEqual({ missing: missing(one), failure });
    expect(await upload('a', two)).toEqual(ALL);
  });

  test('because no time is left; one that has more time is uploaded', async () => {
    const one = picture('one');
    const failure = 'no time was left to upload it';
    expect(await destination.uploadMedia?.(observationWith('a', one), { deadline: Date.now() })).toEqual({
      missing: missing(one),
      failure,
    });
    expect(await upload('a', one)).toEqual(ALL);
  });

  test('because the server uses another media ID; nothing is stored', async () => {
    misbehaveAt(/^POST/, () => ({ status: 201, body: JSON.stringify({ mediaId: 'x', uploadUrl: `${server.url}/y` }) }));
    const one = picture('one');
    expect(await upload('a', one)).toEqual({ missing: missing(one), failure: 'the server uses another media ID' });
    expect(requestsSent()).toEqual(['/api/public/media 201']);
  });

  test('because there is no server; the reason names the host', async () => {
    await destination.close();
    destination = openDestination(langfuseAt('http://127.0.0.1:9'), '');
    const one = picture('one');
    const failure = '127.0.0.1:9 cannot be reached: ECONNREFUSED';
    expect(await upload('a', one)).toEqual({ missing: missing(one), failure });
  });

  test('because the storage is silent; half of the time is left for the observation', () =>
    withSilentServer(async (url) => {
      const one = picture('one');
      const [, mediaId] = /id=([^|]+)/.exec(one.reference) ?? [];
      misbehaveAt(/^POST/, () => ({ status: 201, body: JSON.stringify({ mediaId, uploadUrl: `${url}/s?X=secret` }) }));
      // The message names half of what was left when the request was made, so time stands still until then.
      vi.useFakeTimers({ toFake: ['Date'] });
      const report = await destination.uploadMedia?.(observationWith('a', one), { deadline: Date.now() + 1_000 });
      vi.useRealTimers();
      expect(report?.missing).toEqual(missing(one));
      expect(report?.failure).toMatch(/^127\.0\.0\.1:\d+ cannot be reached: no answer within 0\.5 s$/);
    }));
});
