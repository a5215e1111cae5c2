import { afterEach, beforeEach, expect, test } from 'vitest';
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
    dollars: expect.closeTo(0.03018576, 9),
    listPriceDollars: 0,
    cacheLosses: [],
  });
  expect(parts).toHaveLength(12);
  expect(parts[1]).toEqual({
    part: 'mcp__lab__picture',
    tokensAtTheEnd: 1_425,
    dollars: expect.closeTo(0.0034, 4),
    listPriceDollars: 0,
    of: { sent: expect.closeTo(0.0011, 4), readAgain: expect.closeTo(0.0019, 4), written: expect.closeTo(0.0004, 4) },
  });
});

test.each(['--turn 1', '--request 1', '--html x.html'])('refuses --cost with %s', async (other) => {
  const [name] = other.split(' ');
  const stderr = `cc-langfuse: --cost and ${name}: choose one of them\n`;
  expect(await preview('--cost', ...other.split(' '))).toMatchObject({ exitCode: 2, stdout: '', stderr });
});
