import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import table from '../../src/costs/price-table.json' with { type: 'json' };
import { account, accountLine, variedCounts } from '../support/cost-account.js';
import { sessionIdOf, writeSession } from '../support/generated.js';
import { appendLines, assistant, user } from '../support/lines.js';
import { letIdle, run, Workplace } from '../support/program.js';
import { recording, transcriptsOf } from '../support/recording.js';
import { runInTerminal } from '../support/terminal.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
  workplace.env = { ...workplace.env, TZ: 'UTC' };
});

afterEach(() => workplace.close());

const STARTS = Date.UTC(2026, 9, 1, 12);
const cwd = `/home/dev/${'long-name-'.repeat(12)}end`;

/** A session of two days, with an account of its costs. */
function write(): void {
  const session = { sessionId: sessionIdOf(1), cwd, turns: 2, startsAt: STARTS };
  const path = writeSession(workplace.projects, session);
  const more = { cwd, timestamp: '2026-10-02T13:30:00.000Z', sessionId: sessionIdOf(1) };
  const model = 'claude-opus-5';
  appendLines(
    path,
    user('question 3', { uuid: 'u3', ...more }),
    assistant('m3', 'answer 3', { model, ...more }),
    accountLine({ [model]: account([variedCounts(1)]) }),
  );
  letIdle(path);
}

async function screenOf(columns: number, ...args: string[]): Promise<string[]> {
  const { screen } = await runInTerminal(args, workplace, {}, columns);
  return stripVTControlCharacters(screen).trimEnd().split('\r\n');
}

describe('a terminal', () => {
  test('of no columns counts as one of 80', async () => {
    write();
    for (const args of [['sessions'], ['cost', '--by', 'project'], ['status'], ['preview', sessionIdOf(1)]])
      expect([args, await screenOf(0, ...args)]).toEqual([args, await screenOf(80, ...args)]);
  });

  test('of 80 columns shows the start of each prompt, and no part of a figure', async () => {
    write();
    expect((await screenOf(80, 'cost', '--by', 'prompt')).slice(0, 2)).toEqual([
      'prompt                                                 dollars  tokens  output',
      '00000001 turn 1  2026-10-01 12:00  question 1          $0.0022   9,090      60',
    ]);
    const [path = ''] = transcriptsOf(recording('r-mcp'));
    expect((await screenOf(60, 'preview', '--cost', path)).slice(2, 5)).toEqual([
      'what filled the context  at the end   dollars      sent',
      '(memory and reminders)       10,348   $0.0173   $0.0010',
      'mcp__lab__picture             1,425   $0.0034   $0.0011',
    ]);
  });

  test('of 40 columns has all that is said below the table', async () => {
    write();
    expect((await screenOf(40, 'cost', '--by', 'tool')).slice(-6)).toEqual([
      '',
      'the lines of requests say where 0% of',
      'the tokens belong; the rest follows from',
      'how the context grew',
      'the cache saved ≈ $0.0810, list price',
      `prices: list of ${table.date} (Anthropic)`,
    ]);
  });

  test('of 40 columns shows the end of a folder, also with characters that take two columns', async () => {
    const folder = `/home/dev/${'漢字'.repeat(20)}/the-end`;
    letIdle(writeSession(workplace.projects, { sessionId: sessionIdOf(1), cwd: folder, turns: 1, startsAt: STARTS }));
    const [, row = ''] = await screenOf(40, 'cost', '--by', 'project');
    expect(row.split(/ {2,}/)[0]).toBe('…漢字/the-end');
  });

  test('of 60 columns shows dates and costs whole, and cuts the rest', async () => {
    write();
    workplace.server.misbehave = ({ method }) => (method === 'GET' ? undefined : { status: 418 });
    await workplace.backfill('--all');
    const [list, deletion = ''] = (await screenOf(60, 'sessions'))
      .join('\n')
      .split(/\n(?=\d+ sessions? is not wholly)/);
    expect(deletion).toMatch(/^1 session is not wholly in Langfuse; Claude Code deletes it after 2\d{3}-/);
    expect(list?.split('\n')).toEqual([
      'question 1',
      `  ${sessionIdOf(1)}  /home/dev/long-name…`,
      '  2026-10-01 12:00 – 2026-10-02 13:30 · pending (… · $0.0047',
    ]);
    expect(await screenOf(60, 'cost', '--by', 'session')).toEqual([
      'session                              dollars  tokens  output',
      '00000001  2026-10-01 12:00  /home/…  $0.0047  18,180     120',
      'total                                $0.0047  18,180     120',
      '',
      'the cache saved ≈ $0.0810, list price',
      `prices: list of ${table.date} (Anthropic)`,
    ]);
  });
});

describe('colours', () => {
  const isColourful = async (env: object) => {
    const { stdout } = await run(['status'], { ...workplace.env, ...env });
    return stdout !== stripVTControlCharacters(stdout);
  };

  test.each([
    [{}, false],
    [{ FORCE_COLOR: '1' }, true],
    [{ FORCE_COLOR: '' }, true],
    [{ FORCE_COLOR: '0' }, false],
    [{ FORCE_COLOR: '1', NO_COLOR: '1' }, true],
    [{ FORCE_COLOR: '1', TERM: 'dumb' }, true],
  ])('in what a program reads, with %j: %j', async (env, expected) => {
    expect(await isColourful(env)).toBe(expected);
  });

  test.each([
    [{}, true],
    [{ NO_COLOR: '1' }, false],
    [{ TERM: 'dumb' }, false],
    [{ FORCE_COLOR: '0' }, false],
    [{ FORCE_COLOR: '1', NO_COLOR: '1' }, true],
  ])('in a terminal, with %j: %j', async (env, expected) => {
    const { screen } = await runInTerminal(['status'], { home: workplace.home, env: { ...workplace.env, ...env } });
    expect(screen !== stripVTControlCharacters(screen)).toBe(expected);
  });
});
