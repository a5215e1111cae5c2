import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type GeneratedSession, sessionIdOf, writeNthSession } from '../support/generated.js';
import { run, Workplace } from '../support/program.js';

const DAY = 86_400_000;

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const write = (n: number, more: Partial<GeneratedSession> = {}) => writeNthSession(workplace.projects, n, more);
const exportedSessions = () => new Set(workplace.server.roots.map(({ trace }) => trace.sessionId));
const exportRequests = () => workplace.server.requests.filter(({ path }) => path.includes('otel'));

describe('the selection of sessions', () => {
  const exported = async (...args: string[]) => {
    const { stdout, stderr } = await workplace.backfill('--json', ...args);
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

  test('--all selects all sessions, newest first; --project selects those that ran in a directory', async () => {
    expect(await exported('--all')).toEqual([1, 2, 3, 10]);
    expect(await exported('--project', '/home/dev/one')).toEqual([1, 10]);
    expect(await exported('--project', '/home/dev/two/')).toEqual([2]);
    expect(await exported('--project', '/home/dev')).toEqual([]);
  });

  test('without options, the sessions of the current directory are selected, also through a symlink', async () => {
    const folder = join(workplace.home, 'here');
    mkdirSync(folder);
    symlinkSync(folder, join(workplace.home, 'link'));
    write(5, { cwd: folder });
    for (const cwd of [folder, join(workplace.home, 'link')]) {
      const { stdout } = await run(['backfill', '--yes', '--json'], workplace.env, '', { cwd });
      expect(JSON.parse(stdout).sessions).toMatchObject([{ sessionId: sessionIdOf(5) }]);
    }
  });

  test('--since, --until, --limit and --exclude narrow the selection', async () => {
    expect(await exported('--all', '--since', '5d')).toEqual([1, 2, 3]);
    const day = new Date(Date.now() - 2 * DAY).toLocaleDateString('sv');
    expect(await exported('--all', '--since', day)).toEqual([1, 2]);
    expect(await exported('--all', '--until', day)).toEqual([2, 3, 10]);
    expect(await exported('--all', '--limit', '2')).toEqual([1, 2]);
    expect(await exported('--all', '--exclude', '**/-home-dev-one/**')).toEqual([2, 3]);
    expect(await exported('--all', '--exclude', '0000000a*', '--exclude', '**/*two*/*')).toEqual([1, 3]);
  });

  test('sessions can be named by id, and by path wherever the file is', async () => {
    expect(await exported(sessionIdOf(3))).toEqual([3]);
    const elsewhere = join(workplace.home, 'kept.jsonl');
    cpSync(write(4), elsewhere);
    expect(await exported(elsewhere)).toEqual([4]);
    expect(exportedSessions()).toEqual(new Set([sessionIdOf(3), sessionIdOf(4)]));
  });

  test('a session that is in two folders, or has a copy, is exported once, from its longest transcript', async () => {
    const short = write(7, { turns: 1, startsAt: Date.now() - 7 * DAY });
    write(7, { cwd: '/home/dev/worktree', turns: 3, startsAt: Date.now() - 6 * DAY });
    cpSync(short, short.replace('.jsonl', ' backup.jsonl'));
    expect(await exported('--all')).toEqual([1, 2, 3, 7, 10]);
    expect(workplace.state[sessionIdOf(7)]).toMatchObject({ turnCount: 3 });
  });
});

describe('--dry-run', () => {
  test('reports what would be sent, and changes nothing', async () => {
    write(1, { turns: 3 });
    write(2, { turns: 4 });
    await workplace.backfill(sessionIdOf(1));
    const before = [exportRequests().length, JSON.stringify(workplace.state)];
    const { stdout, exitCode } = await workplace.backfill('--all', '--dry-run');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /^would be exported {2}1 session\nalready there +1 session\nto be sent: 4 turns, 12 generations, 8 tools, 36,360 tokens, [\d.]+ KB\n$/,
    );
    expect([exportRequests().length, JSON.stringify(workplace.state)]).toEqual(before);
  });

  test('needs no keys and no state folder', async () => {
    write(1);
    const { stdout, exitCode } = await run(['backfill', '--yes', '--all', '--dry-run'], { HOME: workplace.home });
    expect({ exitCode, stdout }).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('2 turns') });
    expect(readdirSync(join(workplace.home, '.claude'))).toEqual(['projects']);
  });
});

describe('a usage error is reported in one line with exit code 2, and nothing is sent', () => {
  test.each([
    [['--frob'], /^cc-langfuse: Unknown option '--frob'; --help lists the options\n$/],
    [['--limit', '0'], /--limit 0: expected a whole number above 0/],
    [['--concurrency', 'many'], /--concurrency many: expected a whole number/],
    [['--concurrency', '500'], /--concurrency 500: at most 64/],
    [['--since', 'yesterday'], /--since yesterday: expected 30m, 12h, 7d, 2w or 2026-11-01/],
    [['--since', '2026-02-30'], /--since 2026-02-30: expected/],
    [['--since', '1d', '--until', '7d'], /--since is after --until/],
    [['--all', '--project', '/x'], /--all and --project: choose one/],
    [['--all', sessionIdOf(1)], /name sessions or select them, not both/],
    [['--json', '--quiet'], /--json and --quiet: choose one/],
    [
      ['12345678-0000-4000-8000-00000000000f'],
      /no session 12345678-\S+ in \S+projects; cc-langfuse sessions lists them/,
    ],
    [['/nowhere/x.jsonl'], /\/nowhere\/x\.jsonl: no such file/],
    [['/etc/passwd'], /\/etc\/passwd: not a Claude Code transcript/],
    [['/tmp/'], /\/tmp\/: not a Claude Code transcript/],
    [['/x/agent-1.jsonl'], /agent-1\.jsonl: belongs to a subagent; name its session/],
    [['--since', '2026-13-01'], /--since 2026-13-01: expected/],
    [['--until', '2026-02-30T00:00:00Z'], /--until 2026-02-30T00:00:00Z: expected/],
  ] as const)('for %j', async (args, message) => {
    write(1);
    const { exitCode, stdout, stderr } = await workplace.backfill(...args);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(workplace.server.requests).toEqual([]);
  });

  test('if there are no keys', async () => {
    const { exitCode, stderr } = await run(['backfill', '--yes', '--all'], { HOME: workplace.home });
    expect(exitCode).toBe(2);
    expect(stderr).toBe(
      'cc-langfuse: there is nowhere to send to: run cc-langfuse install, or set keys, or CC_LANGFUSE_OTLP_URL, in the shell or in your settings\n',
    );
  });

  test('if there is no terminal to ask in, and no --yes', async () => {
    write(1);
    for (const args of [['--all'], ['--all', '--json'], ['--all', '--quiet'], [sessionIdOf(1)]]) {
      expect(await run(['backfill', ...args], workplace.env)).toMatchObject({
        exitCode: 2,
        stdout: '',
        stderr: 'cc-langfuse: there is no terminal to ask in: use --yes; --dry-run shows what would be sent\n',
      });
    }
    expect(workplace.server.requests).toEqual([]);
  });

  test('if a file is in the place of the projects folder', async () => {
    mkdirSync(join(workplace.home, '.claude'));
    writeFileSync(workplace.projects, '');
    expect(await workplace.backfill('--all')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('ENOTDIR'),
    });
  });
});
