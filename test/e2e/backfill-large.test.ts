import { statSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type GeneratedSession, writeNthSession } from '../support/generated.js';
import { Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const write = (n: number, more: Partial<GeneratedSession> = {}) => writeNthSession(workplace.projects, n, more);

describe('a large backfill', () => {
  test('exports 400 sessions, and finds them exported when it is run again', async () => {
    for (let n = 1; n <= 400; n += 1) write(n, { turns: 1, startsAt: Date.now() - n * 3_600_000 });
    const { exitCode, stdout } = await workplace.backfill('--all');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^exported {2}400 sessions\nsent: 400 turns, 1,200 generations, 800 tools,/);
    expect(Object.keys(workplace.state)).toHaveLength(400);
    expectEachSentOnce(workplace.server);
    expect((await workplace.backfill('--all')).stdout).toMatch(/^already there {2}400 sessions\n/);
  });

  test('exports a session of 200 MB with a heap of 64 MB', async () => {
    const path = write(1, { turns: 600, resultChars: 20_000, requestChars: 145_000 });
    expect(statSync(path).size).toBeGreaterThan(196_000_000);
    workplace.env = { ...workplace.env, NODE_OPTIONS: '--max-old-space-size=64' };
    const { exitCode, stderr, stdout } = await workplace.backfill('--all');
    expect({ exitCode, stderr: stderr.replaceAll(/^.*MB\/s.*\n/gm, '') }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toContain('sent: 600 turns, 1,800 generations, 1,200 tools');
  });
});
