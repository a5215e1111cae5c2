import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appendLines, SESSION } from '../support/lines.js';
import { POLL, run, Workplace } from '../support/program.js';
import { runInTerminal } from '../support/terminal.js';

let workplace: Workplace;
let path: string;

beforeEach(async () => {
  workplace = await Workplace.open();
  workplace.env = { ...workplace.env, TZ: 'UTC' };
  mkdirSync(workplace.stateFolder, { recursive: true });
  path = join(workplace.stateFolder, 'cc-langfuse_hook.log');
});

afterEach(() => workplace.close());

const log = (...args: string[]) => run(['log', ...args], workplace.env);
const line = (msg: string, more: object = {}) =>
  `${JSON.stringify({ level: 'warn', pid: 7, ...more, time: '2026-10-01T12:00:01.500Z', msg })}\n`;

describe('log', () => {
  test('shows time, level, message and the other fields, and first what was set aside', async () => {
    writeFileSync(`${path}.1`, line('earlier'));
    writeFileSync(
      path,
      line('the server answers 500', { session: 'a1', file: '/home/me/my project/a.jsonl' }) +
        line('observations', { level: 'debug', observations: 3 }) +
        line('broken', { level: 'error' }),
    );
    expect(await log()).toMatchObject({
      exitCode: 0,
      stdout: [
        '2026-10-01 12:00:01  warn   earlier',
        '2026-10-01 12:00:01  warn   the server answers 500  session=a1  file="/home/me/my project/a.jsonl"',
        '2026-10-01 12:00:01  debug  observations  observations=3',
        '2026-10-01 12:00:01  error  broken',
        '',
      ].join('\n'),
      stderr: '',
    });
  });

  test('shows what the hook has logged', async () => {
    await workplace.hook('no JSON');
    expect((await log()).stdout).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}error {2}.*stdin is not JSON.*\n$/);
  });

  test('names what Claude Code has written and this version does not know, once for each session and without content', async () => {
    const transcript = workplace.transcriptOf(SESSION);
    const unknown = () => workplace.log.map(({ level, unknown, file }) => ({ level, unknown, file }));
    const named = (names: string) => ({ level: 'info', unknown: names, file: transcript });
    const odd = { type: 'tea-break', content: 'my password is hunter2', uuid: 'x' };
    for (const n of [1, 2, 3]) {
      appendLines(transcript, odd, { ...odd, type: 'my password is hunter2' });
      workplace.addTurn(n);
      await workplace.stop();
      await workplace.stop();
      expect(unknown()).toEqual([named('line type ? (1), line type tea-break (1)')]);
    }
    appendLines(transcript, odd, { parentUuid: null, attachment: { type: 'kettle', content: 'hunter2' } });
    workplace.addTurn(4);
    await workplace.hook({ session_id: SESSION, transcript_path: transcript, hook_event_name: 'SessionEnd' });
    expect(unknown()).toHaveLength(2);
    workplace.addTurn(5, 'another');
    appendLines(workplace.transcriptOf('another'), odd);
    await workplace.stop('another');
    expect(unknown().map((each) => each.unknown)).toHaveLength(3);
    expect(JSON.stringify([workplace.log, workplace.state])).not.toContain('hunter2');
    expect(workplace.server.roots).toHaveLength(5);
  });

  test('--json prints one array, whatever is in the log, and nothing else', async () => {
    writeFileSync(`${path}.1`, line('earlier'));
    writeFileSync(path, `${line('a\u009bb', { file: '/x' })}not JSON\n{"level":"wa`);
    const { exitCode, stdout, stderr } = await log('--json');
    const time = '2026-10-01T12:00:01.500Z';
    expect({ exitCode, stderr, logged: JSON.parse(stdout) }).toEqual({
      exitCode: 0,
      stderr: '',
      logged: [
        { level: 'warn', pid: 7, time, msg: 'earlier' },
        { level: 'warn', pid: 7, file: '/x', time, msg: 'a\u009bb' },
        { text: 'not JSON' },
        { text: '{"level":"wa' },
      ],
    });
    expect(stdout).not.toContain('\u009b');
    rmSync(path);
    rmSync(`${path}.1`);
    expect(await log('--json')).toMatchObject({ exitCode: 0, stdout: '[]\n', stderr: '' });
  });

  test('says that nothing has been logged yet', async () => {
    const nothing = { exitCode: 0, stdout: '', stderr: 'nothing has been logged yet\n' };
    expect(await log()).toMatchObject(nothing);
    writeFileSync(path, '');
    expect(await log()).toMatchObject(nothing);
  });

  test('shows lines that are not JSON, or cut off, as they are, without what would control the terminal', async () => {
    writeFileSync(
      path,
      `\u001b[2Jnot JSON\u202e\n${line('a\u009b2J \u202edesrever', { file: '\u001b]0;x\u0007y' })}{"level":"wa`,
    );
    expect((await log()).stdout).toBe(
      ['not JSON', '2026-10-01 12:00:01  warn   a 2J desrever  file=y', '{"level":"wa', ''].join('\n'),
    );
  });

  test('says why the log cannot be read', async () => {
    mkdirSync(path);
    expect(await log()).toMatchObject({ exitCode: 1, stdout: '' });
    expect((await log()).stderr).toContain(`${path} cannot be read (not a regular file)`);
  });

  test('-f goes on with what is added, even after a new file has been started', async () => {
    let shown = '';
    let stop = () => {};
    const ended = run(['log', '-f'], workplace.env, '', {
      onStart: (child) => {
        stop = () => child.kill('SIGINT');
        child.stdout?.on('data', (chunk: Buffer) => {
          shown += chunk;
        });
      },
    });
    const messages = () => Array.from(shown.matchAll(/warn {3}(\w+)/g), ([, message]) => message);
    writeFileSync(path, line('one') + line('two'));
    await expect.poll(messages, POLL).toEqual(['one', 'two']);
    appendFileSync(path, line('three').slice(0, 20));
    appendFileSync(path, line('three').slice(20));
    await expect.poll(messages, POLL).toEqual(['one', 'two', 'three']);
    appendFileSync(path, line('four'));
    renameSync(path, `${path}.1`);
    writeFileSync(path, line('five'));
    await expect.poll(messages, POLL).toEqual(['one', 'two', 'three', 'four', 'five']);
    appendFileSync(path, line('six'));
    await expect.poll(messages, POLL).toEqual(['one', 'two', 'three', 'four', 'five', 'six']);
    stop();
    expect(await ended).toMatchObject({ stderr: '' });
  });

  test.runIf(process.platform === 'linux')('-f says in a terminal that it waits, after what is there', async () => {
    writeFileSync(path, line('one'));
    const { screen } = await runInTerminal(['log', '-f'], workplace, { 'until Ctrl-C': '\u0003' });
    expect(stripVTControlCharacters(screen)).toBe(
      '2026-10-01 12:00:01  warn   one\r\nwaiting for more, until Ctrl-C\r\n^C',
    );
  });

  test.each([
    [['-f', '--json'], '--follow and --json: choose one of them'],
    [['x'], 'x: log takes no operands; see log --help'],
    [['--folow'], "Unknown option '--folow'; did you mean --follow?"],
  ])('refuses %j in one line with exit code 2', async (args, message) => {
    expect(await log(...args)).toMatchObject({ exitCode: 2, stdout: '', stderr: `cc-langfuse: ${message}\n` });
  });
});
