import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sessionIdOf, writeSession } from '../support/generated.js';
import { Workplace } from '../support/program.js';
import { runInTerminal, type Typed } from '../support/terminal.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
  for (const n of [1, 2, 3])
    writeSession(workplace.projects, {
      sessionId: sessionIdOf(n),
      cwd: workplace.home,
      turns: 5,
      startsAt: Date.now() - n * 86_400_000,
    });
});

afterEach(() => workplace.close());

const QUESTION = 'Send? [y/N]';
const CTRL_C = '\u0003';
const inTerminal = (args: readonly string[], typed: Typed = {}) => runInTerminal(args, workplace, typed);

describe('backfill in a terminal', () => {
  test('shows the sessions of the project, asks, and exports them after yes', async () => {
    const { exitCode, screen } = await inTerminal(['backfill'], { [QUESTION]: 'y\r' });
    const words = stripVTControlCharacters(screen);
    expect(exitCode).toBe(0);
    const { host } = new URL(workplace.server.url);
    expect(words.replace(/\s+/g, ' ')).toContain(
      `15 turns of 3 sessions (15 traces, 90 observations, 0 scores) will be sent to project "Embedded" at ${host}. All of them ran without tracing. Send? [y/N]`,
    );
    for (const n of [1, 2, 3]) expect(words).toContain(sessionIdOf(n));
    expect(words).toMatch(
      /exported {2}3 sessions\r\nsent: 15 turns, 45 generations, 30 tools, 136,350 tokens, [\d.]+ KB\r\n/,
    );
    expect(words).toContain(`${workplace.server.url}/project/embedded/sessions`);
    expect(workplace.server.observations).toHaveLength(90);
  });

  test('exports nothing after any other answer', async () => {
    const { exitCode } = await inTerminal(['backfill'], { [QUESTION]: '\r' });
    expect(exitCode).toBe(0);
    const stopped = await inTerminal(['backfill'], { [QUESTION]: CTRL_C });
    expect(stopped.exitCode).toBe(130);
    expect(stopped.screen).toContain('stopped; nothing was done');
    expect(workplace.server.requests.filter(({ spans }) => spans > 0)).toEqual([]);
  });

  test('shows its progress, and that the server asks to wait', async () => {
    let refused = false;
    workplace.server.misbehave = (_, __, spans) => {
      if (spans.length === 0 || refused) return undefined;
      refused = true;
      return { status: 429, headers: { 'retry-after': '1' } };
    };
    const { exitCode, screen } = await inTerminal(['backfill', '--all', '--yes']);
    expect(exitCode).toBe(0);
    expect(screen).toMatch(/[█░]+ \d+% \d\/3 sessions · \d+ turns · [\d.]+ MB\/s/);
    expect(screen).toContain('the server asks to wait');
    // At the end the cursor is shown again.
    expect(screen).toContain('\u001b[?25h');
  });

  /** Presses Ctrl-C once a request is under way, and then what is to be typed. Returns what the backfill shows. */
  async function interrupt(then: (answerRequests: () => void) => string) {
    let arrive = () => {};
    let answerRequests = () => {};
    const hasArrived = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const after = new Promise<void>((resolve) => {
      answerRequests = resolve;
    });
    workplace.server.misbehave = (_, __, spans) => {
      if (spans.length === 0) return undefined;
      arrive();
      return { after };
    };
    const { exitCode, screen } = await inTerminal(['backfill', '--all', '--yes', '--concurrency', '1'], {
      '/3 sessions': () => hasArrived.then(() => CTRL_C),
      'press Ctrl-C again': () => then(answerRequests),
    });
    return { exitCode, words: stripVTControlCharacters(screen) };
  }

  test('ends after the requests under way at the first Ctrl-C, and at once at the second', async () => {
    const once = await interrupt((answerRequests) => {
      answerRequests();
      return '';
    });
    expect(once).toEqual({ exitCode: 130, words: expect.stringMatching(/exported +1 session\r\n/) });
    const twice = await interrupt(() => CTRL_C);
    expect(twice).toEqual({ exitCode: 130, words: expect.not.stringContaining('exported') });
  });
});
