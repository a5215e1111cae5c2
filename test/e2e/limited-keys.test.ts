import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { account, accountLine, variedCounts } from '../support/cost-account.js';
import { writeNthSession } from '../support/generated.js';
import { PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { appendLines, appendTurn, SESSION } from '../support/lines.js';
import { Newcomer } from '../support/newcomer.js';
import { type Environment, run, Workplace } from '../support/program.js';

/** Langfuse's keys can be for ingestion only, or only for reading, and they can expire (its FAQ, "read-only-api-keys"). */

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
  workplace.env = { ...workplace.env, CC_LANGFUSE_SCORES: 'true' };
  mkdirSync(project());
});

afterEach(() => workplace.close());

type Permissions = Parameters<typeof workplace.server.keys.set>[1];
const permit = (permissions: Permissions) => workplace.server.keys.set(`${PUBLIC_KEY}:${SECRET_KEY}`, permissions);
const project = () => join(workplace.home, 'project');
const command = (...args: string[]) => run(args, workplace.env, '', { cwd: project() });
const stop = (session = SESSION, env: Environment = {}) => {
  const transcript = workplace.transcriptOf(session);
  const payload = { session_id: session, transcript_path: transcript, hook_event_name: 'Stop', cwd: project() };
  return workplace.hook(payload, env);
};
const sendTurn = async () => {
  appendTurn(workplace.transcriptOf(SESSION), 1, { cwd: project() });
  await stop();
};
const ended = async (...args: string[]) => {
  const { exitCode, stdout, stderr } = await command(...args);
  return { exitCode, stdout, stderr: stderr.replaceAll(`:${workplace.server.port}`, ':3000') };
};
const failed = (message: string) => ({ exitCode: 1, stdout: '', stderr: `cc-langfuse: ${message}\n` });

const ONLY_WRITE = 'these keys are for ingestion only: they write, and read nothing (403)';
const own = (name: string) => `LANGFUSE_PUBLIC_KEY=… LANGFUSE_SECRET_KEY=… cc-langfuse ${name}`;
const NEW_KEYS = 'make new ones for "cc-langfuse install", or for the plugin';

describe('with keys for ingestion only', () => {
  beforeEach(() => permit({ mayRead: false }));

  test('hooks send turns and scores, and a rating arrives', async () => {
    await sendTurn();
    expect(workplace.server.roots).toHaveLength(1);
    const scored = workplace.server.api.scores.size;
    expect(scored).toBeGreaterThan(0);
    expect(await ended('rate', 'good')).toEqual({ exitCode: 0, stdout: 'turn 1 is rated good\n', stderr: '' });
    expect(workplace.server.api.scores.size).toBe(scored + 1);
    expect(workplace.log).toEqual([]);
  });

  test('backfill works, and status then names the keys', async () => {
    writeNthSession(workplace.projects, 3);
    const { exitCode, stdout, stderr } = await command('backfill', '--all', '--yes', '--json');
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ sessions: [{ outcome: 'exported' }], page: `${workplace.server.url}/` });
    expect((await command('status')).stdout).toContain(
      `sends to        ${workplace.server.url} (pk-lf-em…), with keys for ingestion only: they write, and read nothing\n`,
    );
    expect(JSON.parse((await command('status', '--json')).stdout).destination).toEqual({
      kind: 'langfuse',
      url: workplace.server.url,
      publicKey: 'pk-lf-em…',
      ingestionOnly: true,
    });
    permit({ mayRead: true });
    workplace.env = { ...workplace.env, LANGFUSE_PUBLIC_KEY: 'pk-lf-other' };
    expect((await command('status')).stdout).not.toContain('ingestion');
  });

  test('open needs the project once', async () => {
    await sendTurn();
    expect(await ended('open')).toEqual(
      failed(`${ONLY_WRITE}; name the project once with --project-id (the id in the address of its page)`),
    );
    const page = `${workplace.server.url}/project/p-1/sessions/${SESSION}\n`;
    expect(await ended('open', '--project-id', 'p-1')).toEqual({ exitCode: 0, stdout: page, stderr: '' });
    expect(await ended('open')).toEqual({ exitCode: 0, stdout: page, stderr: '' });
    expect((await ended('open', '--project-id', 'p-2')).stdout).toBe(page.replace('p-1', 'p-2'));
    expect((await command('status')).stdout).toContain(`${workplace.server.url}/project/p-2/traces/`);
    expect(await ended('open', '--project-id', 'http://a/project/b')).toEqual({
      ...failed('--project-id: expected the id in the address of a page, …/project/<id>'),
      exitCode: 2,
    });
  });

  test('open and backfill know the project from CC_LANGFUSE_PROJECT_ID', async () => {
    workplace.env = { ...workplace.env, CC_LANGFUSE_PROJECT_ID: 'p-1' };
    await sendTurn();
    const page = `${workplace.server.url}/project/p-1/sessions`;
    expect(await ended('open')).toEqual({ exitCode: 0, stdout: `${page}/${SESSION}\n`, stderr: '' });
    writeNthSession(workplace.projects, 3);
    expect(JSON.parse((await command('backfill', '--all', '--yes', '--json')).stdout).page).toBe(page);
  });

  test("a project's settings name no project, neither to open nor to send to", async () => {
    await sendTurn();
    const destination = workplace.state[SESSION]?.destination;
    const env = { CC_LANGFUSE_PROJECT_ID: 'evil' };
    mkdirSync(join(project(), '.claude'));
    writeFileSync(join(project(), '.claude', 'settings.local.json'), JSON.stringify({ env }));
    expect((await ended('open')).stderr).toContain(ONLY_WRITE);
    appendTurn(workplace.transcriptOf(SESSION), 2, { cwd: project() });
    await stop(SESSION, { ...env, CLAUDE_PROJECT_DIR: project() });
    expect(workplace.state[SESSION]).toMatchObject({ destination, turnCount: 2 });
  });

  test.each([
    ['verify', [], 'keys that may read (Viewer or full access)'],
    ['dashboard', ['--yes'], 'keys with full access'],
    ['prices', ['--yes'], 'keys with full access'],
  ])('%s says in one sentence which keys it needs, and how to give it some', async (name, args, keys) => {
    await sendTurn();
    appendLines(workplace.transcriptOf(SESSION), accountLine({ 'claude-new-9': account([variedCounts(1)], 1) }));
    const { exitCode, stderr } = await ended(name, ...args);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 1,
      stderr: `cc-langfuse: ${ONLY_WRITE}; give this command ${keys}: ${own(name)}\n`,
    });
  });
});

test('keys that only read are refused by install, and send nothing: each names the kinds that suffice', async () => {
  permit({ mayRead: true, mayWrite: false });
  const words = 'Access denied - insufficient permissions for this endpoint';
  const problem = `these keys read project "Embedded", but may not write to it (403): "${words}"; sending needs keys with full access, or for ingestion`;
  writeNthSession(workplace.projects, 3);
  // A backfill writes nothing to try the keys: one that has nothing to send sends nothing.
  expect(await ended('backfill', '--all', '--yes')).toMatchObject({
    exitCode: 1,
    stdout: expect.stringContaining(
      `the server refuses the keys (403): "${words}"; sending needs keys with full access`,
    ),
  });
  const newcomer = await Newcomer.arrive();
  newcomer.server.keys.set(`${PUBLIC_KEY}:${SECRET_KEY}`, { mayRead: true, mayWrite: false });
  expect(await newcomer.install()).toMatchObject(failed(`${problem}; nothing was changed`));
  await newcomer.leave();
});

test("a project's name does not control the terminal", async () => {
  permit({ mayRead: true, mayWrite: false });
  const body = JSON.stringify({ data: [{ id: 'p-1', name: 'Bell\u0007\u001b[2J\nand \u202e more' }] });
  workplace.server.misbehave = ({ method }) => (method === 'GET' ? { status: 200, body } : undefined);
  writeNthSession(workplace.projects, 3);
  const { stderr } = await ended('dashboard', '--yes');
  expect(stderr).toMatch(/^cc-langfuse: these keys read project "Bell \[2J and more", but may not write/);
});

test('a project that may ingest no more says so, in the words of the server', async () => {
  // web/src/pages/api/public/otel/v1/traces/index.ts
  const message = 'Ingestion suspended: Usage threshold exceeded. Please upgrade your plan.';
  const body = JSON.stringify({ message, error: 'ForbiddenError' });
  workplace.server.misbehave = ({ method }) => (method === 'POST' ? { status: 403, body } : undefined);
  await sendTurn();
  expect(workplace.log.map(({ msg }) => msg)).toEqual([
    `the server refuses the keys (403): "${message.slice(0, -1)}"; sending needs keys with full access, or for ingestion`,
  ]);
});

test('keys that have expired are named in the log, by status, sessions, doctor and backfill', async () => {
  permit({ mayRead: true, isExpired: true });
  await sendTurn();
  const reason = `the server refuses the keys (401): "API key has expired"; ${NEW_KEYS}`;
  expect(workplace.log).toMatchObject([{ level: 'warn', msg: reason, session: SESSION }]);
  expect((await command('status')).stdout).toContain(` 1 attempt: ${reason}\n`);
  expect((await command('sessions')).stdout).toContain(`pending (${reason})`);
  const { stdout } = await command('doctor', '--json');
  const found = JSON.parse(stdout).checks.filter(({ name }: { name: string }) => ['keys', 'pending'].includes(name));
  expect(found).toMatchObject([
    { status: 'broken', message: 'the server refuses the keys (401): "API key has expired"' },
    { status: 'warning', message: expect.stringMatching(/^[-\w]+ since .*, 1 attempt: /), details: { reason } },
  ]);
  const problem = `Langfuse refused the keys (401) at 127.0.0.1:3000: "API key has expired"; ${NEW_KEYS}`;
  expect(await ended('backfill', '--all', '--yes')).toEqual(failed(problem));
});
