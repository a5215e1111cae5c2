import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appendLines, SESSION, text, toolResult, toolUse } from '../support/lines.js';
import { run, Workplace } from '../support/program.js';
import { ScriptedSession } from '../support/requests.js';
import { runInTerminal } from '../support/terminal.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const preview = (...args: string[]) => run(['preview', workplace.transcriptOf(SESSION), ...args], workplace.env);
const readJson = async (place: string) => JSON.parse((await preview('--request', place, '--json')).stdout);

const SECRET = `ghp_${'aB3dE6gH9jK2mN5pQ8sT'.repeat(2).slice(0, 36)}`;
const SYSTEM = [
  { kind: 'system prompt', chars: 17, text: 'You are an agent.' },
  { kind: 'system prompt', chars: 9, text: 'Be brief.' },
  { kind: 'tool', name: 'Read', chars: 94, text: 'Reads a file.' },
];
const WEATHER = { message: 1, role: 'system', kind: 'system text', chars: 17, text: 'It is a fine day.' };

/** Two turns, of which the first has two requests; the second turn is that of a resumed process. */
function writeSession(): ScriptedSession {
  const session = new ScriptedSession().remind({ role: 'system', content: 'It is a fine day.' }).prompt('question');
  session.answer(text('I look.'), toolUse('a', 'Read', { password: 'hunter2' })).results(toolResult('a', SECRET));
  session.answer(text('Found.')).resume().prompt('and now?').answer(text('Done.'));
  appendLines(workplace.transcriptOf(SESSION), ...session.takeLines());
  return session;
}

describe('preview --request', () => {
  test('--json has the system prompt, the tools and every message, redacted, with its size as it was sent', async () => {
    writeSession();
    const first = [...SYSTEM, WEATHER, { message: 2, role: 'user', kind: 'user text', chars: 8, text: 'question' }];
    const facts = { turn: 1, requests: 2, model: 'claude-opus-5', missingMessages: 0, hasSystem: true };
    expect(await readJson('1.1')).toEqual({ ...facts, request: 1, parts: first });
    const second = [
      ...first,
      { message: 3, role: 'assistant', kind: 'assistant text', chars: 7, text: 'I look.' },
      { message: 3, role: 'assistant', kind: 'tool call', name: 'Read', chars: 22, text: '{"password":"[redacted]"}' },
      { message: 4, role: 'user', kind: 'tool result', name: 'Read', chars: 40, text: '[redacted]' },
    ];
    expect(await readJson('1.2')).toEqual({ ...facts, request: 2, parts: second });
    expect(await readJson('1')).toEqual(await readJson('1.2'));
  });

  test('finds all messages of a resumed session', async () => {
    const { sent } = writeSession();
    const { parts, missingMessages } = await readJson('2');
    expect(missingMessages).toBe(0);
    expect(parts.at(-1)).toEqual({ message: 6, role: 'user', kind: 'user text', chars: 8, text: 'and now?' });
    expect(new Set(parts.map(({ message }: { message?: number }) => message ?? 1)).size).toBe(
      sent.at(-1)?.messages.length,
    );
  });

  test('shows who takes how much, by kind and part by part', async () => {
    writeSession();
    expect((await preview('--request', '1.2')).stdout.split('\n')).toEqual([
      'Turn 1, request 2 of 2',
      'claude-opus-5 · 214 characters',
      '',
      'system prompt          2 × 26   12%  ━━━',
      'tool                   1 × 94   44%  ━━━━━━━━━━━',
      'user text              1 ×  8    4%  ━',
      'assistant text         1 ×  7    3%  ━',
      'system text            1 × 17    8%  ━━',
      'tool call              1 × 22   10%  ━━',
      'tool result            1 × 40   19%  ━━━━',
      '',
      '      system prompt                       17    8%  You are an agent.',
      '      system prompt                        9    4%  Be brief.',
      '      tool Read                           94   44%  Reads a file.',
      '   1  system text                         17    8%  It is a fine day.',
      '   2  user text                            8    4%  question',
      '   3  assistant text                       7    3%  I look.',
      '      tool call Read                      22   10%  {"password":"[redacted]"}',
      '   4  tool result Read                    40   19%  [redacted]',
      '',
    ]);
  });

  test('fits a terminal of 40 columns, and removes what would control it', async () => {
    const session = new ScriptedSession().prompt(`\u001b[2J${'wide 漢字 '.repeat(40)}\u202e`).answer(text('ok'));
    appendLines(workplace.transcriptOf(SESSION), ...session.takeLines());
    const env = { ...workplace.env, NO_COLOR: '1' };
    const place = ['preview', workplace.transcriptOf(SESSION), '--request', '1'];
    const { screen } = await runInTerminal(place, { ...workplace, env }, {}, 40);
    expect(screen.split(/\r?\n/).filter((line) => line.length > 40)).toEqual([]);
    expect(screen).not.toMatch(/[^\P{Cc}\r\n]|\u202e/u);
    expect(screen).toContain('user text');
  });

  test('counts what the transcript does not have', async () => {
    const session = new ScriptedSession().remind({ role: 'user', content: 'gone' }).prompt('question');
    const [shape, _, ...lines] = session.answer(text('ok')).takeLines();
    appendLines(workplace.transcriptOf(SESSION), ...lines);
    expect(shape).toMatchObject({ type: 'api-request-shape' });
    expect(await readJson('1')).toMatchObject({ hasSystem: false, missingMessages: 1, parts: [{ message: 2 }] });
    const { stdout } = await preview('--request', '1');
    expect(stdout).toContain('the system prompt and the tools were not found in the transcript\n');
    expect(stdout).toContain('1 message not found in the transcript\n');
  });

  test.each([
    [['--request', 'x'], '--request x: expected a turn, or a turn and a request, as in 3.2'],
    [['--request', '3'], '--request 3: the session has turns up to 2'],
    [['--request', '1.3'], '--request 1.3: turn 1 has 2 requests'],
    [['--request', '1', '--turn', '1'], '--request and --turn: choose one of them'],
    [['--request', '1', '--html', 'x.html'], '--request and --html: choose one of them'],
  ])('refuses %j in one line with exit code 2', async (args, message) => {
    writeSession();
    expect(await preview(...args)).toMatchObject({ exitCode: 2, stdout: '', stderr: `cc-langfuse: ${message}\n` });
  });

  test('says so if Claude Code has not kept the request', async () => {
    const lines = new ScriptedSession().prompt('q').answer(text('ok')).takeLines();
    appendLines(workplace.transcriptOf(SESSION), ...lines.filter((line) => !('tail' in line)));
    expect(await preview('--request', '1')).toMatchObject({
      exitCode: 2,
      stderr: 'cc-langfuse: --request 1.1: the transcript does not have it; Claude Code keeps requests since 2.1.326\n',
    });
  });
});
