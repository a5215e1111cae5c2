import { afterEach, beforeEach, expect, test } from 'vitest';
import { fieldsOfJson } from '../support/cost-docs.js';
import { appendLines, assistant, at, SESSION, user } from '../support/lines.js';
import { run, Workplace } from '../support/program.js';
import { recording, transcriptsOf } from '../support/recording.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const [MCP = ''] = transcriptsOf(recording('r-mcp'));
const preview = (...args: string[]) => run(['preview', ...args, MCP], { HOME: workplace.home });

test('--cost shows what filled the context, and what that cost', async () => {
  const { stdout, exitCode } = await preview('--cost');
  expect(exitCode).toBe(0);
  expect(stdout.split('\n').slice(0, 6).join('\n')).toBe(
    [
      'Session 5f829b60-0a13-466d-80e4-3e2fd64ffe60  $0.0302',
      '',
      'what filled the context  at the end   dollars      sent  read again  written',
      '(memory and reminders)       10,348   $0.0173   $0.0010     $0.0164',
      'mcp__lab__picture             1,425   $0.0034   $0.0011     $0.0019  $0.0004',
      'mcp__lab__fails                  98   $0.0033   $0.0029    <$0.0001  $0.0004',
    ].join('\n'),
  );
  expect(stdout).toContain('\nthe cache was never lost\n');
});

test('--cost --json has the same figures', async () => {
  const { parts, ...rest } = JSON.parse((await preview('--cost', '--json')).stdout);
  expect(rest).toEqual({
    sessionId: '5f829b60-0a13-466d-80e4-3e2fd64ffe60',
    dollars: 0.03018576,
    listPriceDollars: 0,
    tokensWithoutPrice: 0,
    cacheLosses: [],
  });
  expect(parts).toHaveLength(12);
  expect(parts[1]).toEqual({
    part: 'mcp__lab__picture',
    tokensAtTheEnd: 1_425,
    dollars: expect.closeTo(0.0034, 4),
    listPriceDollars: 0,
    tokensWithoutPrice: 0,
    sentDollars: expect.closeTo(0.0011, 4),
    readAgainDollars: expect.closeTo(0.0019, 4),
    writtenDollars: expect.closeTo(0.0004, 4),
  });
});

test('--cost names each loss of the cache, and the documentation each field of --json', async () => {
  const usage = { cache_creation: { ephemeral_5m_input_tokens: 10_000 } };
  const answer = (id: string, seconds: number) => ({
    ...assistant(id, 'x', { uuid: id, timestamp: at(seconds) }),
    message: { id, role: 'assistant', model: 'claude-opus-4-5', content: 'x', usage },
  });
  const prompt = (n: number, seconds: number) =>
    user('q', { uuid: `u${n}`, promptId: `p${n}`, timestamp: at(seconds) });
  const path = workplace.transcriptOf(SESSION);
  appendLines(path, prompt(1, 0), answer('m1', 1), prompt(2, 601), answer('m2', 602));
  const { stdout } = await run(['preview', '--cost', path], { HOME: workplace.home, TZ: 'UTC' });
  expect(stdout.trimEnd().split('\n').slice(-3)).toEqual([
    'the cache was lost 1 time: ≈ $0.0575 more than reading it',
    '  2025-01-15 10:10  10,000 tokens  ≈$0.0575  turn 2',
    '    after a pause of 10 min',
  ]);
  const record = JSON.parse((await run(['preview', '--cost', '--json', path], { HOME: workplace.home })).stdout);
  expect(record.cacheLosses).toEqual([
    { at: at(602), turn: 2, tokens: 10_000, listPriceDollars: 0.0575, pauseMs: 600_000, otherModel: false },
  ]);
  const fields = [record, record.parts[0], { agent: 'Explore', ...record.cacheLosses[0] }].flatMap((each) =>
    Object.keys(each),
  );
  expect(fields.filter((field) => !fieldsOfJson().includes(field))).toEqual([]);
});

test.each(['--turn 1', '--request 1', '--html x.html'])('refuses --cost with %s', async (other) => {
  const [name] = other.split(' ');
  const stderr = `cc-langfuse: --cost and ${name}: choose one of them\n`;
  expect(await preview('--cost', ...other.split(' '))).toMatchObject({ exitCode: 2, stdout: '', stderr });
});
