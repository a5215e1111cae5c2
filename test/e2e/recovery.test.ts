import { appendFileSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { assistant, at, user } from '../support/lines.js';
import { Workplace } from '../support/program.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const A = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
const B = 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb';
const pathOf = (session: string, project = '-work') =>
  join(workplace.home, '.claude', 'projects', project, `${session}.jsonl`);

/** A turn of two lines at the end of a session's transcript. */
function append(session: string, n: number, path = pathOf(session)): void {
  const lines = [
    user(`question ${n} of ${session}`, { uuid: `${session}-${n}`, timestamp: at(n * 10) }),
    assistant(`${session}-m${n}`, `answer ${n}`, { timestamp: at(n * 10 + 5) }),
  ];
  mkdirSync(dirname(path), { recursive: true });
  appendFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

function letIdle(path: string): void {
  const before = new Date(Date.now() - 11 * 60_000);
  utimesSync(path, before, before);
}

const hook = (session: string, event = 'Stop', path = pathOf(session)) =>
  workplace.hook({ session_id: session, transcript_path: path, hook_event_name: event });
const roots = () =>
  workplace.server.observations
    .filter(({ parentId }) => parentId === undefined)
    .map(({ trace, name }) => `${trace.sessionId} ${name}`);
const arrivals = () => [...workplace.server.arrivals.values()];

describe('a session of which a run failed', () => {
  test('is brought by the next hook of any other, at once and wherever it lies', async () => {
    append(A, 1);
    workplace.server.misbehave = () => ({ status: 401 });
    await hook(A);
    workplace.server.misbehave = () => undefined;
    append(B, 1, pathOf(B, '-elsewhere'));
    await hook(B, 'Stop', pathOf(B, '-elsewhere'));
    expect(roots()).toEqual([`${B} Turn 1`, `${A} Turn 1`]);
    expect(workplace.state[A]).not.toHaveProperty('pending');
    await hook(B, 'SessionEnd', pathOf(B, '-elsewhere'));
    expect(arrivals().every((times) => times === 1)).toBe(true);
  });

  test('that fails again does not stand in the way', async () => {
    append(A, 1);
    workplace.server.misbehave = (_, __, spans) => (JSON.stringify(spans).includes(A) ? { status: 401 } : undefined);
    await hook(A);
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${B} Turn 1`]);
    expect(workplace.state[A]).toMatchObject({ pending: { attempts: 2 } });
  });

  test('is not tried where the session that runs fails itself', async () => {
    append(A, 1);
    append(B, 1);
    workplace.server.misbehave = () => ({ status: 401 });
    await hook(A);
    await hook(B);
    expect(workplace.state[A]).toMatchObject({ pending: { attempts: 1 } });
  });

  test('of another destination is left alone', async () => {
    append(A, 1);
    workplace.server.misbehave = () => ({ status: 401 });
    await hook(A);
    workplace.server.misbehave = () => undefined;
    const path = join(workplace.stateFolder, 'cc-langfuse_state.json');
    writeFileSync(path, JSON.stringify({ [A]: { ...workplace.state[A], destination: 'another' } }));
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${B} Turn 1`]);
  });
});

describe('a session that got no Stop', () => {
  test('is brought once its transcript is idle, by a hook in the same folder', async () => {
    append(A, 1);
    await hook(A, 'SessionStart');
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${B} Turn 1`]);
    letIdle(pathOf(A));
    await hook(B, 'SessionEnd');
    expect(roots()).toEqual([`${B} Turn 1`, `${A} Turn 1`]);
    const { length } = workplace.server.requests;
    await hook(B, 'SessionEnd');
    expect(workplace.server.requests).toHaveLength(length);
  });

  test('after some that did: only what is new is sent', async () => {
    append(A, 1);
    await hook(A);
    append(A, 2);
    letIdle(pathOf(A));
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${A} Turn 1`, `${B} Turn 1`, `${A} Turn 2`]);
    expect(arrivals().every((times) => times === 1)).toBe(true);
  });

  test('but that went on after its end with tracing off is not sent, until it is started with tracing on again', async () => {
    append(A, 1);
    await hook(A);
    await hook(A, 'SessionEnd');
    append(A, 2);
    letIdle(pathOf(A));
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${A} Turn 1`, `${B} Turn 1`]);
    await hook(A, 'SessionStart');
    letIdle(pathOf(A));
    await hook(B);
    expect(roots()).toEqual([`${A} Turn 1`, `${B} Turn 1`, `${A} Turn 2`]);
  });

  test('and whose transcript has been gone for a week is forgotten', async () => {
    append(A, 1);
    append(B, 1);
    await hook(A);
    rmSync(pathOf(A));
    await hook(B);
    expect(Object.keys(workplace.state)).toContain(A);
    const path = join(workplace.stateFolder, 'cc-langfuse_state.json');
    const old = { ...workplace.state[A], updated: new Date(Date.now() - 8 * 86_400_000).toISOString() };
    writeFileSync(path, JSON.stringify({ ...workplace.state, [A]: old }));
    append(B, 2);
    await hook(B);
    expect(Object.keys(workplace.state)).toEqual([B]);
  });

  test('that the state does not know is never sent unasked', async () => {
    append(A, 1);
    letIdle(pathOf(A));
    append(B, 1);
    await hook(B);
    expect(roots()).toEqual([`${B} Turn 1`]);
  });
});
