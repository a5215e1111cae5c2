import { mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sessionIdOf, writeNthSession } from '../support/generated.js';
import { appendLines, assistant, user } from '../support/lines.js';
import { Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';

let workplace: Workplace;
let path: string;

beforeEach(async () => {
  workplace = await Workplace.open();
  path = writeNthSession(workplace.projects, 1);
  workplace.letIdle();
});

afterEach(() => workplace.close());

const SESSION = sessionIdOf(1);
const send = async (...args: string[]) => {
  const { stdout, exitCode } = await workplace.backfill('--all', '--json', ...args);
  const [{ outcome, observations }] = JSON.parse(stdout).sessions;
  return { outcome, observations, exitCode };
};
const hook = (event: string, source = 'startup') =>
  workplace.hook({ session_id: SESSION, transcript_path: path, hook_event_name: event, source });
const nothing = { outcome: 'already there', observations: 0, exitCode: 0 };
const exported = (observations: number) => ({ outcome: 'exported', observations, exitCode: 0 });

/** Gives all lines other ids in place: the file keeps its inode and its size, and only its time may say that it has changed. */
function rename(): void {
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll('"uuid":"0', '"uuid":"f'), { flag: 'r+' });
}

describe('a transcript that has not changed since all of it was sent', () => {
  test.each([
    ['a backfill', () => send()],
    ['hooks', () => hook('SessionEnd')],
  ])('by %s is not read again', async (_, sendAll) => {
    await sendAll();
    const { mtime } = statSync(path);
    rename();
    utimesSync(path, mtime, mtime);
    expect(await send()).toEqual(nothing);
    expect(await send('--dry-run')).toEqual(nothing);
    expectEachSentOnce(workplace.server);
    expect(workplace.log).toEqual([]);
  });

  test('is read again with --force', async () => {
    await send();
    expect(await send('--force')).toMatchObject({ outcome: 'exported' });
  });

  test('is read again for turns that ran with tracing off', async () => {
    await hook('SessionStart');
    await hook('SessionEnd');
    appendLines(path, user('untraced', { uuid: 'u8' }), assistant('m8', 'an answer'));
    await hook('SessionStart', 'resume');
    appendLines(path, user('traced', { uuid: 'u9' }), assistant('m9', 'an answer'));
    await hook('SessionEnd');
    expect(workplace.server.roots).toHaveLength(3);
    expect(await send()).toEqual(exported(2));
    expect(await send()).toEqual(nothing);
  });
});

test('a transcript that was rewritten to the same size is read again', async () => {
  await send();
  const { size, ino } = statSync(path);
  const { length } = workplace.server.roots;
  rename();
  expect(statSync(path)).toMatchObject({ size, ino });
  workplace.letIdle();
  await send();
  expect(workplace.server.roots).toHaveLength(2 * length);
});

test('agents are sent that are new, or have grown, beside a transcript that has not changed', async () => {
  await send();
  const agent = join(dirname(path), SESSION, 'subagents', 'agent-a1.jsonl');
  mkdirSync(dirname(agent), { recursive: true });
  const own = { isSidechain: true, agentId: 'a1', sessionId: SESSION, timestamp: new Date().toISOString() };
  for (const n of [1, 2]) {
    appendLines(agent, user(`do ${n}`, { ...own, uuid: `a1-${n}` }), assistant(`a1-m${n}`, `done ${n}`, own));
    workplace.letIdle(agent);
    expect(await send()).toMatchObject({ outcome: 'exported' });
    expect(await send()).toEqual(nothing);
  }
  expect(workplace.server.observations.map(({ output }) => JSON.stringify(output))).toContainEqual(
    expect.stringContaining('done 2'),
  );
});
