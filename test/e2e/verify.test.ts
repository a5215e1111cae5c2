import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LangfuseServer, type OtlpSpan, PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { appendLines, appendTurn, assistant, at, SESSION, toolResult, toolUse, user } from '../support/lines.js';
import { isTrial } from '../support/newcomer.js';
import { type Environment, run, Workplace } from '../support/program.js';
import { recording } from '../support/recording.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const OTHER = '22222222-2222-4222-8222-222222222222';

const command = (args: readonly string[], env: Environment = {}) =>
  run(args, { ...workplace.env, ...env }, '', { cwd: workplace.home });
const verify = (...args: string[]) => command(['verify', ...args]);
const readBack = async (...args: string[]) => JSON.parse((await verify('--json', ...args)).stdout).sessions;
const path = (session = SESSION) => workplace.transcriptOf(session);
const hook = (name: string, more: object = {}, env: Environment = {}, session = SESSION) =>
  workplace.hook(
    { session_id: session, transcript_path: path(session), hook_event_name: name, cwd: workplace.home, ...more },
    { CLAUDE_CODE_SESSION_ID: session, ...env },
  );

const usage = { input_tokens: 100, output_tokens: 10, cache_read_input_tokens: 1_000 };

/** Appends a turn with a call and two responses. */
function appendToolTurn(n: number, session = SESSION): void {
  const answer = (id: string, content: unknown, seconds: number) => {
    const line = assistant(id, content, { timestamp: at(n * 10 + seconds) }) as { message: object };
    return { ...line, message: { ...line.message, usage } };
  };
  appendLines(
    path(session),
    user(`question ${n}`, { uuid: `${session}-${n}`, promptId: `p${n}`, cwd: workplace.home, timestamp: at(n * 10) }),
    answer(`${session}-a${n}`, [toolUse(`t${n}`)], 2),
    user([toolResult(`t${n}`)], { timestamp: at(n * 10 + 3) }),
    answer(`${session}-b${n}`, `answer ${n}`, 5),
  );
}

/** A session with two turns in Langfuse, which goes on. */
async function sendTwoTurns(): Promise<void> {
  for (const n of [1, 2]) {
    appendToolTurn(n);
    await hook('Stop');
  }
}

const FINE = `${SESSION} "question 1": 4 of 4 responses and 2 of 2 calls of 2 turns are in Langfuse, tokens equal, $0.0050\n`;

const findSpan = (isWanted: (span: OtlpSpan) => boolean): OtlpSpan => {
  const span = workplace.server.events.spans.find(isWanted);
  if (!span) throw new Error('expected a span');
  return span;
};
const typeOf = ({ attributes }: OtlpSpan) =>
  attributes.find(({ key }) => key === 'langfuse.observation.type')?.value?.stringValue;
const firstGeneration = () => findSpan((span) => typeOf(span) === 'generation');
const withAttribute = (span: OtlpSpan, name: string, stringValue: string): OtlpSpan => ({
  ...span,
  attributes: span.attributes.map((each) => (each.key === name ? { key: name, value: { stringValue } } : each)),
});

/** Runs the command that a line of the output names. */
function runNamed(stdout: string): Promise<{ exitCode: number | null }> {
  const [, args = ''] = /cc-langfuse (backfill .*?)(?: \(|$)/m.exec(stdout) ?? [];
  return command([...args.split(' '), '--yes']);
}

/** The lines after the first one, and the exit code. */
async function faults() {
  const { exitCode, stdout, stderr } = await verify();
  expect(stderr).toBe('');
  return { exitCode, lines: stdout.trimEnd().split('\n').slice(1) };
}

describe('verify', () => {
  test('says in one line that a session is in Langfuse, at once after a Stop and later', async () => {
    await sendTwoTurns();
    expect(await verify()).toMatchObject({ exitCode: 0, stdout: FINE, stderr: '' });
    workplace.letIdle();
    expect(await verify(SESSION.slice(0, 8))).toMatchObject({ exitCode: 0, stdout: FINE, stderr: '' });
  });

  test('takes no notice of the names that traces were sent with, and backfill sends nothing again', async () => {
    await sendTwoTurns();
    const { events, requests } = workplace.server;
    for (const span of events.spans) events.keep(withAttribute(span, 'langfuse.trace.name', 'Turn 1'));
    expect(await verify()).toMatchObject({ exitCode: 0, stdout: FINE, stderr: '' });
    const before = requests.length;
    workplace.letIdle();
    expect((await workplace.backfill('--all')).stdout).toContain('already there');
    expect(requests.slice(before).filter((request) => !isTrial(request))).toEqual([]);
  });

  test('reads back sessions with subagents, and names the models without a price', async () => {
    for (const name of ['p-agentfg', 'p-simple'])
      cpSync(join(recording(name).folder, 'projects'), workplace.projects, { recursive: true });
    workplace.letIdle();
    await workplace.backfill('--all');
    expect(await verify('--all')).toMatchObject({
      exitCode: 0,
      stdout: [
        '668a221c-2ada-4031-a163-dc951703c196 "SCN:agentfg please": 5 of 5 responses and 3 of 3 calls of 1 turn are in Langfuse, tokens equal',
        'cf7364d8-cd8c-46d5-941a-b24ec806e61e "SCN:simple please": 1 of 1 response of 1 turn is in Langfuse, tokens equal',
        '2 sessions: 2 in Langfuse',
        'Langfuse has no price for claude-opus-5-5; cc-langfuse prices learns it and defines it there',
        '',
      ].join('\n'),
      stderr: '',
    });
  });

  test("compares Langfuse's cost with Claude Code's own account, if that is of the same responses", async () => {
    cpSync(join(recording('p-simple').folder, 'projects'), workplace.projects, { recursive: true });
    workplace.letIdle();
    const { models } = workplace.server.api;
    const prices = { input: 4.4e-6, output: 22e-6, input_cache_creation_5m: 5.5e-6, input_cache_creation_1h: 8.8e-6 };
    const opus = { modelName: 'x', matchPattern: '(?i)^claude-opus-5-5$', isLangfuseManaged: false };
    models.models.push({ ...opus, prices: { ...prices, cache_read_input_tokens: 0.22e-6 } });
    await workplace.backfill('--all');
    const [{ dollars, claudeCodeDollars }] = await readBack('--all');
    expect(dollars).toBeCloseTo(claudeCodeDollars, 12);
    expect((await verify('--all')).stdout).toMatch(
      /^.*: 1 of 1 response of 1 turn is in Langfuse, tokens equal, \$0\.\d+\n$/,
    );

    models.models.splice(0, models.models.length, { ...opus, prices: { output: 1 } });
    workplace.server.remove(() => true);
    await workplace.backfill('--all', '--force');
    const { exitCode, stdout } = await verify('--all');
    expect(exitCode).toBe(0);
    expect(stdout.trimEnd().split('\n').slice(1)).toEqual([
      `  Claude Code's own account says $${claudeCodeDollars.toFixed(4)}; it also counts requests that no transcript has`,
    ]);
  });

  test('needs several pages for a long session', async () => {
    for (let n = 1; n <= 300; n += 1) appendTurn(path(), n, { cwd: workplace.home });
    workplace.letIdle();
    await workplace.backfill('--all');
    const before = workplace.server.requests.length;
    expect((await verify()).stdout).toContain('300 of 300 responses of 300 turns are in Langfuse');
    const pages = workplace.server.requests.slice(before).map((each) => each.path.split('?')[0]);
    expect(pages).toEqual(['/api/public/v2/observations', '/api/public/v2/observations']);
  });

  test("finds turns in a caller's trace", async () => {
    const env = { CC_LANGFUSE_TRACEPARENT: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };
    await hook('SessionStart', { source: 'startup' }, env);
    appendToolTurn(1);
    await hook('Stop', {}, env);
    expect(await verify()).toMatchObject({
      exitCode: 0,
      stdout: `${SESSION} "question 1": 2 of 2 responses and 1 of 1 call of 1 turn are in Langfuse, tokens equal, $0.0025\n`,
    });
  });

  test('waits if the server asks for it', async () => {
    await sendTwoTurns();
    let asked = 0;
    workplace.server.misbehave = () => {
      asked += 1;
      return asked === 1 ? { status: 429, headers: { 'retry-after': '1' } } : undefined;
    };
    expect(await verify()).toMatchObject({ exitCode: 0, stdout: FINE });
    expect(asked).toBe(2);
  });
});

describe('verify reports', () => {
  test('what is missing, and the command that sends it again', async () => {
    await sendTwoTurns();
    const lost = [firstGeneration(), findSpan((span) => typeOf(span) === 'tool')].map(({ spanId }) => spanId);
    workplace.server.remove(({ id }) => lost.includes(id));
    const { exitCode, stdout } = await verify();
    expect(exitCode).toBe(1);
    expect(stdout.trimEnd().split('\n')).toEqual([
      `${SESSION} "question 1": 3 of 4 responses and 1 of 2 calls of 2 turns are in Langfuse, $0.0037`,
      `  ✗ missing: 1 response and 1 call of turn 1 (ids ${lost.join(' and ')})`,
      `  → cc-langfuse backfill --force --include-open ${SESSION}`,
    ]);
    expect(await runNamed(stdout)).toMatchObject({ exitCode: 0 });
    expect(await verify()).toMatchObject({ exitCode: 0, stdout: FINE });
  });

  test.each([
    ['tokens', 'langfuse.observation.usage_details', '{"input":1,"output":10,"total":11}'],
    ['model', 'langfuse.observation.model.name', 'claude-haiku-4-5-20251001'],
    ['level', 'langfuse.observation.level', 'ERROR'],
  ])('what is different (%s), and the command that repairs it', async (field, attribute, value) => {
    await sendTwoTurns();
    const span = firstGeneration();
    workplace.server.events.keep(withAttribute(span, attribute, value));
    const { exitCode, stdout } = await verify();
    expect(exitCode).toBe(1);
    expect(stdout.trimEnd().split('\n').slice(1)).toEqual([
      `  ✗ different (${field}): 1 response of turn 1 (id ${span.spanId})`,
      `  → cc-langfuse backfill --force --include-open ${SESSION}`,
    ]);
    expect(await runNamed(stdout)).toMatchObject({ exitCode: 0 });
    expect(await verify()).toMatchObject({ exitCode: 0, stdout: FINE });
  });

  test('what is there twice until Langfuse merges it', async () => {
    await sendTwoTurns();
    workplace.letIdle();
    workplace.server.events.isMerged = false;
    await workplace.backfill('--all', '--force');
    const { exitCode, lines } = await faults();
    expect(exitCode).toBe(1);
    expect(lines).toEqual([
      expect.stringMatching(
        /^ {2}✗ twice, until Langfuse merges them: 2 turns, 4 responses and 2 calls of turns 1 and 2 \(ids .* and 5 more\)$/,
      ),
      "  Langfuse's sums count both rows until it has merged them, which takes minutes or longer: verify again later",
    ]);
    workplace.server.events.isMerged = true;
    expect(await verify()).toMatchObject({ exitCode: 0, stdout: FINE });
  });

  test('what stays twice, since it is there with another start', async () => {
    await sendTwoTurns();
    const span = firstGeneration();
    const startTimeUnixNano = String(BigInt(span.startTimeUnixNano) + 50_000_000n);
    workplace.server.events.keep({ ...span, startTimeUnixNano });
    const { stdout } = await verify();
    expect(stdout.trimEnd().split('\n').slice(1)).toEqual([
      `  ✗ twice: 1 response of turn 1 (id ${span.spanId})`,
      `  what is sent again does not replace that: delete trace ${span.traceId} in Langfuse`,
      `  → once it is gone: cc-langfuse backfill --force --include-open ${SESSION}`,
    ]);
    workplace.server.remove(({ traceId }) => traceId === span.traceId);
    await runNamed(stdout);
    expect(await verify()).toMatchObject({ exitCode: 0, stdout: FINE });
  });

  test('a response that is also there under another id', async () => {
    await sendTwoTurns();
    const span = firstGeneration();
    const traceId = 'c'.repeat(32);
    workplace.server.events.keep({ ...span, traceId, spanId: 'd'.repeat(16) });
    expect(await faults()).toEqual({
      exitCode: 1,
      lines: [
        `  ✗ twice: 1 response of turn 1 (id ${span.spanId})`,
        `  what is sent again does not replace that: delete trace ${traceId} in Langfuse`,
      ],
    });
    workplace.server.remove((each) => each.traceId === traceId);
    expect(await verify()).toMatchObject({ exitCode: 0, stdout: FINE });
  });

  test('what was never sent, and why', async () => {
    appendToolTurn(1);
    await hook('Stop');
    workplace.server.misbehave = ({ method }) => (method === 'POST' ? { status: 401 } : undefined);
    appendToolTurn(2);
    await hook('Stop');
    workplace.server.misbehave = () => undefined;
    const { exitCode, stdout } = await verify();
    expect(exitCode).toBe(1);
    expect(stdout.trimEnd().split('\n')).toEqual([
      `${SESSION} "question 1": 2 of 4 responses and 1 of 2 calls of 2 turns are in Langfuse, $0.0025`,
      expect.stringMatching(/^ {2}✗ not sent yet: 1 turn, 2 responses and 1 call of turn 2 \(ids .* and 1 more\)$/),
      '  the last try failed: the server refuses the keys (401); make new ones for "cc-langfuse install", or for the plugin',
      `  → the next hook sends the rest, or: cc-langfuse backfill ${SESSION}`,
    ]);
    expect(await runNamed(stdout)).toMatchObject({ exitCode: 0 });
    expect(await verify()).toMatchObject({ exitCode: 0, stdout: FINE });
  });
});

test('verify says why it cannot compare a session whose redaction rules are broken', async () => {
  await sendTwoTurns();
  workplace.env = { ...workplace.env, CC_LANGFUSE_REDACT_EXTRA: '(' };
  const { exitCode, stdout } = await verify();
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(
    new RegExp(
      `^${SESSION} "question 1": it could not be compared\n {2}✗ not compared to the end: CC_LANGFUSE_REDACT_EXTRA.*\n$`,
    ),
  );
});

describe('of what is kept back, verify says why:', () => {
  const FIRST = `${SESSION} "question 1": 2 of 2 responses and 1 of 1 call of 1 turn are in Langfuse, tokens equal, $0.0025`;
  const kept = async () => {
    const { exitCode, lines } = await faults();
    expect(exitCode).toBe(0);
    return lines;
  };

  test('a turn that is not over', async () => {
    appendToolTurn(1);
    await hook('Stop');
    appendToolTurn(2);
    expect(await verify()).toMatchObject({
      exitCode: 0,
      stdout: `${FIRST}\n  kept back: 1 turn (2,220 tokens) is not over\n`,
    });
  });

  test('what was said while the session was muted', async () => {
    appendToolTurn(1);
    await hook('Stop');
    await command(['mute']);
    for (const n of [2, 3]) appendToolTurn(n);
    await hook('Stop');
    workplace.letIdle();
    expect(await kept()).toEqual(['  kept back: 2 turns (4,440 tokens) were said while the session was muted']);
  });

  test('what ran without tracing, until a backfill has sent it', async () => {
    const off = { TRACE_TO_LANGFUSE: 'false' };
    appendToolTurn(1);
    await hook('Stop');
    await hook('SessionEnd');
    await hook('SessionStart', { source: 'resume' }, off);
    appendToolTurn(2);
    await hook('Stop', {}, off);
    workplace.letIdle();
    expect(await kept()).toEqual([
      `  kept back: 1 turn (2,220 tokens) ran without tracing; cc-langfuse backfill ${SESSION} asks, and then sends it`,
    ]);
    await workplace.backfill(SESSION);
    expect(await verify()).toMatchObject({ exitCode: 0, stdout: FINE });
  });

  test('a session that no hook has seen, and one without an answer', async () => {
    appendLines(path(OTHER), user('question 1', { uuid: 'u', cwd: workplace.home, timestamp: at(1) }));
    appendToolTurn(1);
    workplace.letIdle();
    expect(await verify('--here')).toMatchObject({
      exitCode: 0,
      stdout: [
        `${SESSION} "question 1": nothing of it is to be in Langfuse`,
        `  kept back: 1 turn (2,220 tokens) ran without tracing; cc-langfuse backfill ${SESSION} asks, and then sends it`,
        `${OTHER} "question 1": it has no answered turn`,
        '2 sessions: 1 kept back, 1 without an answered turn',
        '',
      ].join('\n'),
    });
    expect(workplace.server.requests).toEqual([]);
  });

  test('a folder that has been excluded since', async () => {
    await sendTwoTurns();
    workplace.env = { ...workplace.env, CC_LANGFUSE_EXCLUDE: workplace.home };
    expect(await kept()).toEqual([
      `  kept back: 2 turns (4,440 tokens) are of an excluded folder: CC_LANGFUSE_EXCLUDE in the shell excludes ${workplace.home}`,
    ]);
  });

  test('the turns that a fork has copied', async () => {
    cpSync(join(recording('i-branch').folder, 'projects'), workplace.projects, { recursive: true });
    workplace.letIdle();
    await workplace.backfill('--all');
    const sessions = await readBack('--all');
    expect(sessions.map(({ state, turns, keptBack }: Record<string, unknown>) => ({ state, turns, keptBack }))).toEqual(
      [
        { state: 'fine', turns: 1, keptBack: [{ why: 'copied', turns: 1, tokens: 0 }] },
        { state: 'fine', turns: 1, keptBack: [] },
      ],
    );
  });

  test('what was copied from a session that is gone, which only a backfill sends', async () => {
    const copied = { uuid: 'copied', forkedFrom: { sessionId: OTHER, messageUuid: 'copied' } };
    appendLines(
      path(),
      user('question 0', { ...copied, cwd: workplace.home, timestamp: at(1) }),
      assistant('copied', 'answer 0', { ...copied, uuid: 'answer', timestamp: at(2) }),
    );
    appendToolTurn(1);
    await hook('Stop');
    expect(await kept()).toEqual(['  kept back: 1 turn was copied from another session']);
  });

  test('what ran without keys, until a hook with keys has sent it', async () => {
    appendToolTurn(1);
    await hook('Stop', {}, { LANGFUSE_PUBLIC_KEY: undefined });
    workplace.letIdle();
    expect(await kept()).toEqual(['  kept back: 1 turn (2,220 tokens) ran without keys']);
    appendToolTurn(2);
    await hook('Stop');
    expect(await verify()).toMatchObject({ exitCode: 0, stdout: FINE });
  });

  test('a session for another project', async () => {
    await sendTwoTurns();
    const other = await LangfuseServer.start();
    workplace.env = { ...workplace.env, LANGFUSE_BASE_URL: other.url };
    expect(await verify()).toMatchObject({
      exitCode: 0,
      stdout: [
        `${SESSION} "question 1": nothing of it is to be in Langfuse`,
        '  kept back: 2 turns (4,440 tokens) are for another project: verify with the keys of that project',
        '',
      ].join('\n'),
    });
    await other.stop();
  });
});

describe('verify needs', () => {
  test('keys that may read; others of the same project do', async () => {
    await sendTwoTurns();
    const { keys } = workplace.server;
    keys.set(`${PUBLIC_KEY}:${SECRET_KEY}`, { mayRead: false });
    keys.set('pk-lf-reader:sk-lf-reader', { mayRead: true, mayWrite: false });
    const { host } = new URL(workplace.server.url);
    expect(await verify()).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr:
        'cc-langfuse: these keys are for ingestion only: they write, and read nothing (403); give this command keys that may read (Viewer or full access): LANGFUSE_PUBLIC_KEY=… LANGFUSE_SECRET_KEY=… cc-langfuse verify\n',
    });
    const reader = { LANGFUSE_PUBLIC_KEY: 'pk-lf-reader', LANGFUSE_SECRET_KEY: 'sk-lf-reader' };
    expect(await command(['verify'], reader)).toMatchObject({ exitCode: 0, stdout: FINE });
    const { spanId } = firstGeneration();
    workplace.server.remove(({ id }) => id === spanId);
    expect(await command(['verify'], reader)).toMatchObject({ exitCode: 1 });
    expect(await command(['verify'], { LANGFUSE_SECRET_KEY: 'sk-lf-wrong' })).toMatchObject({
      exitCode: 1,
      stderr: `cc-langfuse: Langfuse refused the keys (401) at ${host}: "Invalid credentials. Confirm that you've configured the correct host"\n`,
    });
  });

  test('a server that answers', async () => {
    await sendTwoTurns();
    appendTurn(path(OTHER), 1, { cwd: workplace.home });
    await hook('Stop', {}, {}, OTHER);
    await workplace.server.stop();
    const { host } = new URL(workplace.env.LANGFUSE_BASE_URL ?? '');
    const problem = `${host} cannot be reached: ECONNREFUSED`;
    expect(await verify(SESSION)).toMatchObject({ exitCode: 1, stdout: '', stderr: `cc-langfuse: ${problem}\n` });
    expect(await verify('--here')).toMatchObject({
      exitCode: 1,
      stdout: '2 sessions: 2 not read\n',
      stderr: `cc-langfuse: 2 sessions could not be read: ${problem}\n`,
    });
    expect(await readBack(SESSION)).toEqual([
      { sessionId: SESSION, title: 'question 1', path: path(), state: 'unread', problem },
    ]);
  });

  test('Langfuse: a Collector cannot be read', async () => {
    appendTurn(path(), 1, { cwd: workplace.home });
    const { LANGFUSE_PUBLIC_KEY: _, LANGFUSE_SECRET_KEY: __, LANGFUSE_BASE_URL: ___, ...env } = workplace.env;
    workplace.env = { ...env, CC_LANGFUSE_OTLP_URL: 'http://127.0.0.1:4318/v1/traces' };
    expect(await verify()).toMatchObject({
      exitCode: 2,
      stderr:
        'cc-langfuse: verify reads from Langfuse, but the settings name the Collector at 127.0.0.1:4318, which cannot be read\n',
    });
    workplace.env = env;
    expect(await verify()).toMatchObject({
      exitCode: 2,
      stderr:
        'cc-langfuse: verify needs a Langfuse server and its keys: run cc-langfuse install, or set them in the shell\n',
    });
  });

  test.each([
    [['--all', '--here'], '--all and --here: choose one of them'],
    [['--all', SESSION], `--all and ${SESSION}: name a session or select them, not both`],
    [[SESSION, OTHER], `${SESSION} and ${OTHER}: verify takes one session`],
    [[], 'no session ran in this directory; name one, cc-langfuse sessions lists them'],
  ])('arguments that make sense: %s', async (args, problem) => {
    expect(await verify(...args)).toMatchObject({ exitCode: 2, stdout: '', stderr: `cc-langfuse: ${problem}\n` });
  });
});

describe('verify at an older server', () => {
  test('reads trace by trace, and finds what is missing', async () => {
    workplace.server.isOlder = true;
    await sendTwoTurns();
    expect(await verify()).toMatchObject({ exitCode: 0, stdout: FINE, stderr: '' });
    const lost = workplace.server.observations.find(({ type }) => type === 'generation')?.id;
    workplace.server.remove(({ id }) => id === lost);
    const { exitCode, stdout } = await verify();
    expect(exitCode).toBe(1);
    expect(stdout).toContain(`✗ missing: 1 response of turn 1 (id ${lost})`);
    await runNamed(stdout);
    expect(await verify()).toMatchObject({ exitCode: 0, stdout: FINE });
  });
});

test('--here leaves out other directories, and --json has everything that the words have', async () => {
  await sendTwoTurns();
  appendTurn(path(OTHER), 1, { cwd: '/elsewhere' });
  await hook('Stop', { cwd: '/elsewhere' }, {}, OTHER);
  const { spanId: id, traceId } = firstGeneration();
  workplace.server.remove((each) => each.id === id);
  const { exitCode, stdout, stderr } = await verify('--here', '--json');
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: '' });
  expect(JSON.parse(stdout)).toEqual({
    sessions: [
      {
        sessionId: SESSION,
        title: 'question 1',
        path: path(),
        state: 'faulty',
        turns: 2,
        responses: { expected: 4, found: 3 },
        calls: { expected: 2, found: 2 },
        observations: { expected: 8, found: 7 },
        tokens: 4_440,
        dollars: expect.closeTo(0.00375, 12),
        modelsWithoutPrice: [],
        missing: [{ id, traceId, kind: 'response', turn: 1, acknowledged: true }],
        different: [],
        twice: [],
        others: 0,
        keptBack: [],
        repair: { deleteTraces: [], command: `cc-langfuse backfill --force --include-open ${SESSION}` },
      },
    ],
  });
  expect(await verify('--all')).toMatchObject({
    stdout: expect.stringContaining('2 sessions: 1 in Langfuse, 1 with something missing, different or twice'),
  });
});
