import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { writeFolderSettings } from '../support/claude-session.js';
import { SECRET_KEY } from '../support/langfuse-server.js';
import { Newcomer } from '../support/newcomer.js';
import { run, Workplace } from '../support/program.js';
import { recording, transcriptsOf } from '../support/recording.js';

const SECRET = 'hunter2-of-the-gateway';
const HEADERS = `CF-Access-Client-Id=id.access,CF-Access-Client-Secret=${SECRET}%20x`;
const RECORDED = recording('p-media');
const [source = ''] = transcriptsOf(RECORDED);
let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
  workplace.env = { ...workplace.env, CC_LANGFUSE_HEADERS: HEADERS, CC_LANGFUSE_SCORES: 'true' };
  // A gateway that lets nobody else through.
  workplace.server.misbehave = ({ headers, url = '' }) =>
    url.startsWith('/storage/') || headers['cf-access-client-secret'] === `${SECRET} x` ? undefined : { status: 403 };
});

afterEach(() => workplace.close());

function endSession() {
  cpSync(join(RECORDED.folder, 'projects'), workplace.projects, { recursive: true });
  const path = source.replace(join(RECORDED.folder, 'projects'), workplace.projects);
  const id = source.replace(/^.*\/|\.jsonl$/g, '');
  return workplace.hook({ session_id: id, transcript_path: path, hook_event_name: 'SessionEnd' });
}

/** The endpoints that received the gateway's headers, and those that did not. */
function listEndpoints() {
  const names = workplace.server.requests.map(({ path, headers }) => ({
    path: path.replace(/^(\/storage|\/api\/public\/media)\/.*/, '$1/…').replace(/\?.*/, ''),
    has: headers['cf-access-client-id'] !== undefined,
  }));
  const list = (has: boolean) => [...new Set(names.filter((each) => each.has === has).map(({ path }) => path))];
  return { with: list(true).toSorted(), without: list(false).toSorted() };
}

test('every request to Langfuse has the headers of the gateway, and an upload to the storage does not', async () => {
  expect(await endSession()).toMatchObject({ exitCode: 0, stdout: '' });
  expect(workplace.server.media.stored.size).toBeGreaterThan(0);
  expect(listEndpoints()).toEqual({
    with: ['/api/public/ingestion', '/api/public/media', '/api/public/media/…', '/api/public/otel/v1/traces'],
    without: ['/storage/…'],
  });
  expect(workplace.server.requests.every(({ status }) => status < 300)).toBe(true);
});

test('the ingestion API of an older server gets them, too', async () => {
  workplace.server.isOlder = true;
  expect(await endSession()).toMatchObject({ exitCode: 0 });
  expect(listEndpoints().with).toContain('/api/public/ingestion');
  expect(listEndpoints().without).toEqual(['/storage/…']);
});

test('doctor asks with them, and names them without their values', async () => {
  const { stdout } = await run(['doctor', '--json'], workplace.env, '', { cwd: workplace.home });
  const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string; message: string }[] };
  const found = checks.filter(({ name }) => ['headers', 'endpoint', 'keys', 'otlp'].includes(name));
  expect(found.map(({ name, status, message }) => [name, status, message])).toEqual([
    ['headers', 'ok', 'CC_LANGFUSE_HEADERS sets cf-access-client-id, cf-access-client-secret (from the shell)'],
    ['endpoint', 'ok', `${workplace.server.url} is Langfuse 4.16.0`],
    ['keys', 'ok', 'for the project "Embedded"'],
    ['otlp', 'ok', 'accepts OpenTelemetry (200)'],
  ]);
  expect(stdout).not.toContain(SECRET);
  expect(listEndpoints().without).toEqual([]);
});

test.each([
  ['a line break in a value', 'x-gateway=a%0d%0aauthorization:b'],
  ['a name with a space', `x gateway=${SECRET}`],
  ['the header of the keys', `Authorization=Bearer%20${SECRET}`],
  ['a header of the connection', 'host=other.example'],
])('with %s nothing is sent, and the log names the setting without its value', async (_, headers) => {
  workplace.env = { ...workplace.env, CC_LANGFUSE_HEADERS: headers };
  expect(await endSession()).toMatchObject({ exitCode: 0 });
  expect(workplace.server.requests).toEqual([]);
  expect(workplace.log.map(({ msg }) => msg)).toContain(
    'CC_LANGFUSE_HEADERS: expected name=value,name=value with percent-encoded values, and no header that cc-langfuse sets itself, such as authorization',
  );
  expect(JSON.stringify(workplace.log)).not.toMatch(new RegExp(`${SECRET}|other.example|%0d`));
});

test('those that a project sets are not sent, and those of the user that it overrides are', async () => {
  const theirs = { CC_LANGFUSE_HEADERS: 'cf-access-client-secret=theirs' };
  writeFolderSettings(workplace.home, { CC_LANGFUSE_HEADERS: HEADERS });
  const project = join(workplace.home, 'work');
  writeFolderSettings(project, theirs);
  workplace.env = { ...workplace.env, ...theirs, CLAUDE_PROJECT_DIR: project };
  await endSession();
  expect(listEndpoints()).toMatchObject({ with: expect.arrayContaining(['/api/public/otel/v1/traces']) });
  expect(workplace.server.requests.map(({ headers }) => headers['cf-access-client-secret'])).not.toContain('theirs');
});

test('install tries the keys with the headers that are set', async () => {
  const newcomer = await Newcomer.arrive();
  newcomer.server.misbehave = ({ headers }) =>
    headers['cf-access-client-secret'] === `${SECRET} x` ? undefined : { status: 403 };
  expect(await newcomer.install()).toMatchObject({ exitCode: 1 });
  newcomer.env = { ...newcomer.env, CC_LANGFUSE_HEADERS: HEADERS };
  expect(await newcomer.install()).toMatchObject({ exitCode: 0 });
  expect(newcomer.settings).toContain(SECRET_KEY);
  expect(newcomer.settings).not.toContain(SECRET);
  await newcomer.close();
});
