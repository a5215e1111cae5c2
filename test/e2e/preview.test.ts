import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { encodeSpan } from '../../src/langfuse/otlp/span.js';
import type { Observation } from '../../src/observations/model.js';
import { sessionIdOf, writeSession } from '../support/generated.js';
import { stored } from '../support/langfuse-server.js';
import { assistant, at, jsonLines, toolResult, toolUse, user } from '../support/lines.js';
import { POLL, run, Workplace } from '../support/program.js';
import { recording, recordings, transcriptsOf } from '../support/recording.js';
import { runInTerminal } from '../support/terminal.js';
import { describeTraces } from '../support/traces.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const preview = (...args: string[]) => run(['preview', ...args], { HOME: workplace.home }, '', { cwd: workplace.home });
const observations = async (...args: string[]) => JSON.parse((await preview('--json', ...args)).stdout);

function write(n: number, turns = 2): string {
  return writeSession(workplace.projects, {
    sessionId: sessionIdOf(n),
    cwd: workplace.home,
    turns,
    startsAt: Date.UTC(2026, 9, 1, 12 - n),
  });
}

function writeTranscript(...lines: object[]): string {
  const path = join(workplace.projects, '-work', `${sessionIdOf(9)}.jsonl`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, jsonLines(lines));
  return path;
}

/** A turn with a tool that receives a secret, and fails. */
function writeFailingTurn(): string {
  return writeTranscript(
    user('fix it', { uuid: 'u1', timestamp: at(0), cwd: '/work' }),
    {
      type: 'assistant',
      message: {
        id: 'm1',
        role: 'assistant',
        model: 'claude-opus-5',
        content: [toolUse('t1', 'Bash', { command: 'curl -H "Authorization: Bearer sk-ant-api03-abcdefgh"' })],
        usage: { input_tokens: 10, output_tokens: 1_990, cache_read_input_tokens: 20_000 },
      },
      timestamp: at(2),
    },
    user([toolResult('t1', 'Exit code 7\nno route', { is_error: true })], { timestamp: at(6) }),
    assistant('m2', 'It cannot be reached.', { timestamp: at(10) }),
  );
}

describe('preview', () => {
  test('draws names, bars to scale, durations, tokens and errors in 80 columns', async () => {
    const { stdout } = await preview(writeFailingTurn());
    expect(stdout.split('\n')).toEqual([
      'Session 00000009-0000-4000-8000-000000000000',
      '/work · 1 turn · 22,000 tokens',
      '',
      'Turn 1                                         ━━━━━━━━━━━━━━━━  10.0 s   22,000',
      '│  user       fix it',
      '│  assistant  It cannot be reached.',
      '│  tokens     10 in · 20,000 cached · 1,990 out',
      '│  work       6.0 s model, 4.0 s tools',
      '├─ claude-opus-5                               ━━━                2.0 s   22,000',
      '│  └─ ✗ tool Bash curl -H "Authorization: Bea…    ━━━━━━          4.0 s',
      '│        Exit code 7',
      '└─ claude-opus-5 It cannot be reached.                  ━━━━━━    4.0 s',
      '',
    ]);
  });

  test('shows where the time of a turn went and what came of its calls', async () => {
    const [path = ''] = transcriptsOf(recording('q-bashedit'));
    const { stdout } = await preview('--turn', '2', path);
    expect(stdout.match(/^(?:│ +work .*|.* tool Bash \S+ \S+)/gm)).toEqual([
      '│  work       +3 −1; 246 ms model, 126 ms tools, 81 ms other',
      '│  ├─ tool Bash (+1 −0)',
      '│  └─ tool Bash (+2 −1)',
    ]);
  });

  test('shows errors in red in a terminal, unless NO_COLOR is set', async () => {
    const path = writeFailingTurn();
    const inTerminal = (env: { NO_COLOR?: string }) =>
      runInTerminal(['preview', path], { env: { HOME: workplace.home, ...env }, home: workplace.home });
    const { screen } = await inTerminal({});
    expect(screen).toContain('\u001b[31m✗ tool Bash');
    expect(screen).toContain('\u001b[31mExit code 7');
    const plain = await inTerminal({ NO_COLOR: '1' });
    expect(plain.screen).toBe(stripVTControlCharacters(screen));
    expect(Math.max(...plain.screen.split('\r\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  test('shows what a session cost, and each turn if the account says so', async () => {
    const lines = async (...args: string[]) => {
      const [path = ''] = transcriptsOf(recording('q-continue'));
      const { stdout } = await preview(...args, path);
      return stdout.match(/^(?:Turn \d|\/home.*|│ +cost .*)/gm);
    };
    expect(await lines()).toEqual([
      '/home/dev/q-continue · 3 turns · 48,924 tokens · $0.0181',
      'Turn 1',
      '│  cost       $0.0041',
      'Turn 2',
      '│  cost       $0.0095',
      'Turn 3',
      '│  cost       $0.0045',
    ]);
    expect(await lines('--turn', '2')).toEqual([
      '/home/dev/q-continue · 1 turn · 24,482 tokens',
      'Turn 2',
      '│  cost       $0.0095',
    ]);
  });

  test('splits no cost among turns that are in one step of the account, or ran at the same time', async () => {
    const costs = async (name: string) => {
      const [path = ''] = transcriptsOf(recording(name));
      return (await preview(path)).stdout.match(/\$[\d.]+/g);
    };
    expect(await costs('i-agentbg2')).toEqual(['$0.0742']);
    expect(await costs('q-twop')).toEqual(['$0.0361', '$0.0042', '$0.0043']);
  });

  test('shows subagents below their calls', async () => {
    const [path = ''] = transcriptsOf(recording('p-agentfg'));
    const { stdout } = await preview(path);
    expect(stdout).toContain('│  └─ tool Agent [general-purpose] Fg work');
    expect(stdout).toContain('│     └─ agent general-purpose: Fg work ');
    expect(stdout).toContain('│        │  └─ tool Bash echo from-sub # echo');
  });

  test('removes control sequences of a transcript', async () => {
    const path = writeTranscript(
      user('\u001b[2J\u001b]0;title\u0007 漢字 and\nmore', { timestamp: at(0) }),
      assistant('m1', [toolUse('t', '\u001b[31mTool\u001b[0m')], { timestamp: at(1) }),
    );
    const { stdout } = await preview(path);
    expect(stdout).toContain('user       漢字 and more');
    expect(stdout).toContain('tool Tool');
    expect(stdout).not.toContain('\u001b');
  });

  test('--json escapes what would control a terminal or reverse its text', async () => {
    const text = 'a\u001b[2J\u0000\u007f\u009b2J\u061c\u200f\u202edesrever\u202c\u2066b\u2069 漢字 👩‍💻';
    const path = writeTranscript(user(text, { timestamp: at(0) }), assistant('m1', 'done', { timestamp: at(1) }));
    const { stdout } = await preview('--json', path);
    expect(stdout).not.toMatch(/[^\P{Cc}\n]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u);
    expect(stdout).toContain('漢字 👩‍💻');
    const [root] = JSON.parse(stdout).filter(({ type }: { type: string }) => type === 'agent');
    expect(root.input).toEqual([{ role: 'user', content: text }]);
  });

  test('--turn shows only that turn', async () => {
    write(1, 3);
    const { stdout } = await preview('--turn', '2');
    expect(stdout.match(/^Turn \d+/gm)).toEqual(['Turn 2']);
    expect(stdout).toContain('user       question 2');
  });

  test.each(recordings().filter((each) => transcriptsOf(each).length === 1))(
    'shows what the hooks sent for the recording $name',
    async (played) => {
      const [path = ''] = transcriptsOf(played);
      const traces = describeTraces((await observations(path)).map(asStored));
      expect(traces).toBe(readFileSync(join(played.folder, 'expected.json'), 'utf8'));
    },
  );

  test('shows turns that hang below a span of the program that started Claude Code as turns', async () => {
    const path = write(1);
    const below = { CC_LANGFUSE_TRACEPARENT: `00-${'c'.repeat(32)}-${'d'.repeat(16)}-01` };
    const payload = { session_id: sessionIdOf(1), transcript_path: path, hook_event_name: 'Stop' };
    const plain = (await preview(path)).stdout;
    const traceless = (text: string) => JSON.parse(text, (key, value) => (key === 'traceId' ? undefined : value));
    const readPage = async () => {
      const file = join(workplace.home, 'page.html');
      await preview('--html', file, path);
      const [, data = ''] = /id="sessions">(.*?)<\/script>/s.exec(readFileSync(file, 'utf8')) ?? [];
      return traceless(data);
    };
    const [plainPage] = await readPage();
    await workplace.hook(payload, below);
    expect((await preview(path)).stdout).toBe(plain);
    expect(plain).toMatch(/ · 2 turns · .*\n\nTurn 1 .*\n.* user /);
    expect((await observations('--turn', '2', path))[0].trace.id).toBe('c'.repeat(32));
    expect((await preview('--turn', '2', path)).stdout).toMatch(/ · 1 turn · .*\n\nTurn 2 .*\n.* user /);
    const [page] = await readPage();
    const outline = (session: { turns: { name: string; observations: { name: string }[] }[] }) =>
      session.turns.map(({ name, observations: own }) => [name, ...own.map((each) => each.name)]);
    expect(outline(page)).toEqual(outline(plainPage));
    expect(page.title).toBe(plainPage.title);
  });

  test('redacts secrets and respects CC_LANGFUSE_CAPTURE', async () => {
    const path = writeFailingTurn();
    const full = JSON.stringify(await observations(path));
    expect(full).toContain('curl -H');
    expect(full).not.toContain('sk-ant-api03');
    const { stdout } = await run(['preview', path, '--json'], {
      HOME: workplace.home,
      CC_LANGFUSE_CAPTURE: 'metadata',
    });
    expect(stdout).toContain('"name": "Bash"');
    expect(stdout).not.toMatch(/curl|fix it|no route/);
  });

  test('needs neither keys nor a server, and writes nothing', async () => {
    const path = write(1);
    const before = readdirSync(workplace.home, { recursive: true });
    expect(await preview(path)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await run(['preview', path], workplace.env)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(readdirSync(workplace.home, { recursive: true })).toEqual(before);
    expect(workplace.server.requests).toEqual([]);
  });

  test('shows turns that have been sent, too, and keeps the state', async () => {
    const path = write(1);
    await run(['backfill', '--yes', path], workplace.env);
    const { state } = workplace;
    const shown = await run(['preview', path, '--json'], workplace.env);
    expect(JSON.parse(shown.stdout)).toHaveLength(12);
    expect(workplace.state).toEqual(state);
  });

  test('shows the last turn while the session is running', async () => {
    const path = writeTranscript(user('now', { timestamp: new Date().toISOString() }), assistant('m1', 'yes'));
    expect(await observations(path)).toHaveLength(2);
  });

  test('says that nothing would be sent if no turn has an answer', async () => {
    const path = writeTranscript(user('hello?', { timestamp: at(0) }));
    expect(await preview(path)).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: `nothing of ${sessionIdOf(9)} would be sent: none of its turns has an answer\n`,
      ms: expect.any(Number),
    });
    expect(await observations(path)).toEqual([]);
  });

  const titles = async (...args: string[]) =>
    new Set((await observations(...args)).map(({ trace }: Observation) => trace.sessionId));

  test('shows the newest session of the current directory', async () => {
    write(2);
    write(1);
    writeSession(workplace.projects, { sessionId: sessionIdOf(3), cwd: '/elsewhere', turns: 1, startsAt: Date.now() });
    expect(await titles()).toEqual(new Set([sessionIdOf(1)]));
  });

  test('accepts an id, the beginning of an id, or a path', async () => {
    const path = write(0x1a);
    write(0x1b);
    for (const name of [sessionIdOf(0x1a), '0000001a', path]) {
      expect(await titles(name)).toEqual(new Set([sessionIdOf(0x1a)]));
    }
  });
});

describe('preview --html', () => {
  test('writes a page that only its owner can read, and prints its path', async () => {
    write(1);
    const page = join(workplace.home, 'out.html');
    expect(await preview('--html', 'out.html')).toMatchObject({ exitCode: 0, stdout: `${page}\n`, stderr: '' });
    expect(statSync(page).mode & 0o777).toBe(0o600);
    expect(readFileSync(page, 'utf8')).toContain('question 2');
    expect(readdirSync(workplace.home).toSorted()).toEqual(['.claude', 'out.html']);
  });

  test('without a file, makes one that only its owner can find, and takes what follows as the session', async () => {
    const path = write(1);
    const before = readFileSync(path, 'utf8');
    const temporary = join(workplace.home, 'temporary');
    mkdirSync(temporary);
    const make = (...args: string[]) =>
      run(['preview', ...args], { HOME: workplace.home, TMPDIR: temporary }, '', { cwd: workplace.home });
    const pages = new Set<string>();
    for (const args of [['--html'], ['--html', path], [path, '--html'], ['--html', '--turn', '2']]) {
      const { exitCode, stdout, stderr } = await make(...args);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
      expect(stdout).toMatch(/^\S+\/temporary\/cc-langfuse-\w{6}\/preview\.html\n$/);
      const page = stdout.trim();
      expect([statSync(dirname(page)).mode & 0o777, statSync(page).mode & 0o777]).toEqual([0o700, 0o600]);
      expect(readFileSync(page, 'utf8')).toContain('question 2');
      pages.add(page);
    }
    expect(pages.size).toBe(4);
    expect(readdirSync(workplace.home).toSorted()).toEqual(['.claude', 'temporary']);
    expect(readFileSync(path, 'utf8')).toBe(before);
  });

  test('says which folder for temporary files cannot be written', async () => {
    write(1);
    const none = join(workplace.home, 'none');
    const env = { HOME: workplace.home, TMPDIR: none };
    expect(await run(['preview', '--html'], env, '', { cwd: workplace.home })).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: `cc-langfuse: --html: ${none} cannot be written (ENOENT)\n`,
    });
  });

  test('in a terminal on a desktop, opens the page that it has made, and never a file that was named', async () => {
    write(1);
    const tools = join(workplace.home, 'tools');
    mkdirSync(tools);
    const opener = join(tools, 'xdg-open');
    writeFileSync(
      opener,
      `#!/bin/sh\nprintf '%s|' "$#" "$@" > "${tools}/part" && mv "${tools}/part" "${tools}/opened"\n`,
    );
    chmodSync(opener, 0o755);
    const env = { HOME: workplace.home, PATH: `${tools}:${process.env.PATH}`, TMPDIR: tools };
    const terminal = (args: string[], more: object) =>
      runInTerminal(['preview', ...args], { home: workplace.home, env: { ...env, ...more } });
    await terminal(['--html'], {});
    await terminal(['--html'], { DISPLAY: ':0', SSH_CONNECTION: '1 2 3 4' });
    await terminal(['--html', 'named.html'], { DISPLAY: ':0' });
    expect(existsSync(join(tools, 'opened'))).toBe(false);
    const { screen } = await terminal(['--html'], { DISPLAY: ':0' });
    await expect.poll(() => existsSync(join(tools, 'opened')), POLL).toBe(true);
    expect(readFileSync(join(tools, 'opened'), 'utf8')).toBe(`1|${pathToFileURL(screen.trim()).href}|`);
  });

  test('refuses a name that does not end in .html', async () => {
    const path = write(1);
    const before = readFileSync(path, 'utf8');
    const { exitCode, stderr } = await preview(`--html=${path}`);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: `cc-langfuse: --html ${path}: expected a name that ends in .html\n`,
    });
    expect(readFileSync(path, 'utf8')).toBe(before);
  });

  test('leaves nothing behind if the page cannot be written', async () => {
    write(1);
    const { exitCode, stderr } = await preview('--html', 'none/out.html');
    const page = join(workplace.home, 'none/out.html');
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: `cc-langfuse: --html ${page}: cannot be written (ENOENT)\n`,
    });
    expect(existsSync(dirname(page))).toBe(false);
  });
});

describe('preview refuses', () => {
  test.each([
    [['--frob'], "Unknown option '--frob'; --help lists the options"],
    [['--turn', '0'], '--turn 0: expected a whole number above 0'],
    [['--turn', 'last'], '--turn last: expected a whole number above 0'],
    [['--turn', '9'], '--turn 9: the session has turns 1 to 2'],
    [['one', 'two'], 'one and two: preview takes one session'],
    [['--json', '--html', 'x.html'], '--json and --html: choose one of them'],
    [['/nowhere/x.jsonl'], '/nowhere/x.jsonl: no such file'],
    [['/etc/passwd'], '/etc/passwd: not a Claude Code transcript'],
    [['/tmp/'], '/tmp/: not a Claude Code transcript'],
    [['0000'], '0000: 2 sessions have ids that begin with it; give more characters'],
    [['000'], /^000: give at least 4 characters of the session id$/],
    [['12345678'], /^no session 12345678 in \S+projects; cc-langfuse sessions lists them$/],
  ])('%j in one line with exit code 2', async (args, message) => {
    write(1);
    write(2);
    const { exitCode, stdout, stderr } = await preview(...args);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr.replace(/^cc-langfuse: /, '').trimEnd()).toEqual(
      typeof message === 'string' ? message : expect.stringMatching(message),
    );
  });

  test('to guess a session if none ran in the current directory', async () => {
    expect(await preview()).toMatchObject({
      exitCode: 2,
      stderr: 'cc-langfuse: no session ran in this directory; name one, cc-langfuse sessions lists them\n',
    });
  });
});

/** Turns an observation of `--json` into one as Langfuse stores it. */
function asStored({ startTime, endTime, completionStartTime, ...rest }: { [field: string]: string }) {
  const times = { startTime: Date.parse(startTime ?? ''), endTime: Date.parse(endTime ?? '') };
  const completion = completionStartTime === undefined ? {} : { completionStartTime: Date.parse(completionStartTime) };
  return stored(JSON.parse(encodeSpan({ ...rest, ...times, ...completion } as unknown as Observation)));
}
