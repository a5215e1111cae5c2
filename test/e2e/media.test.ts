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
import { withSilentServer } from '../support/silence.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const RECORDED = recording('p-media');
const [source = ''] = transcriptsOf(RECORDED);
const path = () => source.replace(join(RECORDED.folder, 'projects'), workplace.projects);

/** Claude Code's own SessionEnd, of the whole recording. */
async function endSession(): Promise<void> {
  cpSync(join(RECORDED.folder, 'projects'), workplace.projects, { recursive: true });
  const payload = { session_id: sessionId, transcript_path: path(), hook_event_name: 'SessionEnd' };
  expect(await workplace.hook(payload)).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
}

const sessionId = source.replace(/^.*\/|\.jsonl$/g, '');
const media = () => [...workplace.server.media.stored.values()].toSorted((a, b) => a.id.localeCompare(b.id));
const references = (observations: readonly StoredObservation[]) =>
  new Set(JSON.stringify(observations).match(/@@@langfuseMedia:[^@]+@@@/g));
const words = (observations: readonly StoredObservation[]) =>
  new Set(JSON.stringify(observations).match(/\[(?:image|document) [^\]]+\]/g));
const mediaRequests = () => workplace.server.requests.filter(({ path }) => /media|storage/.test(path));

const CHART = '[image image/png, 70 bytes, sha256 6b7fa434f92a8b80]';
const PLAN = '[image image/png, 70 bytes, sha256 c414cd0e204de974]';
const PAPER = '[document application/pdf, 394 bytes, sha256 ecc5a2f82fa70afd]';

function misbehaveWithMedia(told: Misbehaviour): void {
  workplace.server.misbehave = ({ url = '' }) => (url.startsWith('/api/public/media') ? told : undefined);
}

describe('what prompts and tools show', () => {
  test('is in Langfuse once, and belongs to each field that refers to it', async () => {
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

  test('does not go again with what is sent again', async () => {
    await endSession();
    const before = new Date(Date.now() - 3_600_000);
    utimesSync(path(), before, before);
    expect(await run(['backfill', '--all', '--force', '--quiet'], workplace.env)).toMatchObject({ exitCode: 0 });
    expectEachSent(workplace.server, 2);
    expect(media().map(({ arrivals }) => arrivals)).toEqual([1, 1, 1]);
  });

  test('goes to an older server, too', async () => {
    workplace.server.isOlder = true;
    await endSession();
    expect(media()).toHaveLength(3);
    expect(references(workplace.server.observations).size).toBe(3);
  });

  test('that came before its turn could is not brought again', async () => {
    const spansBefore = { status: 503 };
    workplace.server.misbehave = ({ url }) => (url?.includes('otel') ? spansBefore : undefined);
    workplace.env = { ...workplace.env, CC_LANGFUSE_TIMEOUT: '2000' };
    await endSession();
    workplace.server.misbehave = () => undefined;
    await endSession();
    expect(media().map(({ arrivals }) => arrivals)).toEqual([1, 1, 1]);
    expect(references(workplace.server.observations).size).toBe(3);
  });
});

describe('in words stands', () => {
  test('what is to stay at home', async () => {
    workplace.env = { ...workplace.env, CC_LANGFUSE_MEDIA: 'false' };
    await endSession();
    expect(words(workplace.server.observations)).toEqual(new Set([CHART, PLAN, PAPER]));
    expect(references(workplace.server.observations)).toEqual(new Set());
    expect(mediaRequests()).toEqual([]);
  });

  test.each([
    ['takes no media', { status: 404 }, 'the server accepts no media (404)'],
    ['has no storage for it', { status: 500 }, 'the server answers 500 to a media request'],
  ])('what a server cannot take that %s; the turns arrive', async (_, told, reason) => {
    misbehaveWithMedia(told);
    await endSession();
    expect(words(workplace.server.observations)).toEqual(new Set([CHART, PLAN, PAPER]));
    expect(references(workplace.server.observations)).toEqual(new Set());
    expect(workplace.state[sessionId]).toMatchObject({ turn_count: 3 });
    expect(workplace.log).toEqual([
      expect.objectContaining({
        level: 'warn',
        msg: 'an image or document was not uploaded, a placeholder replaces it',
        reason,
      }),
    ]);
  });

  test('what a Collector gets, which has no place for more', async () => {
    const collector = await Collector.start();
    try {
      workplace.env = { ...workplace.env, CC_LANGFUSE_OTLP_URL: `${collector.url}/v1/traces` };
      await endSession();
      expect(words(collector.observations)).toEqual(new Set([CHART, PLAN, PAPER]));
      expect(references(collector.observations)).toEqual(new Set());
      expect(workplace.log).toEqual([]);
    } finally {
      await collector.stop();
    }
  });

  test('what is no image, whatever it calls itself', async () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: '\ud800 no base64' } };
    appendLines(path(), user([text('look'), image], { uuid: 'u1' }), assistant('m1', 'at what?'));
    const payload = { session_id: SESSION, transcript_path: path(), hook_event_name: 'Stop' };
    expect(await workplace.hook(payload)).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    expect(words(workplace.server.observations).size).toBe(1);
    expect(mediaRequests()).toEqual([]);
  });
});

test('a storage that does not answer takes half of the time at most; the turns arrive in the rest', () =>
  withSilentServer(async (url) => {
    const first = '{"mediaId":"a3-kNPkqi4CqsC2b8aEuSf"';
    misbehaveWithMedia({ status: 201, body: `${first},"uploadUrl":"${url}/?X-Signature=presigned"}` });
    workplace.env = { ...workplace.env, CC_LANGFUSE_TIMEOUT: '3000' };
    await endSession();
    expect(words(workplace.server.observations)).toContain(CHART);
    expect(workplace.state[sessionId]).toMatchObject({ turn_count: 3 });
    expect(workplace.log.length).toBeGreaterThan(0);
    expect(JSON.stringify(workplace.log)).not.toContain('presigned');
  }));

describe('preview', () => {
  test('names what would be brought, and brings nothing', async () => {
    cpSync(join(RECORDED.folder, 'projects'), workplace.projects, { recursive: true });
    const { stdout } = await run(['preview', sessionId.slice(0, 8)], workplace.env);
    expect(stdout).toContain('Compare @chart.png and @plan.png with @paper.pdf [image/png] [ima');
    const json = await run(['preview', sessionId.slice(0, 8), '--json'], workplace.env);
    expect(new Set(json.stdout.match(/@@@langfuseMedia:[^@]+@@@/g)).size).toBe(3);
    expect(workplace.server.requests).toEqual([]);
  });
});
