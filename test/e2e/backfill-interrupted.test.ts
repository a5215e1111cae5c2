import type { ChildProcess } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { numbersFrom } from '../faults/random.js';
import { sessionIdOf, writeNthSession } from '../support/generated.js';
import { appendTurn } from '../support/lines.js';
import { type Ended, run, Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { describeTraces } from '../support/traces.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const ANSWER_DELAY_MS = 40;

const isExport = (url = '') => url.includes('otel');

/**
 * Starts a backfill, and sends it a signal some time after so many requests with spans have come. The last of them and those that
 * come meanwhile are answered after the signal, so that it never comes too late.
 */
function backfillUntil(place: Workplace, request: number, signal: NodeJS.Signals, delayMs = 0): Promise<Ended> {
  let backfill: ChildProcess | undefined;
  let requests = 0;
  let signalled: Promise<void> | undefined;
  const interrupt = async () => {
    await sleep(delayMs);
    backfill?.kill(signal);
    await sleep(ANSWER_DELAY_MS);
  };
  place.server.misbehave = ({ url }, _, spans) => {
    // Before anything is sent, an empty request tries the keys.
    if (!isExport(url) || spans.length === 0) return undefined;
    requests += 1;
    if (requests < request) return { delayMs: ANSWER_DELAY_MS };
    signalled ??= interrupt();
    return { after: signalled };
  };
  const started = run(['backfill', '--yes', '--all', '--concurrency', '2'], place.env, '', {
    onStart: (child) => {
      backfill = child;
    },
  });
  return started.finally(() => {
    place.server.misbehave = () => undefined;
  });
}

describe('a backfill that is interrupted', () => {
  test('at any point and then run again exports what an uninterrupted one does', async () => {
    const sessions = 6;
    for (let n = 1; n <= sessions; n += 1) writeNthSession(workplace.projects, n, { turns: 20 });
    await workplace.backfill('--all');
    const whole = describeTraces(workplace.server.observations);
    const random = numbersFrom(20_261_118);
    for (let request = 0; request < sessions; request += 1) {
      for (const signal of ['SIGKILL', 'SIGINT'] as const) {
        const own = await Workplace.open();
        try {
          cpSync(workplace.projects, own.projects, { recursive: true, preserveTimestamps: true });
          const { exitCode } = await backfillUntil(own, request, signal, random() * 60);
          expect({ request, signal, exitCode }).not.toMatchObject({ exitCode: 0 });
          expect(await run(['backfill', '--yes', '--all'], own.env)).toMatchObject({ exitCode: 0 });
          expect(describeTraces(own.server.observations)).toBe(whole);
          // After SIGKILL it is unknown whether the requests under way arrived, so they are sent again.
          if (signal === 'SIGINT') expectEachSentOnce(own.server);
        } finally {
          await own.close();
        }
      }
    }
  });

  test('by Ctrl-C says what is done, exits with 130, and leaves nothing for hooks to continue', async () => {
    for (let n = 1; n <= 6; n += 1) writeNthSession(workplace.projects, n, { turns: 4 });
    const { exitCode, stdout, stderr } = await backfillUntil(workplace, 2, 'SIGINT');
    expect(exitCode).toBe(130);
    expect(stderr).toContain('stopping after the requests under way');
    expect(stdout).toMatch(/exported +\d sessions?\n(?:stopped|not tried) +\d sessions?/);
    expect(Object.values(workplace.state).filter(({ pending }) => pending)).toEqual([]);
    const exported = () => new Set(workplace.server.roots.map(({ trace }) => trace.sessionId));
    const before = exported();
    expect([1, 2, 3, 4, 5]).toContain(before.size);
    const path = writeNthSession(workplace.projects, 99, { turns: 1, startsAt: Date.now() });
    await workplace.hook({ session_id: sessionIdOf(99), transcript_path: path, hook_event_name: 'Stop' });
    expect(exported()).toEqual(before.add(sessionIdOf(99)));
  });

  /** A session that takes several requests. */
  function writeLargeSession(): string {
    const path = writeNthSession(workplace.projects, 1, { turns: 20 });
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('the quick brown fox', 'x'.repeat(9_000)));
    workplace.letIdle();
    return path;
  }

  test('in the middle of a session leaves the rest to the next backfill: the hooks of that session do not send it', async () => {
    const path = writeLargeSession();
    expect(await backfillUntil(workplace, 1, 'SIGINT')).toMatchObject({ exitCode: 130 });
    const names = () => workplace.server.roots.map(({ name }) => name);
    const before = names();
    expect(before.length).toBeLessThan(20);
    const hook = (event: string, more: object = {}) =>
      workplace.hookAlone({ session_id: sessionIdOf(1), transcript_path: path, hook_event_name: event, ...more });
    await hook('SessionStart', { source: 'resume' });
    appendTurn(path, 21);
    await hook('Stop', { prompt_id: 'p21' });
    await hook('SessionEnd');
    expect(names()).toEqual([...before, 'Turn 21']);
    workplace.letIdle();
    await workplace.backfill('--all');
    expect(names().toSorted()).toEqual(Array.from({ length: 21 }, (_, n) => `Turn ${n + 1}`).toSorted());
    expectEachSentOnce(workplace.server);
  });

  test('in the middle of a session does not call it exported: the next run sends the rest', async () => {
    writeLargeSession();
    expect(await backfillUntil(workplace, 1, 'SIGINT')).toMatchObject({
      exitCode: 130,
      stdout: expect.stringContaining('stopped  1 session'),
    });
    expect(workplace.server.roots.length).toBeLessThan(20);
    expect(await workplace.backfill('--all')).toMatchObject({ exitCode: 0 });
    expect(workplace.server.roots).toHaveLength(20);
    expectEachSentOnce(workplace.server);
  });
});
