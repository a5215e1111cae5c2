import { createHash } from 'node:crypto';
import { LangfuseAPIClient, LangfuseMedia, uploadMedia } from '@langfuse/core';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MediaUploads } from '../../../src/langfuse/media/media-uploads.lazy.js';
import { MediaPart } from '../../../src/observations/content/media-part.js';
import type { Media, Observation } from '../../../src/observations/model.js';
import {
  LangfuseServer,
  langfuseAt,
  type Misbehaviour,
  PUBLIC_KEY,
  SECRET_KEY,
} from '../../support/langfuse-server.js';
import { besideSilence } from '../../support/silence.js';
import { someObservations } from '../../support/traces.js';

let server: LangfuseServer;
let uploads: MediaUploads;

beforeEach(async () => {
  server = await LangfuseServer.start();
  uploads = new MediaUploads(langfuseAt(server.url));
});

afterEach(async () => {
  await uploads.close();
  await server.stop();
});

const soon = () => Date.now() + 10_000;
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

const bring = (id: string, ...media: Media[]) => uploads.bring(observationWith(id, ...media), soon());
const ALL = { missing: new Set(), failure: undefined };
const asked = () => server.requests.map(({ path, status }) => `${path.replace(/\/[\w-]{22}\b.*/, '/…')} ${status}`);
const stored = () => [...server.media.stored.values()];

/** What becomes of what is asked at one door. */
function misbehaveAt(door: RegExp, told: (time: number) => Misbehaviour | undefined): void {
  let times = 0;
  server.misbehave = ({ method, url }) => {
    if (!door.test(`${method} ${url}`)) return undefined;
    times += 1;
    return told(times);
  };
}

describe('an image', () => {
  test('is stored, told of, and belongs to its field', async () => {
    expect(await bring('a', picture('one'))).toEqual(ALL);
    expect(asked()).toEqual(['/api/public/media 201', '/storage/… 200', '/api/public/media/… 200']);
    expect(stored()).toMatchObject([{ bytes: Buffer.from('one'), contentType: 'image/png', uploadStatus: 200 }]);
    expect([...(stored()[0]?.fields ?? [])]).toEqual([`${traceId} a input`]);
  });

  test('goes as the package of Langfuse sends it', async () => {
    const media = new LangfuseMedia({ source: 'bytes', contentBytes: Buffer.from('one'), contentType: 'image/png' });
    const apiClient = new LangfuseAPIClient({
      environment: '',
      baseUrl: server.url,
      username: PUBLIC_KEY,
      password: SECRET_KEY,
    });
    await uploadMedia({ apiClient, media, traceId, observationId: 'a', field: 'input' });
    const theirs = stored();
    const theirRequests = asked();
    const headersOf = (path: RegExp) => {
      const { headers } = server.requests.findLast((request) => path.test(request.path)) ?? {};
      return ['authorization', 'content-type', 'x-amz-checksum-sha256', 'x-ms-blob-type'].map(
        (name) => headers?.[name],
      );
    };
    const doors = [/^\/api\/public\/media$/, /^\/storage/, /^\/api\/public\/media\//];
    const theirHeaders = doors.map(headersOf);
    server.media.stored.clear();
    server.requests.splice(0);
    await bring('a', picture('one'));
    expect(stored()).toEqual(theirs);
    expect(asked()).toEqual(theirRequests);
    expect(doors.map(headersOf)).toEqual(theirHeaders);
    expect(`@@@langfuseMedia:type=image/png|id=${await media.getId()}|`).toBe(
      picture('one').reference.replace('source=base64_data_uri@@@', ''),
    );
  });

  test('goes once, wherever it is shown', async () => {
    const both = await Promise.all([bring('a', picture('one'), picture('one', 'output')), bring('b', picture('one'))]);
    expect([...both, await bring('c', picture('one'), picture('one'))]).toEqual([ALL, ALL, ALL]);
    expect(stored()).toMatchObject([{ arrivals: 1 }]);
    expect([...(stored()[0]?.fields ?? [])].toSorted()).toEqual(
      ['a input', 'a output', 'b input', 'c input'].map((field) => `${traceId} ${field}`),
    );
  });

  test('goes once to a storage that answers as Azure does, too', async () => {
    misbehaveAt(/^PUT/, () => ({ status: 201 }));
    expect([await bring('a', picture('one')), await bring('b', picture('one'))]).toEqual([ALL, ALL]);
    expect(stored()).toMatchObject([{ arrivals: 1, uploadStatus: 201 }]);
    expect(stored()[0]?.fields.size).toBe(2);
  });

  test('that the server has from before does not go at all', async () => {
    await bring('a', picture('one'));
    uploads = new MediaUploads(langfuseAt(server.url));
    await bring('a', picture('one'));
    expect(stored()).toMatchObject([{ arrivals: 1 }]);
  });

  test('and others go together', async () => {
    expect(await bring('a', picture('one'), mediaOf('two', 'application/pdf'), picture('three', 'output'))).toEqual(
      ALL,
    );
    expect(
      stored()
        .map(({ bytes }) => String(bytes))
        .toSorted(),
    ).toEqual(['one', 'three', 'two']);
  });

  test('is stored where the storage calls its empty answer HTML', async () => {
    misbehaveAt(/^PUT/, () => ({ headers: { 'content-type': 'text/html' }, body: '' }));
    expect(await bring('a', picture('one'))).toEqual(ALL);
  });

  test('takes no keys along to the storage', async () => {
    await bring('a', picture('one'));
    expect(server.requests.find(({ path }) => path.startsWith('/storage'))?.headers.authorization).toBeUndefined();
  });
});

describe('what passes is tried again', () => {
  test.each([
    ['the server', /^POST \/api\/public\/media$/],
    ['its storage', /^PUT /],
    ['the server, told of it', /^PATCH /],
  ])('%s', async (_, door) => {
    misbehaveAt(door, (time) =>
      time === 1 ? { status: 503 } : time === 2 ? { disconnect: 'before taking' } : undefined,
    );
    expect(await bring('a', picture('one'))).toEqual(ALL);
    expect(stored()).toMatchObject([{ bytes: Buffer.from('one'), uploadStatus: 200 }]);
  });
});

test('a server that asks to wait is asked again as long as there is time', async () => {
  misbehaveAt(/^POST/, (time) => (time < 6 ? { status: 429, headers: { 'retry-after': '0' } } : undefined));
  expect(await bring('a', picture('one'))).toEqual(ALL);
  misbehaveAt(/^POST/, () => ({ status: 429, headers: { 'retry-after': '60' } }));
  expect(await bring('b', picture('two'))).toMatchObject({ failure: 'the server answers 429 to media' });
});

test('many at once come few at a time', async () => {
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
  const reports = await Promise.all(['a', 'b', 'c'].map((id) => bring(id, ...pictures(id))));
  expect(reports).toEqual([ALL, ALL, ALL]);
  expect(stored()).toHaveLength(30);
  expect(most).toBeLessThanOrEqual(6);
});

test('what is stopped ends with the request under way, and is no failure', async () => {
  const stop = new AbortController();
  misbehaveAt(/^PUT/, () => {
    stop.abort();
    return { status: 503 };
  });
  const pictures = Array.from({ length: 20 }, (_, n) => picture(`picture ${n}`));
  const report = await uploads.bring(observationWith('a', ...pictures), soon(), stop.signal);
  expect(report).toEqual({ missing: new Set(pictures.map(({ reference }) => reference)), failure: undefined });
  expect(asked().filter((request) => request.startsWith('/storage')).length).toBeLessThanOrEqual(6);
});

describe('where it cannot be brought', () => {
  const missing = (...media: Media[]) => new Set(media.map(({ reference }) => reference));

  test.each([
    ['the server takes no media', /^POST/, { status: 404 }, 'the server takes no media (404)'],
    ['the server has no storage', /^POST/, { status: 500 }, 'the server answers 500 to media'],
    ['the keys are refused', /^POST/, { status: 401 }, 'the server answers 401 to media'],
    [
      'a page answers',
      /^POST/,
      { status: 200, headers: { 'content-type': 'text/html' } },
      'the server answers 200 with a page to media',
    ],
    ['something else answers', /^POST/, { status: 201, body: '{"ok":true}' }, 'what answers to media is no Langfuse'],
    [
      'its storage is no web address',
      /^POST/,
      { status: 201, body: '{"mediaId":"x","uploadUrl":"file:///etc"}' },
      'what answers to media is no Langfuse',
    ],
    ['the storage refuses', /^PUT/, { status: 403 }, 'the storage at 127.0.0.1:PORT answers 403'],
    [
      'a page answers for the storage',
      /^PUT/,
      { status: 200, headers: { 'content-type': 'text/html' }, body: '<p>Sign in first' },
      'the storage at 127.0.0.1:PORT answers 200 with a page',
    ],
    ['the server cannot be told', /^PATCH/, { status: 500 }, 'the server answers 500 to media'],
  ])('since %s, it is said, and the others are not tried', async (_, door, told, failure) => {
    misbehaveAt(door, () => told);
    const [one, two] = [picture('one'), picture('two')];
    const words = failure.replace('PORT', String(server.port));
    expect(await bring('a', one)).toEqual({ missing: missing(one), failure: words });
    const requests = server.requests.length;
    expect(await bring('b', two)).toEqual({ missing: missing(two), failure: words });
    expect(server.requests).toHaveLength(requests);
  });

  test.each([400, 413, 422])('since it is refused for what it is (%i), others are brought', async (status) => {
    misbehaveAt(/^POST/, (time) => (time === 1 ? { status } : undefined));
    const [one, two] = [picture('one'), picture('two')];
    expect(await bring('a', one)).toEqual({ missing: missing(one), failure: `the server refuses it (${status})` });
    expect(await bring('a', two)).toEqual(ALL);
  });

  test('since it is too large for the storage, others are brought', async () => {
    misbehaveAt(/^PUT/, (time) => (time === 1 ? { status: 413 } : undefined));
    const [one, two] = [picture('one'), picture('two')];
    const failure = `the storage at 127.0.0.1:${server.port} answers 413`;
    expect(await bring('a', one)).toEqual({ missing: missing(one), failure });
    expect(await bring('a', two)).toEqual(ALL);
  });

  test('since there is no time for it, what has time is brought', async () => {
    const one = picture('one');
    const failure = 'there was no time left for it';
    expect(await uploads.bring(observationWith('a', one), Date.now())).toEqual({ missing: missing(one), failure });
    expect(await bring('a', one)).toEqual(ALL);
  });

  test('since the server calls it otherwise, nothing is stored', async () => {
    misbehaveAt(/^POST/, () => ({ status: 201, body: JSON.stringify({ mediaId: 'x', uploadUrl: `${server.url}/y` }) }));
    const one = picture('one');
    expect(await bring('a', one)).toEqual({ missing: missing(one), failure: 'the server calls it otherwise' });
    expect(asked()).toEqual(['/api/public/media 201']);
  });

  test('since there is nobody, it says where', async () => {
    uploads = new MediaUploads(langfuseAt('http://127.0.0.1:9'));
    const one = picture('one');
    const failure = '127.0.0.1:9 cannot be reached: ECONNREFUSED';
    expect(await bring('a', one)).toEqual({ missing: missing(one), failure });
  });

  test('since somebody is silent, half of the time is left for what refers to it', () =>
    besideSilence(async (url) => {
      const one = picture('one');
      const [, mediaId] = /id=([^|]+)/.exec(one.reference) ?? [];
      misbehaveAt(/^POST/, () => ({ status: 201, body: JSON.stringify({ mediaId, uploadUrl: `${url}/s?X=secret` }) }));
      const deadline = Date.now() + 1_000;
      const report = await uploads.bring(observationWith('a', one), deadline);
      expect(report.missing).toEqual(missing(one));
      expect(report.failure).toMatch(/^127\.0\.0\.1:\d+ cannot be reached: no answer within \d+ ms$/);
      expect(Date.now()).toBeLessThan(deadline);
    }));
});
