import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { version } from '../../src/shared/version.js';
import { DoctorHome, hooksOf } from '../support/doctor.js';
import { sessionIdOf, writeSession } from '../support/generated.js';
import { PROJECT, PUBLIC_KEY } from '../support/langfuse-server.js';
import { run } from '../support/program.js';
import { runInTerminal } from '../support/terminal.js';

let home: DoctorHome;

beforeEach(async () => {
  home = await DoctorHome.open();
});

afterEach(() => home.close());

const HOUR_MS = 3_600_000;

function writeTurns(n: number, cwd: string, hoursAgo: number): void {
  const session = { sessionId: sessionIdOf(n), cwd, turns: 2, startsAt: Date.now() - hoursAgo * HOUR_MS };
  writeSession(home.projects, session);
}

const status = (...args: string[]) => run(['status', ...args], { TZ: 'UTC', ...home.env }, '', { cwd: home.project });
const json = async () => JSON.parse((await status('--json')).stdout);
const backfill = (n: number) => run(['backfill', '--yes', sessionIdOf(n)], home.env);

/** Without what differs from run to run. */
const plain = (text: string) =>
  text
    .replaceAll(home.home, '~')
    .replaceAll(`:${home.server.port}`, ':3000')
    .replaceAll(version, '1.0.0')
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d/g, '2026-10-01 12:00')
    .replaceAll(/ for \d+ s,/g, ' for 0 s,')
    .replaceAll(/\d+ h \d+ min ago/g, '5 h ago')
    .replaceAll(/[0-9a-f]{32}/g, '<trace>')
    // It depends on the hour: spent.test.ts looks at it.
    .replace(/^cost {12}today: .*\n {16}since Monday: .*\n/m, '');

/** The trace that the server has of a session's last turn. */
function traceOf(n: number, turn: number): string | undefined {
  const roots = home.server.roots.filter(({ trace }) => trace.sessionId === sessionIdOf(n));
  return roots.find(({ name }) => name === `Turn ${turn}`)?.traceId;
}

describe('status', () => {
  test('shows whether turns are sent, where to, the last ones, what waits, and the version', async () => {
    home.setUp();
    writeTurns(1, home.project, 5);
    writeTurns(2, '/elsewhere', 3);
    writeTurns(3, '/elsewhere', 2);
    for (const n of [1, 2]) await backfill(n);
    home.server.misbehave = ({ method }) => (method === 'GET' ? undefined : { status: 418 });
    await backfill(3);
    const before = home.server.requests.length;
    const { exitCode, stdout, stderr } = await status();
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(plain(stdout)).toMatchInlineSnapshot(`
      "version         1.0.0
      tracing         on (from ~/.claude/settings.json)
      sends to        http://127.0.0.1:3000 (pk-lf-em…)
      last turn here  turn 2, 2026-10-01 12:00 (5 h ago): question 1
                      session 00000001-0000-4000-8000-000000000000
                      http://127.0.0.1:3000/project/embedded/traces/<trace>
      last of all     turn 2, 2026-10-01 12:00 (5 h ago): question 1
                      session 00000002-0000-4000-8000-000000000000
                      http://127.0.0.1:3000/project/embedded/traces/<trace>
      pending         00000003-0000-4000-8000-000000000000 for 0 s, 1 attempt: the server answers 418
      only here       1 session is not wholly in Langfuse; Claude Code deletes it after 2026-10-01 12:00 (cleanupPeriodDays: 30)
                      → cc-langfuse backfill --expiring sends what goes within 7 days
      "
    `);
    expect(stdout).toContain(`/traces/${traceOf(1, 2)}\n`);
    expect(stdout).toContain(`/traces/${traceOf(2, 2)}\n`);
    expect(home.server.requests).toHaveLength(before);
  });

  test('--json has the same, and times as ISO 8601', async () => {
    home.setUp();
    writeTurns(1, home.project, 5);
    await backfill(1);
    const turn = {
      sessionId: sessionIdOf(1),
      title: 'question 1',
      number: 2,
      at: expect.stringMatching(/^\d{4}-.*Z$/),
      traceId: traceOf(1, 2),
      url: `${home.server.url}/project/${PROJECT.id}/traces/${traceOf(1, 2)}`,
    };
    const { cost: _, ...shown } = await json();
    expect(shown).toEqual({
      version,
      tracing: { on: true, message: `on (from ${home.home}/.claude/settings.json)`, problems: [] },
      destination: { kind: 'langfuse', url: home.server.url, publicKey: 'pk-lf-em…' },
      here: { sessionId: sessionIdOf(1), turn, untraced: 0, strays: 0, muted: false },
      newest: turn,
      pending: [],
    });
  });

  test('shows the time at which the last turn began, even if the session was started again since', async () => {
    home.setUp();
    writeTurns(1, home.project, 5);
    await backfill(1);
    const { here } = await json();
    const [last] = home.server.roots.filter(({ name }) => name === 'Turn 2');
    expect(Date.parse(here.turn.at)).toBe(last?.startTime);
    const payload = {
      session_id: sessionIdOf(1),
      hook_event_name: 'SessionStart',
      source: 'resume',
      cwd: home.project,
    };
    await home.hook({ ...payload, transcript_path: readTranscriptPath(1) });
    expect((await json()).here).toEqual(here);
  });

  test('links to the trace of whoever started the run', async () => {
    home.setUp();
    writeTurns(1, home.project, 5);
    const trace = '0af7651916cd43dd8448eb211c80319c';
    const env = { ...home.env, CC_LANGFUSE_TRACEPARENT: `00-${trace}-b7ad6b7169203331-01` };
    await run(['backfill', '--yes', sessionIdOf(1)], env);
    expect((await json()).here.turn.traceId).toBe(traceOf(1, 2));
    writeTurns(2, home.project, 4);
    await run(['backfill', '--yes', sessionIdOf(2)], { ...home.env, CC_LANGFUSE_TRACE_SEED: 'a seed' });
    expect((await json()).here.turn.traceId).toBe(traceOf(2, 2));
  });

  test('shows the trace without a link if no command has asked for the project yet', async () => {
    home.setUp();
    writeTurns(1, home.project, 5);
    await backfill(1);
    writeFileSync(join(home.stateFolder, 'cc-langfuse_projects.json'), 'not JSON');
    const { stdout } = await status();
    expect(stdout).toContain(`  trace ${traceOf(1, 2)}\n`);
    expect(stdout).not.toContain('/traces/');
  });

  test('says how to start in an empty home, and creates nothing there', async () => {
    home.env = { HOME: home.home };
    const { exitCode, stdout } = await status();
    expect(exitCode).toBe(0);
    expect(plain(stdout)).toMatchInlineSnapshot(`
      "version         1.0.0
      tracing         off: TRACE_TO_LANGFUSE is not set
                      → cc-langfuse install, or set "TRACE_TO_LANGFUSE": "true" in the env block of ~/.claude/settings.json
      sends to        nowhere: the keys or the URL are missing
      last turn here  no session ran in this directory
      last of all     no turn has been sent yet
      pending         nothing
      "
    `);
    expect(readdirSync(home.home).toSorted()).toEqual(['cc-langfuse', 'project']);
  });

  test('names what stops the hooks although tracing is on', async () => {
    home.env = { HOME: home.home, TRACE_TO_LANGFUSE: 'true', LANGFUSE_PUBLIC_KEY: PUBLIC_KEY };
    expect((await json()).tracing).toEqual({
      on: true,
      message: 'on (from the shell)',
      problems: ['hooks: not registered in any settings file', 'secret-key: LANGFUSE_SECRET_KEY is not set'],
    });
    expect((await status()).stdout).toContain('cc-langfuse doctor says how to fix it');
  });

  test('says that nothing of a session is sent if what is known of it cannot be read', async () => {
    home.setUp();
    home.writeState({ a: 'corrupt' });
    const path = join(home.stateFolder, 'cc-langfuse_sessions', 'a', 'session.json');
    const { problems } = (await json()).tracing;
    expect(problems).toEqual([`state: ${path} cannot be read, so nothing of its session is sent`]);
  });

  test('--exit-code ends with 1 if something waits or keeps turns from being sent, and with 0 otherwise', async () => {
    const exitCodes = async () => [(await status('--exit-code')).exitCode, (await status()).exitCode];
    home.setUp();
    writeTurns(1, home.project, 5);
    expect(await exitCodes()).toEqual([0, 0]);
    await backfill(1);
    expect(await exitCodes()).toEqual([0, 0]);
    await run(['mute', sessionIdOf(1)], home.env);
    expect(await exitCodes()).toEqual([0, 0]);
    writeTurns(2, '/elsewhere', 3);
    home.server.misbehave = ({ method }) => (method === 'GET' ? undefined : { status: 500 });
    await backfill(2);
    expect(await exitCodes()).toEqual([1, 0]);
    home.server.misbehave = () => undefined;
    await backfill(2);
    expect(await exitCodes()).toEqual([0, 0]);
    home.writeState({ a: 'corrupt' });
    expect(await exitCodes()).toEqual([1, 0]);
    home.writeSettings({ env: { TRACE_TO_LANGFUSE: 'false' } }, 'local');
    expect(await exitCodes()).toEqual([0, 0]);
  });

  test('says which file or variable turns tracing off here, and that a session is muted', async () => {
    home.setUp();
    writeTurns(1, home.project, 5);
    await run(['mute', sessionIdOf(1)], home.env);
    const unmute = `cc-langfuse unmute ${sessionIdOf(1)} ends that`;
    expect(await json()).toMatchObject({
      tracing: { problems: [`muted: the newest session of this directory is muted; ${unmute}`] },
      here: { muted: true },
    });
    expect(plain((await status()).stdout)).toMatch(
      `
tracing         on (from ~/.claude/settings.json)
                but muted: the newest session of this directory is muted; ${unmute}
sends to        `,
    );
    home.writeSettings({ env: { TRACE_TO_LANGFUSE: 'false' } }, 'local');
    expect((await json()).tracing).toEqual({
      on: false,
      message: `off: TRACE_TO_LANGFUSE is "false" (from ${home.project}/.claude/settings.local.json)`,
      fix: `set "TRACE_TO_LANGFUSE": "true" in ${home.project}/.claude/settings.local.json`,
      problems: [],
    });
    home.writeSettings({ env: { CC_LANGFUSE_EXCLUDE: '**/project' } }, 'local');
    expect((await json()).tracing.message).toBe(
      `off in this directory: CC_LANGFUSE_EXCLUDE in ${home.project}/.claude/settings.local.json excludes **/project`,
    );
  });

  test('knows where the plugin sends to, although Claude Code keeps its secret key', async () => {
    home.env = { HOME: home.home };
    const plugin = 'cc-langfuse@cc-langfuse';
    home.writeSettings({
      enabledPlugins: { [plugin]: true },
      pluginConfigs: { [plugin]: { options: { public_key: 'pk-lf-0123456789', base_url: 'https://example.com' } } },
    });
    expect(await json()).toMatchObject({
      tracing: { on: true, problems: [] },
      destination: { url: 'https://example.com', publicKey: 'pk-lf-01…' },
    });
  });

  test('shows a Collector without its credentials', async () => {
    home.env = { HOME: home.home };
    const env = { TRACE_TO_LANGFUSE: 'true', CC_LANGFUSE_OTLP_URL: 'http://me:hunter2@127.0.0.1:4318/v1/traces' };
    home.writeSettings({ ...hooksOf(), env });
    const { stdout } = await status();
    expect(stdout).toContain('sends to        the Collector at http://127.0.0.1:4318/v1/traces\n');
    expect(stdout).not.toContain('hunter2');
  });

  test('fits into a narrow terminal, with links in one piece and no control characters of a title', async () => {
    home.setUp();
    writeTurns(1, home.project, 5);
    const path = readTranscriptPath(1);
    writeFileSync(path, readFileSync(path, 'utf8').replace('question 1', '\\u001b[2Jred \\u202e word'.repeat(20)));
    await backfill(1);
    const place = { env: home.env, home: home.project };
    const lines = stripVTControlCharacters((await runInTerminal(['status'], place)).screen).split('\r\n');
    expect(lines.filter((line) => line.length > 80 && !line.includes('/traces/'))).toEqual([]);
    expect(lines.join('\n')).not.toMatch(/\u202e|\[2J/);
    const { stdout } = await status('--json');
    expect(stdout).not.toMatch(/[^\P{Cc}\n]|\u202e/u);
  });

  test('names five of many waiting sessions', async () => {
    const pending = { since: '2026-10-01T00:00:00.000Z', attempts: 1, reason: 'the server answers 500' };
    const entries = Array.from({ length: 7 }, (_, n) => [
      sessionIdOf(n),
      { last_line: 0, turn_count: 0, updated: pending.since, pending },
    ]);
    home.writeState(Object.fromEntries(entries));
    const { stdout } = await status();
    expect(stdout.match(/the server answers 500/g)).toHaveLength(5);
    expect(stdout).toContain('and 2 more: cc-langfuse sessions --limit all\n');
    expect((await json()).pending).toHaveLength(7);
  });

  test.each([
    [['x'], 'x: status takes no operands; see status --help'],
    [['--jsno'], "Unknown option '--jsno'; --help lists the options"],
    [['--jso'], "Unknown option '--jso'; did you mean --json?"],
  ])('refuses %j in one line with exit code 2', async (args, message) => {
    expect(await status(...args)).toMatchObject({ exitCode: 2, stdout: '', stderr: `cc-langfuse: ${message}\n` });
  });
});

function readTranscriptPath(n: number): string {
  const name = `${sessionIdOf(n)}.jsonl`;
  const found = readdirSync(home.projects, { recursive: true, encoding: 'utf8' });
  return join(home.projects, found.find((file) => file.endsWith(name)) ?? name);
}

test('a project id that cannot be saved changes nothing', async () => {
  home.setUp();
  writeTurns(1, home.project, 5);
  mkdirSync(join(home.stateFolder, 'cc-langfuse_projects.json'), { recursive: true });
  expect(await backfill(1)).toMatchObject({ exitCode: 0, stderr: '' });
  expect((await json()).here.turn.traceId).toBe(traceOf(1, 2));
});
