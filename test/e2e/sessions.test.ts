import { appendFileSync, cpSync, mkdirSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sessionIdOf, writeSession } from '../support/generated.js';
import { assistant, jsonLines, toolResult, toolUse, user } from '../support/lines.js';
import { run, Workplace } from '../support/program.js';
import { recording } from '../support/recording.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const STARTS = Date.UTC(2026, 9, 1, 12);
const sessions = (...args: string[]) => run(['sessions', ...args], { ...workplace.env, TZ: 'UTC' });
const listed = async (...args: string[]) => JSON.parse((await sessions('--json', ...args)).stdout);

function write(n: number, turns = 2): string {
  return writeSession(workplace.projects, {
    sessionId: sessionIdOf(n),
    cwd: `/home/dev/p${n}`,
    turns,
    startsAt: STARTS - n * 3_600_000,
  });
}

function writeLines(n: number, lines: readonly object[]): string {
  const folder = join(workplace.projects, '-work');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${sessionIdOf(n)}.jsonl`);
  writeFileSync(path, jsonLines(lines));
  return path;
}

describe('sessions', () => {
  test('lists title, id, folder, times and size of each session, newest first', async () => {
    write(2, 3);
    write(1);
    expect((await sessions()).stdout).toBe(
      [
        'question 1',
        `  ${sessionIdOf(1)}  /home/dev/p1`,
        '  2026-10-01 11:00 – 11:00 (8 s) · not exported, deleted after 2026-10-31 11:00 · ≈ $0.0123, list price · 9.9 KB · claude-opus-5',
        'question 1',
        `  ${sessionIdOf(2)}  /home/dev/p2`,
        '  2026-10-01 10:00 – 10:00 (12 s) · not exported, deleted after 2026-10-31 10:00 · ≈ $0.0185, list price · 14.8 KB · claude-opus-5',
        '',
      ].join('\n'),
    );
  });

  test('--json prints an array, and nothing else', async () => {
    const path = write(1);
    expect(await listed('--count')).toEqual([
      {
        sessionId: sessionIdOf(1),
        title: 'question 1',
        project: '/home/dev/p1',
        startedAt: '2026-10-01T11:00:00.700Z',
        lastActivityAt: '2026-10-01T11:00:08.400Z',
        durationMs: 7_700,
        turns: 2,
        bytes: expect.any(Number),
        model: 'claude-opus-5',
        cost: { dollars: 0, listPriceDollars: expect.closeTo(0.0123, 10), tokensWithoutPrice: 0 },
        state: 'not',
        deletedAfter: '2026-10-31T11:00:08.400Z',
        path,
      },
    ]);
  });

  test('says what each session cost; of a fork, what it used itself', async () => {
    cpSync(join(recording('p-resume').folder, 'projects'), workplace.projects, { recursive: true });
    const costs = (await listed()).map(({ cost }: { cost: { dollars: number } }) => cost.dollars.toFixed(8));
    expect(costs.toSorted()).toEqual(['0.00521840', '0.01586949']);
    expect((await sessions()).stdout.match(/\$[\d.]+/g)?.toSorted()).toEqual(['$0.0052', '$0.0159']);
  });

  test('says that there are no sessions on disk', async () => {
    expect(await sessions()).toMatchObject({ exitCode: 0, stdout: '', stderr: 'there are no sessions on disk\n' });
    expect(await listed()).toEqual([]);
  });

  test('says how much of each session is in Langfuse', async () => {
    for (const n of [1, 2, 3, 4]) write(n);
    await run(['backfill', '--yes', sessionIdOf(1)], workplace.env);
    await run(['backfill', '--yes', sessionIdOf(2)], workplace.env);
    const line = (content: object) => `${JSON.stringify(content)}\n`;
    appendFileSync(write(1), line({ type: 'cost-state', sessionId: sessionIdOf(1) }));
    appendFileSync(write(2), line(assistant('m9', 'more', { timestamp: '2026-10-01T13:00:00.000Z' })));
    workplace.server.misbehave = ({ method }) => (method === 'GET' ? undefined : { status: 418 });
    await run(['backfill', '--yes', sessionIdOf(3)], workplace.env);
    const states = (await listed()).map(({ sessionId, state, turns }: { [field: string]: string }) => [
      sessionId,
      state,
      turns,
    ]);
    expect(Object.fromEntries(states.map(([id, ...rest]: string[]) => [id, rest]))).toEqual({
      [sessionIdOf(1)]: ['exported', 2],
      [sessionIdOf(2)]: ['partly', 2],
      [sessionIdOf(3)]: ['pending', 0],
      [sessionIdOf(4)]: ['not', undefined],
    });
  });

  test('says that a session is exported even after a backfill that found nothing new in it', async () => {
    const path = write(1);
    const payload = { session_id: sessionIdOf(1), transcript_path: path };
    await workplace.hook({ ...payload, hook_event_name: 'Stop' });
    const states = async () => (await listed()).map(({ state }: { state: string }) => state);
    expect(await states()).toEqual(['exported']);
    const now = new Date();
    utimesSync(path, now, now);
    await run(['backfill', '--yes', '--all'], workplace.env);
    expect(await states()).toEqual(['exported']);
  });

  test('says who excludes a session, and why one is pending', async () => {
    write(1);
    workplace.env = { ...workplace.env, CC_LANGFUSE_EXCLUDE: '/home/dev/*' };
    const [excluded] = await listed();
    expect(excluded).toMatchObject({
      state: 'excluded',
      reason: 'CC_LANGFUSE_EXCLUDE in the shell excludes /home/dev/*',
    });
    workplace.env = { ...workplace.env, CC_LANGFUSE_EXCLUDE: undefined };
    workplace.server.misbehave = ({ method }) => (method === 'GET' ? undefined : { status: 418 });
    await run(['backfill', '--yes', '--all'], workplace.env);
    expect((await listed())[0]).toMatchObject({ state: 'pending', reason: 'the server answers 418' });
    expect((await sessions()).stdout).toContain('pending (the server answers 418)');
  });

  test('lists the others, too, if a line of one has no end', async () => {
    for (const n of [1, 2]) write(n);
    await run(['backfill', '--yes', sessionIdOf(1)], workplace.env);
    truncateSync(write(1), 300_000_000);
    const states = async (...args: string[]) =>
      (await listed(...args)).map((each: { [field: string]: unknown }) => [each.sessionId, each.state, each.turns]);
    expect(await states()).toEqual([
      [sessionIdOf(1), 'exported', 2],
      [sessionIdOf(2), 'not', undefined],
    ]);
    expect(await states('--count')).toEqual([
      [sessionIdOf(1), 'exported', 2],
      [sessionIdOf(2), 'not', 2],
    ]);
    const { stdout, stderr } = await sessions('--search', 'npm test');
    expect(stdout).toContain(sessionIdOf(2));
    expect(stdout).toContain(sessionIdOf(1));
    expect(stderr).toBe('');
  });

  test.each([
    [
      'the title that the user gave',
      [
        { type: 'ai-title', aiTitle: 'by the program' },
        { type: 'custom-title', customTitle: 'mine' },
      ],
      'mine',
    ],
    [
      'the last of its titles',
      [
        { type: 'ai-title', aiTitle: 'one' },
        { type: 'ai-title', aiTitle: 'two' },
      ],
      'two',
    ],
    [
      'a command as it was typed',
      [user('<command-name>/fix</command-name><command-args>it</command-args>', { origin: { kind: 'human' } })],
      '/fix it',
    ],
  ])('shows as the title %s', async (_, lines, title) => {
    writeLines(1, [...lines, user('a prompt', { sessionId: sessionIdOf(1) }), assistant('m', 'a')]);
    expect(await listed()).toMatchObject([{ title }]);
  });

  test('removes control sequences from titles and folders', async () => {
    writeLines(1, [
      user(`\u001b[31mred\u001b[0m\u0007 and 漢字\n${'long '.repeat(50)}`, { cwd: '/\u001b[2Jx' }),
      assistant('m', 'a'),
    ]);
    const [first = '', second = ''] = (await sessions()).stdout.split('\n');
    expect(first).toMatch(/^red and 漢字 (?:long ){49}long$/);
    expect(second).toBe(`  ${sessionIdOf(1)}  /x`);
  });

  test('--json escapes what would control a terminal or reverse its text', async () => {
    const title = 'a\u009b2J \u202edesrever\u202c';
    writeLines(1, [user(title), assistant('m', [toolUse('t', 'Bash', { command: title })]), user([toolResult('t')])]);
    for (const args of [['--json'], ['--json', '--search', 'desrever']]) {
      const { stdout } = await sessions(...args);
      expect(stdout).not.toMatch(/[^\P{Cc}\n]|[\u202a-\u202e]/u);
      expect(JSON.stringify(JSON.parse(stdout))).toContain(title);
    }
  });

  test('copes with empty files, other files, agent files and long lines', async () => {
    writeLines(1, [
      user('x'.repeat(200_000), { cwd: '/big' }),
      assistant('m', 'y'.repeat(200_000), { sessionId: 's' }),
    ]);
    writeLines(2, []);
    writeFileSync(join(workplace.projects, '-work', 'notes.jsonl'), 'no JSON at all\n');
    writeFileSync(join(workplace.projects, '-work', 'agent-1.jsonl'), `${JSON.stringify(user('x'))}\n`);
    mkdirSync(join(workplace.projects, '-work', 'folder.jsonl'));
    write(3);
    expect((await listed()).map(({ sessionId }: { sessionId: string }) => sessionId)).toContain(sessionIdOf(3));
    expect((await sessions()).exitCode).toBe(0);
  });

  test('ends without an error if its reader stops early', async () => {
    for (let n = 1; n <= 2_000; n += 1) writeLines(n, [user('q', { sessionId: sessionIdOf(n) }), assistant('m', 'a')]);
    const { exitCode, stderr } = await run(['sessions', '--limit', 'all'], workplace.env, '', {
      onStart: (child) => child.stdout?.once('data', () => child.stdout?.destroy()),
    });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  });
});

describe('sessions lists', () => {
  const ids = async (...args: string[]) =>
    (await listed(...args)).map(({ sessionId }: { sessionId: string }) => sessionId);
  const newest = (count: number) => Array.from({ length: count }, (_, index) => sessionIdOf(index + 1));

  test('the newest 20, and says how many more there are', async () => {
    for (let n = 1; n <= 23; n += 1) write(n, 1);
    expect(await ids()).toEqual(newest(20));
    const { stdout, stderr } = await sessions();
    expect(stdout.match(/not exported/g)).toHaveLength(20);
    expect(stderr).toContain('and 3 more; --limit all lists them, too\n23 sessions are not wholly in Langfuse; ');
    expect(await ids('--limit', 'all')).toEqual(newest(23));
    expect(await ids('--limit', '2')).toEqual(newest(2));
    expect((await sessions('--limit', '2')).stderr).not.toContain('more');
    // A search that left out old sessions would be useless.
    expect(await ids('--search', 'answer 1')).toEqual(newest(23));
    expect(await ids('--search', 'answer 1', '--limit', '2')).toEqual(newest(2));
  });

  test('those that were active since a moment', async () => {
    for (const n of [1, 2, 3]) write(n);
    expect(await ids('--since', '2026-10-01T09:30:00Z')).toEqual(newest(2));
    expect(await sessions('--since', '2026-10-02')).toMatchObject({
      stdout: '',
      stderr: 'no session on disk matches\n',
    });
  });

  test('those of a directory, and of the rest of its repository, with --here', async () => {
    const repository = join(workplace.home, 'shop');
    const worktree = join(workplace.home, 'shop-fix');
    mkdirSync(join(repository, '.git', 'worktrees', 'fix'), { recursive: true });
    writeFileSync(join(repository, '.git', 'worktrees', 'fix', 'commondir'), '../..\n');
    mkdirSync(join(repository, 'src'));
    mkdirSync(worktree);
    writeFileSync(join(worktree, '.git'), `gitdir: ${join(repository, '.git', 'worktrees', 'fix')}\n`);
    const folders = [join(repository, 'src'), join(repository, 'removed'), worktree, repository, workplace.home];
    for (const [index, cwd] of folders.entries())
      writeSession(workplace.projects, { sessionId: sessionIdOf(index + 1), cwd, turns: 1, startsAt: STARTS - index });
    const here = async (cwd: string) => {
      const { stdout } = await run(['sessions', '--here', '--json'], workplace.env, '', { cwd });
      return JSON.parse(stdout).map(({ sessionId }: { sessionId: string }) => sessionId);
    };
    for (const folder of [repository, join(repository, 'src'), worktree]) expect(await here(folder)).toEqual(newest(4));
    expect(await here(workplace.home)).toEqual([sessionIdOf(5)]);
  });
});

describe('sessions --search', () => {
  const secret = `ghp_${'aB3dE6gH9jK2mN5pQ8sT'.repeat(2).slice(0, 36)}`;

  beforeEach(() => {
    writeLines(1, [
      user('q', { sessionId: sessionIdOf(1), timestamp: '2026-10-01T12:00:00.000Z' }),
      assistant('m1', [toolUse('t1', 'Bash', { command: 'grep -r Needle .\nls' })], {
        timestamp: '2026-10-01T12:00:01.000Z',
      }),
      user([toolResult('t1', `first line\nfound a needle with ${secret}\nlast`)], {
        timestamp: '2026-10-01T12:00:02.000Z',
      }),
      assistant('m2', [toolUse('t2', 'Read', { file_path: '/tmp/a' })], { timestamp: '2026-10-01T12:00:03.000Z' }),
      user([toolResult('t2', `a NEEDLE beside ${secret}`)], { timestamp: '2026-10-01T12:00:04.000Z' }),
      assistant('m3', `the answer\nhas a needle and ${secret}`, { timestamp: '2026-10-01T12:00:05.000Z' }),
      user('And in a haystack?', { timestamp: '2026-10-01T12:01:00.000Z' }),
      assistant('m4', 'No.', { timestamp: '2026-10-01T12:01:01.000Z' }),
    ]);
  });

  test('finds tool calls by input or output, and prompts and answers, and shows the line', async () => {
    expect((await sessions('--search', 'needle')).stdout).toBe(
      [
        `${sessionIdOf(1)}  2026-10-01 12:00  Bash`,
        '  grep -r Needle .',
        `${sessionIdOf(1)}  2026-10-01 12:00  Read`,
        '  a NEEDLE beside [redacted]',
        `${sessionIdOf(1)}  2026-10-01 12:00  answer`,
        '  has a needle and [redacted]',
        '',
      ].join('\n'),
    );
    expect(await listed('--search', 'haystack')).toEqual([
      { sessionId: sessionIdOf(1), at: '2026-10-01T12:01:00.000Z', kind: 'prompt', line: 'And in a haystack?' },
    ]);
    expect(await listed('--search', 'a needle WITH')).toEqual([
      {
        sessionId: sessionIdOf(1),
        at: '2026-10-01T12:00:01.000Z',
        kind: 'tool',
        tool: 'Bash',
        line: 'found a needle with [redacted]',
      },
    ]);
    expect(await listed('--search', 'no such text')).toEqual([]);
    expect(await sessions('--search', 'no such text')).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: 'nothing contains that text\n',
    });
  });

  test('for a secret finds its calls without printing it', async () => {
    const { stdout } = await sessions('--search', secret);
    expect(stdout.split('\n')).toHaveLength(7);
    expect(stdout).not.toContain(secret);
  });

  test('redacts values that only their names mark as secret', async () => {
    writeLines(2, [
      user('q', { sessionId: sessionIdOf(2) }),
      assistant('m1', [
        toolUse('t1', 'Http', { password: 'hunter2', headers: { Authorization: 'Basic hunter2' }, port: 8080 }),
      ]),
    ]);
    const { stdout } = await sessions('--search', 'hunter2');
    expect(stdout).toContain('[redacted]');
    expect(stdout).not.toContain('hunter2');
    expect(await listed('--search', '8080')).toMatchObject([{ tool: 'Http', line: '8080' }]);
  });

  test('includes the tool calls of subagents', async () => {
    cpSync(join(recording('p-agentfg').folder, 'projects'), workplace.projects, { recursive: true });
    expect(await listed('--search', 'echo from-sub')).toMatchObject([{ tool: 'Bash', line: 'echo from-sub' }]);
    cpSync(join(recording('v2.0.76-oldtask').folder, 'projects'), workplace.projects, { recursive: true });
    expect(await listed('--search', 'echo from-sub')).toHaveLength(2);
  });
});

describe('sessions refuses', () => {
  test.each([
    [['--frob'], "Unknown option '--frob'; --help lists the options"],
    [['--serach', 'x'], "Unknown option '--serach'; did you mean --search?"],
    [['--limit', '0'], '--limit 0: expected a whole number above 0'],
    [['--since', 'monday'], '--since monday: expected 30m, 12h, 7d, 2w or 2026-11-01'],
    [['--search', ''], '--search: expected a text'],
    [['--search', 'x', '--count'], '--search and --count: choose one of them'],
    [['x'], 'x: sessions takes no operands; --search finds text'],
  ])('%j in one line with exit code 2', async (args, message) => {
    expect(await sessions(...args)).toMatchObject({ exitCode: 2, stdout: '', stderr: `cc-langfuse: ${message}\n` });
  });
});
