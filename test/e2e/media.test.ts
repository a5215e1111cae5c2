import { cpSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Collector } from '../support/collector.js';
import type { Misbehaviour, StoredObservation } from '../support/langfuse-server.js';
import { appendLines, assistant, SESSION, text, user } from '../support/lines.js';
import { fieldsReferringTo } from '../support/media-store.js';
import { run, Workplace } from '../support/program.js';
import { play, recording, transcriptsOf } from '../support/recording.js';
import { expectEachSent } from '../support/sent-once.js';
import { withSilentServer } from '../support/silent-server.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const RECORDED = recording('p-media');
const [source = ''] = transcriptsOf(RECORDED);
const path = () => source.replace(join(RECORDED.folder, 'projects'), workplace.projects);

/** Runs SessionEnd after the whole recording. */
async function endSession(): Promise<void> {
  cpSync(join(RECORDED.folder, 'projects'), workplace.projects, { recursive: true });
  const payload = { session_id: sessionId, transcript_path: path(), hook_event_name: 'SessionEnd' };
  expect(await workplace.hook(payload)).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
}

const sessionId = source.replace(/^.*\/|\.jsonl$/g, '');
const media = () => [...workplace.server.media.stored.values()].toSorted((a, b) => a.id.localeCompare(b.id));
const references = (observations: readonly StoredObservation[]) =>
  new Set(JSON.stringify(observations).match(/@@@langfuseMedia:[^@]+@@@/g));
const placeholders = (observations: readonly StoredObservation[]) =>
  new Set(JSON.stringify(observations).match(/\[(?:image|document) [^\]]+\]/g));
const mediaRequests = () => workplace.server.requests.filter(({ path }) => /media|storage/.test(path));

const CHART = '[image image/png, 70 bytes, sha256 6b7fa434f92a8b80]';
const PLAN = '[image image/png, 70 bytes, sha256 c414cd0e204de974]';
const PAPER = '[document application/pdf, 394 bytes, sha256 ecc5a2f82fa70afd]';

function misbehaveWithMedia(misbehaviour: Misbehaviour): void {
  workplace.server.misbehave = ({ url = '' }) => (url.startsWith('/api/public/media') ? misbehaviour : undefined);
}

describe('an image or document in a prompt or a tool result', () => {
  test('is uploaded once, and linked to each field that refers to it', async () => {
    await play(RECORDED, workplace.home, async ({ payload }) => void (await workplace.hook(payload)));
    const { observations } = workplace.server;
    const stored = { arrivals: 1, uploadStatus: 200 };
    expect(media().map(({ contentType, arrivals, uploadStatus }) => ({ contentType, arrivals, uploadStatus }))).toEqual(
      [
        { contentType: 'application/pdf', ...stored },
        { contentType: 'image/png', ...stored },
        { contentType: 'image/png', ...stored },
      ],
    );
    expect(references(observations)).toEqual(
      new Set(
        media().map(({ id, contentType }) => `@@@langfuseMedia:type=${contentType}|id=${id}|source=base64_data_uri@@@`),
      ),
    );
    for (const { id, fields } of media()) expect(fields).toEqual(fieldsReferringTo(id, observations));
  });

  test('is not uploaded again if its turn is sent again', async () => {
    await endSession();
    const before = new Date(Date.now() - 3_600_000);
    utimesSync(path(), before, before);
    expect(await run(['backfill', '--yes', '--all', '--force', '--quiet'], workplace.env)).toMatchObject({
      exitCode: 0,
    });
    expectEachSent(workplace.server, 2);
    expect(media().map(({ arrivals }) => arrivals)).toEqual([1, 1, 1]);
  });

  test('is uploaded to an older server', async () => {
    workplace.server.isOlder = true;
    await endSession();
    expect(media()).toHaveLength(3);
    expect(references(workplace.server.observations).size).toBe(3);
  });

  test('is not uploaded again if the server refused its turn at first', async () => {
    workplace.server.misbehave = ({ url }) => (url?.includes('otel') ? { status: 401 } : undefined);
    await endSession();
    workplace.server.misbehave = () => undefined;
    await endSession();
    expect(media().map(({ arrivals }) => arrivals)).toEqual([1, 1, 1]);
    expect(references(workplace.server.observations).size).toBe(3);
  });
});

describe('a placeholder replaces each image and document', () => {
  test('if CC_LANGFUSE_MEDIA is false', async () => {
    workplace.env = { ...workplace.env, CC_LANGFUSE_MEDIA: 'false' };
    await endSession();
    expect(placeholders(workplace.server.observations)).toEqual(new Set([CHART, PLAN, PAPER]));
    expect(references(workplace.server.observations)).toEqual(new Set());
    expect(mediaRequests()).toEqual([]);
  });

  test.each([
    ['accepts no media', { status: 404 }, 'the server accepts no media (404)'],
    ['has no storage', { status: 500, headers: { 'retry-after': '0' } }, 'the server answers 500 to a media request'],
  ])('if the server %s, and the turns are sent', async (_, answer, reason) => {
    misbehaveWithMedia(answer);
    await endSession();
    expect(placeholders(workplace.server.observations)).toEqual(new Set([CHART, PLAN, PAPER]));
    expect(references(workplace.server.observations)).toEqual(new Set());
    expect(workplace.state[sessionId]).toMatchObject({ turnCount: 3 });
    expect(workplace.log).toEqual([
      expect.objectContaining({
        level: 'warn',
        msg: 'an image or document was not uploaded, a placeholder replaces it',
        reason,
      }),
    ]);
  });

  test('for a Collector, which accepts no media', async () => {
    const collector = await Collector.start();
    try {
      workplace.env = { ...workplace.env, CC_LANGFUSE_OTLP_URL: `${collector.url}/v1/traces` };
      await endSession();
      expect(placeholders(collector.observations)).toEqual(new Set([CHART, PLAN, PAPER]));
      expect(references(collector.observations)).toEqual(new Set());
      expect(workplace.log).toEqual([]);
    } finally {
      await collector.stop();
    }
  });

  test('if its data is not base64', async () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: '\ud800 no base64' } };
    appendLines(path(), user([text('look'), image], { uuid: 'u1' }), assistant('m1', 'at what?'));
    const payload = { session_id: SESSION, transcript_path: path(), hook_event_name: 'Stop' };
    expect(await workplace.hook(payload)).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    expect(placeholders(workplace.server.observations).size).toBe(1);
    expect(mediaRequests()).toEqual([]);
  });
});

test('a storage that never answers takes at most half of the time, and the turns are sent in the rest', () =>
  withSilentServer(async (url) => {
    const first = '{"mediaId":"a3-kNPkqi4CqsC2b8aEuSf"';
    misbehaveWithMedia({ status: 201, body: `${first},"uploadUrl":"${url}/?X-Signature=presigned"}` });
    workplace.env = { ...workplace.env, CC_LANGFUSE_TIMEOUT: '3000' };
    await endSession();
    expect(placeholders(workplace.server.observations)).toContain(CHART);
    expect(workplace.state[sessionId]).toMatchObject({ turnCount: 3 });
    expect(workplace.log.length).toBeGreaterThan(0);
    expect(JSON.stringify(workplace.log)).not.toContain('presigned');
  }));

describe('preview', () => {
  test('shows the types of images and documents, and uploads nothing', async () => {
    cpSync(join(RECORDED.folder, 'projects'), workplace.projects, { recursive: true });
    const { stdout } = await run(['preview', sessionId.slice(0, 8)], workplace.env);
    expect(stdout).toContain('Compare @chart.png and @plan.png with @paper.pdf [image/png] [ima');
    const json = await run(['preview', sessionId.slice(0, 8), '--json'], workplace.env);
    expect(new Set(json.stdout.match(/@@@langfuseMedia:[^@]+@@@/g)).size).toBe(3);
    expect(workplace.server.requests).toEqual([]);
  });
});
