import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { numbersFrom } from '../faults/random.js';
import { sessionIdOf, writeSession } from '../support/generated.js';
import { assistant, jsonLines, user } from '../support/lines.js';
import { run, Workplace } from '../support/program.js';
import { play, recording, recordings, transcriptsOf } from '../support/recording.js';
import { describeTraces } from '../support/traces.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const DAY = 86_400_000;
const backfill = (...args: string[]) => run(['backfill', ...args], { ...workplace.env, TRACE_TO_LANGFUSE: undefined });
const roots = () => workplace.server.observations.filter(({ parentId }) => parentId === undefined);
const sessionsThere = () => new Set(roots().map(({ trace }) => trace.sessionId));
const arrivals = () => [...workplace.server.arrivals.values()];
const exports = () => workplace.server.requests.filter(({ path }) => path.includes('otel'));

function write(n: number, { cwd = '/home/dev/one', turns = 2, startsAt = Date.now() - n * DAY } = {}): string {
  return writeSession(workplace.projects, { sessionId: sessionIdOf(n), cwd, turns, startsAt });
}

function letIdle(folder: string): void {
  const before = new Date(Date.now() - 3_600_000);
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    utimesSync(join(folder, name), before, before);
  }
}

/** Puts a recording's files where Claude Code would have, long ago. */
function place(name: string): void {
  cpSync(join(recording(name).folder, 'projects'), workplace.projects, { recursive: true });
  letIdle(workplace.projects);
}

describe('a session that was never exported', () => {
  test.concurrent.each(recordings())('$name becomes what it would have become on its day', async ({ name, folder }) => {
    const own = await Workplace.open();
    try {
      cpSync(join(folder, 'projects'), own.projects, { recursive: true });
      letIdle(own.projects);
      const { exitCode, stderr } = await run(['backfill', '--all', '--json'], own.env);
      expect({ name, exitCode, stderr }).toEqual({ name, exitCode: 0, stderr: '' });
      expect(describeTraces(own.server.observations)).toBe(readFileSync(join(folder, 'expected.json'), 'utf8'));
      expect([...own.server.arrivals.values()].every((times) => times === 1)).toBe(true);
    } finally {
      await own.close();
    }
  });
});

describe('what is there already', () => {
  test.each(['p-toolloop', 'i-queue', 'i-agentbg2'])('%s: after live hooks nothing is sent', async (name) => {
    await play(recording(name), workplace.home, async ({ payload }) => void (await workplace.hook(payload)));
    const before = exports().length;
    letIdle(workplace.projects);
    const { stdout, exitCode } = await backfill('--all');
    expect({ exitCode, sent: exports().length - before }).toEqual({ exitCode: 0, sent: 0 });
    expect(stdout).toMatch(/^already there {2}\d sessions?\nhttp/);
  });

  test('is not sent again by a second run, and with --force it is, under the same ids', async () => {
    place('p-toolloop');
    await backfill('--all');
    await backfill('--all');
    expect(new Set(arrivals())).toEqual(new Set([1]));
    const { stderr } = await backfill('--all', '--force');
    expect(stderr).toContain('until Langfuse merges its rows');
    expect(new Set(arrivals())).toEqual(new Set([2]));
  });

  test('in another project is left alone, unless it is forced', async () => {
    write(1);
    await backfill('--all');
    workplace.env = { ...workplace.env, LANGFUSE_BASE_URL: `${workplace.server.url}/` };
    workplace.env = { ...workplace.env, LANGFUSE_BASE_URL: workplace.server.url.replace('127.0.0.1', 'localhost') };
    const { stdout, exitCode } = await backfill('--all');
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`– ${sessionIdOf(1)} was exported to another project; --force sends it to this one, too`);
    expect(new Set(arrivals())).toEqual(new Set([1]));
    await backfill('--all', '--force');
    expect(new Set(arrivals())).toEqual(new Set([2]));
  });
});

describe('a run that is interrupted', () => {
  test('at any point, and run again, comes to what an uninterrupted one does', async () => {
    for (let n = 1; n <= 12; n += 1) write(n, { turns: 30 });
    await backfill('--all');
    const whole = describeTraces(workplace.server.observations);
    const random = numbersFrom(20_261_118);
    let interrupted = 0;
    for (let tries = 0; tries < 20; tries += 1) {
      const own = await Workplace.open();
      try {
        cpSync(workplace.projects, own.projects, { recursive: true, preserveTimestamps: true });
        const signal = tries % 2 === 0 ? 'SIGKILL' : 'SIGINT';
        own.server.misbehave = () => ({ delayMs: 5 });
        const { exitCode } = await run(['backfill', '--all', '--concurrency', '2'], own.env, '', {
          onStart: (child) => void setTimeout(() => child.kill(signal), 80 + random() * 250),
        });
        if (exitCode !== 0) interrupted += 1;
        expect((await run(['backfill', '--all'], own.env)).exitCode).toBe(0);
        expect(describeTraces(own.server.observations)).toBe(whole);
        // Only of a request whose answer the kill kept away it cannot be known that it arrived.
        if (signal === 'SIGINT') expect([...own.server.arrivals.values()].every((times) => times === 1)).toBe(true);
      } finally {
        await own.close();
      }
    }
    expect(interrupted).toBeGreaterThan(5);
  }, 120_000);

  test('by Ctrl-C says what is done, exits with 130, and leaves nothing for the hooks to go on with', async () => {
    for (let n = 1; n <= 6; n += 1) write(n, { turns: 4 });
    workplace.server.misbehave = ({ method }) => (method === 'POST' ? { delayMs: 300 } : undefined);
    const { exitCode, stdout, stderr } = await run(['backfill', '--all', '--concurrency', '2'], workplace.env, '', {
      onStart: (child) => void setTimeout(() => child.kill('SIGINT'), 450),
    });
    expect(exitCode).toBe(130);
    expect(stderr).toContain('stopping after what is under way');
    expect(stdout).toMatch(/exported +\d sessions?\n(?:stopped|not tried) +\d sessions?/);
    expect(Object.values(workplace.state).some(({ pending }) => pending)).toBe(false);
    workplace.server.misbehave = () => undefined;
    const there = sessionsThere().size;
    expect(there).toBeLessThan(6);
    const path = writeSession(workplace.projects, {
      sessionId: sessionIdOf(99),
      cwd: '/home/dev/one',
      turns: 1,
      startsAt: Date.now(),
    });
    await workplace.hook({ session_id: sessionIdOf(99), transcript_path: path, hook_event_name: 'Stop' });
    expect(sessionsThere().size).toBe(there + 1);
  });
});

describe('a session that is stopped in its middle', () => {
  test('is not called done: the rest comes with the next run, and not before it is asked for', async () => {
    const path = write(1, { turns: 20 });
    const [head = ''] = readFileSync(path, 'utf8').split('\n');
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('the quick brown fox', 'x'.repeat(9_000)));
    expect(head).toContain('question 1');
    letIdle(workplace.projects);
    workplace.server.misbehave = ({ method }) => (method === 'POST' ? { delayMs: 800 } : undefined);
    const { exitCode, stdout } = await run(['backfill', '--all'], workplace.env, '', {
      onStart: (child) => void setTimeout(() => child.kill('SIGINT'), 700),
    });
    expect({ exitCode, stdout }).toMatchObject({
      exitCode: 130,
      stdout: expect.stringContaining('stopped  1 session'),
    });
    workplace.server.misbehave = () => undefined;
    expect(roots().length).toBeLessThan(20);
    expect((await backfill('--all')).exitCode).toBe(0);
    expect(roots()).toHaveLength(20);
    expect(new Set(arrivals())).toEqual(new Set([1]));
  });
});

describe('what a backfill leaves to the hooks', () => {
  const later = (n: number, turn: number) => {
    const id = sessionIdOf(n);
    const part = join(workplace.home, 'part');
    const at = { sessionId: id, cwd: '/home/dev/one', turns: 1, firstTurn: turn, startsAt: Date.now() - 7_200_000 };
    const path = join(workplace.projects, '-home-dev-one', `${id}.jsonl`);
    appendFileSync(path, readFileSync(writeSession(part, at)));
    letIdle(workplace.projects);
  };
  const otherHook = () => {
    const path = write(99, { turns: 1, startsAt: Date.now() });
    return workplace.hook({ session_id: sessionIdOf(99), transcript_path: path, hook_event_name: 'Stop' });
  };
  const turnsOf = (n: number) => roots().filter(({ trace }) => trace.sessionId === sessionIdOf(n)).length;

  test.each([
    ['that nobody has told of', undefined],
    ['of the first cc-langfuse', { last_line: 16, turn_count: 2, updated: '2026-10-01T00:00:00.000Z' }],
  ])('a session %s is not gone on with: it may run with tracing off', async (_, entry) => {
    write(1);
    if (entry) {
      mkdirSync(workplace.stateFolder, { recursive: true });
      const file = join(workplace.stateFolder, 'cc-langfuse_state.json');
      writeFileSync(file, JSON.stringify({ [sessionIdOf(1)]: entry }));
    }
    await backfill('--all');
    const there = turnsOf(1);
    later(1, 3);
    await otherHook();
    expect(turnsOf(1)).toBe(there);
    await backfill('--all');
    expect(turnsOf(1)).toBe(there + 1);
  });

  test('a session that was started with tracing on is, though it was forced in between', async () => {
    const path = write(1);
    await workplace.hook({ session_id: sessionIdOf(1), transcript_path: path, hook_event_name: 'SessionStart' });
    await backfill('--all');
    await backfill('--all', '--force');
    later(1, 3);
    await otherHook();
    expect(turnsOf(1)).toBe(3);
  });

  test('the settings that a session ran under are its own, and stay', async () => {
    const path = write(1);
    const { env } = workplace;
    workplace.env = { ...env, CC_LANGFUSE_CAPTURE: 'metadata', LANGFUSE_TAGS: 'mine' };
    await workplace.hook({ session_id: sessionIdOf(1), transcript_path: path, hook_event_name: 'Stop' });
    workplace.env = env;
    later(1, 3);
    await backfill('--all');
    expect(roots().map(({ input, trace }) => [input, trace.tags])).toEqual(
      Array(3).fill([undefined, ['mine', 'claude-code']]),
    );
    expect(workplace.state[sessionIdOf(1)]).toMatchObject({ given: { LANGFUSE_TAGS: 'mine' } });
  });
});

describe('beside hooks', () => {
  test('each observation is sent once, and the state ends right', async () => {
    const paths = Array.from({ length: 8 }, (_, n) => write(n + 1, { turns: 10 }));
    const hooks = paths.flatMap((path) =>
      [1, 2].map(() =>
        workplace.hook({ session_id: basename(path, '.jsonl'), transcript_path: path, hook_event_name: 'Stop' }),
      ),
    );
    const runs = [backfill('--all'), backfill('--all'), ...hooks];
    for (const { exitCode } of await Promise.all(runs)) expect(exitCode).toBe(0);
    expect(roots()).toHaveLength(80);
    expect(new Set(arrivals())).toEqual(new Set([1]));
    for (const entry of Object.values(workplace.state)) expect(entry).toMatchObject({ turn_count: 10, last_line: 80 });
  }, 60_000);
});

describe('which sessions', () => {
  const exported = async (...args: string[]) => {
    const { stdout, stderr } = await backfill('--json', ...args);
    expect(stdout, stderr).not.toBe('');
    const { sessions } = JSON.parse(stdout) as { sessions: { sessionId: string; outcome: string }[] };
    return sessions.map(({ sessionId }) => Number.parseInt(sessionId.slice(0, 8), 16));
  };

  beforeEach(() => {
    write(1);
    write(2, { cwd: '/home/dev/two' });
    write(3, { cwd: '/home/dev/one-and-a-half' });
    write(10);
  });

  test('all of them, the newest first; or those of a project, by the directory that they ran in', async () => {
    expect(await exported('--all')).toEqual([1, 2, 3, 10]);
    expect(await exported('--project', '/home/dev/one')).toEqual([1, 10]);
    expect(await exported('--project', '/home/dev/two/')).toEqual([2]);
    expect(await exported('--project', '/home/dev')).toEqual([]);
  });

  test('without a word, those of the directory that it is run in, through a link as well', async () => {
    const folder = join(workplace.home, 'here');
    mkdirSync(folder);
    symlinkSync(folder, join(workplace.home, 'link'));
    write(5, { cwd: folder });
    for (const cwd of [folder, join(workplace.home, 'link')]) {
      const { stdout } = await run(['backfill', '--json'], workplace.env, '', { cwd });
      expect(JSON.parse(stdout).sessions).toMatchObject([{ sessionId: sessionIdOf(5) }]);
    }
  });

  test('by their last activity, at most so many, and without some', async () => {
    expect(await exported('--all', '--since', '5d')).toEqual([1, 2, 3]);
    const day = new Date(Date.now() - 2 * DAY).toLocaleDateString('sv');
    expect(await exported('--all', '--since', day)).toEqual([1, 2]);
    expect(await exported('--all', '--until', day)).toEqual([2, 3, 10]);
    expect(await exported('--all', '--limit', '2')).toEqual([1, 2]);
    expect(await exported('--all', '--exclude', '**/-home-dev-one/**')).toEqual([2, 3]);
    expect(await exported('--all', '--exclude', '0000000a*', '--exclude', '**/*two*/*')).toEqual([1, 3]);
  });

  test('by id, and by path wherever it lies', async () => {
    expect(await exported(sessionIdOf(3))).toEqual([3]);
    const elsewhere = join(workplace.home, 'kept.jsonl');
    cpSync(write(4), elsewhere);
    expect(await exported(elsewhere)).toEqual([4]);
    expect(sessionsThere()).toEqual(new Set([sessionIdOf(3), sessionIdOf(4)]));
  });

  test('a session that lies in two folders, or has a copy, is taken once, where it goes on for longer', async () => {
    const short = write(7, { turns: 1, startsAt: Date.now() - 7 * DAY });
    write(7, { cwd: '/home/dev/worktree', turns: 3, startsAt: Date.now() - 6 * DAY });
    cpSync(short, short.replace('.jsonl', ' backup.jsonl'));
    expect(await exported('--all')).toEqual([1, 2, 3, 7, 10]);
    expect(workplace.state[sessionIdOf(7)]).toMatchObject({ turn_count: 3 });
  });
});

describe('a fork without a mark', () => {
  test('comes after the session that it was forked from, however many are under way', async () => {
    const lines = (n: number, sessionId: string) => [
      user(`q${n}`, {
        uuid: `u${n}`,
        sessionId,
        timestamp: new Date(Date.now() - 9_000_000 + n * 1_000).toISOString(),
      }),
      assistant(`m${n}`, 'a', { sessionId, timestamp: new Date(Date.now() - 8_999_500 + n * 1_000).toISOString() }),
    ];
    const [original, fork] = [sessionIdOf(1), sessionIdOf(2)];
    const folder = join(workplace.projects, '-work');
    mkdirSync(folder, { recursive: true });
    const put = (id: string, ...numbers: number[]) =>
      writeFileSync(
        join(folder, `${id}.jsonl`),
        numbers
          .flatMap((n) => lines(n, id))
          .map((line) => `${JSON.stringify(line)}\n`)
          .join(''),
      );
    put(original, 1, 2, 3);
    put(fork, 1, 2, 4);
    letIdle(workplace.projects);
    expect(await backfill('--all', '--concurrency', '8')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(roots().map(({ trace, name }) => `${trace.sessionId} ${name}`)).toEqual([
      `${original} Turn 1`,
      `${original} Turn 2`,
      `${original} Turn 3`,
      `${fork} Turn 3`,
    ]);
  });
});

describe('a session that is still being written', () => {
  test('keeps its last turn, until that is asked for, or the session is idle', async () => {
    const path = write(1);
    const now = new Date();
    utimesSync(path, now, now);
    await backfill('--all');
    expect(roots().map(({ name }) => name)).toEqual(['Turn 1']);
    await backfill('--all', '--include-open');
    expect(roots().map(({ name }) => name)).toEqual(['Turn 1', 'Turn 2']);
    expect(new Set(arrivals())).toEqual(new Set([1]));
  });
});

describe('a session with nothing of its own but a turn that may go on', () => {
  test('is skipped with that reason, also where it has turns of another; once idle it has none of its own', async () => {
    const folder = join(workplace.projects, '-work');
    mkdirSync(folder, { recursive: true });
    const branch = sessionIdOf(1);
    const copied = transcriptsOf(recording('i-branch'))
      .flatMap((path) => readFileSync(path, 'utf8').split('\n'))
      .filter((line) => line.includes('forkedFrom'))
      .map((line) => ({ ...JSON.parse(line), sessionId: branch }));
    const own = [user('mine', { uuid: 'u1', sessionId: branch }), assistant('m1', 'an answer', { sessionId: branch })];
    const put = (lines: object[]) => writeFileSync(join(folder, `${branch}.jsonl`), jsonLines(lines));
    put([...copied, ...own]);
    expect((await backfill('--all')).stdout).toContain('is still being written; --include-open takes its last turn');
    put(copied);
    letIdle(workplace.projects);
    rmSync(join(workplace.stateFolder, 'cc-langfuse_state.json'));
    expect((await backfill('--all')).stdout).toContain('has only turns that were copied from another session');
    expect(roots()).toEqual([]);
  });
});

describe('a run without sending', () => {
  test('tells what would be sent, and leaves everything as it was', async () => {
    write(1, { turns: 3 });
    write(2, { turns: 4 });
    await backfill(sessionIdOf(1));
    const before = [exports().length, JSON.stringify(workplace.state)];
    const { stdout, exitCode } = await backfill('--all', '--dry-run');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /^would be exported {2}1 session\nalready there +1 session\nto be sent: 4 turns, 12 generations, 8 tools, 36,360 tokens, [\d.]+ KB\n$/,
    );
    expect([exports().length, JSON.stringify(workplace.state)]).toEqual(before);
  });

  test('needs no keys and no state folder', async () => {
    write(1);
    const { stdout, exitCode } = await run(['backfill', '--all', '--dry-run'], { HOME: workplace.home });
    expect({ exitCode, stdout }).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('2 turns') });
    expect(readdirSync(join(workplace.home, '.claude'))).toEqual(['projects']);
  });
});

describe('a server that is not well', () => {
  test('and asks to wait is waited for, by all requests', async () => {
    for (let n = 1; n <= 4; n += 1) write(n);
    let refused = 0;
    workplace.server.misbehave = ({ method }) => {
      if (method === 'GET' || refused === 4) return undefined;
      refused += 1;
      return { status: 429, headers: { 'retry-after': '1' } };
    };
    const { exitCode, ms } = await backfill('--all');
    expect(exitCode).toBe(0);
    expect(ms).toBeGreaterThan(1_000);
    expect(roots()).toHaveLength(8);
    expect(new Set(arrivals())).toEqual(new Set([1]));
  });

  test('and files that fail for themselves do not stop the others', async () => {
    for (let n = 1; n <= 12; n += 1) write(n);
    for (let n = 6; n <= 12; n += 1) rmSync(write(n));
    for (let n = 6; n <= 12; n += 1) mkdirSync(join(workplace.projects, '-home-dev-one', `${sessionIdOf(n)}.jsonl`));
    workplace.server.misbehave = (_, __, spans) =>
      JSON.stringify(spans).includes(sessionIdOf(4)) || JSON.stringify(spans).includes(sessionIdOf(5))
        ? { status: 413 }
        : undefined;
    const { exitCode, stdout } = await backfill('--all', '--concurrency', '1');
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^exported {2}3 sessions\nfailed {4}2 sessions\n/);
  });

  test('is not asked for each of many sessions: the rest is left, and told, and comes with the next run', async () => {
    for (let n = 1; n <= 9; n += 1) write(n);
    workplace.server.misbehave = ({ method }) => (method === 'GET' ? undefined : { status: 418 });
    const { exitCode, stdout } = await backfill('--all', '--concurrency', '1');
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^failed {5}[345] sessions\nnot tried {2}[456] sessions\n/);
    expect(stdout).toContain(`✗ ${sessionIdOf(9)} the server answers 418\n`);
    expect(stdout).toContain('To go on: the same command again.');
    workplace.server.misbehave = () => undefined;
    expect((await backfill('--all')).exitCode).toBe(0);
    expect(sessionsThere().size).toBe(9);
  });

  test('or refuses the keys is told before anything is read', async () => {
    write(1);
    workplace.env = { ...workplace.env, LANGFUSE_SECRET_KEY: 'sk-lf-secret-of-mine' };
    const { exitCode, stdout, stderr } = await backfill('--all');
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toBe(`cc-langfuse: Langfuse refused the keys (401) at 127.0.0.1:${workplace.server.port}\n`);
    expect(exports()).toEqual([]);
  });

  test('one that is not there, too', async () => {
    write(1);
    workplace.env = { ...workplace.env, LANGFUSE_BASE_URL: 'http://127.0.0.1:1' };
    expect(await backfill('--all')).toMatchObject({
      exitCode: 1,
      stderr: 'cc-langfuse: 127.0.0.1:1 cannot be reached: ECONNREFUSED\n',
    });
  });
});

describe('what cannot be asked so is told in one line, with exit code 2, and nothing is sent', () => {
  test.each([
    [['--frob'], /^cc-langfuse: Unknown option '--frob'; --help lists the options\n$/],
    [['--limit', '0'], /--limit 0: expected a whole number above 0/],
    [['--concurrency', 'many'], /--concurrency many: expected a whole number/],
    [['--concurrency', '500'], /--concurrency 500: at most 64/],
    [['--since', 'yesterday'], /--since yesterday: expected 30m, 12h, 7d, 2w or 2026-11-01/],
    [['--since', '2026-02-30'], /--since 2026-02-30: expected/],
    [['--since', '1d', '--until', '7d'], /nothing lies between/],
    [['--all', '--project', '/x'], /--all and --project: either/],
    [['--all', sessionIdOf(1)], /either name sessions, or select them/],
    [['--json', '--quiet'], /--json and --quiet: either/],
    [
      ['12345678-0000-4000-8000-00000000000f'],
      /no session 12345678-\S+ in \S+projects; cc-langfuse sessions lists them/,
    ],
    [['/nowhere/x.jsonl'], /\/nowhere\/x\.jsonl: no such file/],
    [['/etc/passwd'], /\/etc\/passwd: not a Claude Code transcript/],
    [['/tmp/'], /\/tmp\/: expected a transcript/],
    [['/x/agent-1.jsonl'], /agent-1\.jsonl: belongs to a subagent; name its session/],
    [['--since', '2026-13-01'], /--since 2026-13-01: expected/],
    [['--until', '2026-02-30T00:00:00Z'], /--until 2026-02-30T00:00:00Z: expected/],
  ] as const)('%j', async (args, told) => {
    write(1);
    const { exitCode, stdout, stderr } = await backfill(...args);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toMatch(told);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(workplace.server.requests).toEqual([]);
  });

  test('no keys', async () => {
    const { exitCode, stderr } = await run(['backfill', '--all'], { HOME: workplace.home });
    expect(exitCode).toBe(2);
    expect(stderr).toContain('LANGFUSE_PUBLIC_KEY is not set\n');
    expect(stderr).toContain('cc-langfuse: nothing can be sent so: set keys, or CC_LANGFUSE_OTLP_URL, in the shell');
  });

  test('a projects folder that is none', async () => {
    mkdirSync(join(workplace.home, '.claude'));
    writeFileSync(workplace.projects, '');
    expect(await backfill('--all')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('ENOTDIR') });
  });
});

test('keys may stand in the env block of the user settings; the shell wins', async () => {
  write(1);
  const { LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL, HOME } = workplace.env;
  const env = { LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL: 'http://127.0.0.1:1' };
  writeFileSync(join(workplace.home, '.claude', 'settings.json'), JSON.stringify({ env }));
  expect(await run(['backfill', '--all'], { HOME })).toMatchObject({ exitCode: 1 });
  expect(await run(['backfill', '--all'], { HOME, LANGFUSE_BASE_URL })).toMatchObject({ exitCode: 0 });
  expect(roots()).toHaveLength(2);
});

describe('much of it', () => {
  test('1,500 sessions', async () => {
    for (let n = 1; n <= 1_500; n += 1) write(n, { turns: 1, startsAt: Date.now() - n * 3_600_000 });
    const { exitCode, stdout } = await backfill('--all');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^exported {2}1,500 sessions\nsent: 1,500 turns, 4,500 generations, 3,000 tools,/);
    expect(Object.keys(workplace.state)).toHaveLength(1_500);
    expect(new Set(arrivals())).toEqual(new Set([1]));
    expect((await backfill('--all')).stdout).toMatch(/^already there {2}1,500 sessions\n/);
  }, 120_000);

  test('a session of 500 MB, within a heap of 64', async () => {
    const session = { sessionId: sessionIdOf(1), cwd: '/home/dev/big', turns: 1_500, startsAt: Date.now() - DAY };
    const path = writeSession(workplace.projects, { ...session, resultChars: 20_000, requestChars: 145_000 });
    expect(statSync(path).size).toBeGreaterThan(490_000_000);
    workplace.env = { ...workplace.env, NODE_OPTIONS: '--max-old-space-size=64' };
    const { exitCode, stderr, stdout } = await backfill('--all');
    expect({ exitCode, stderr: stderr.replaceAll(/^.*MB\/s.*\n/gm, '') }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toContain('sent: 1,500 turns, 4,500 generations, 3,000 tools');
  }, 120_000);
});
