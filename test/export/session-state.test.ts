import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SessionStates } from '../../src/export/session-state.js';
import { StateStore } from '../../src/state/store.js';
import { recallOverview } from '../../src/transcript/sessions/overview.js';
import { SessionIndex } from '../../src/transcript/sessions/session-index.js';
import { sessionIdOf } from '../support/generated.js';
import { assistant, jsonLines, user } from '../support/lines.js';
import { removeFolder } from '../support/remove-folder.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-state-'));
});

afterEach(() => removeFolder(folder));

const pathOf = (n: number) => join(folder, `${sessionIdOf(n)}.jsonl`);

/** Lines of turns, whose prompts name the session `of`. */
const turns = (of: number, ...numbers: number[]) =>
  jsonLines(
    numbers.flatMap((number) => [
      user(`question ${number}`, { uuid: `u${number}`, sessionId: sessionIdOf(of) }),
      assistant(`m${number}`, 'yes', { uuid: `a${number}`, sessionId: sessionIdOf(of) }),
    ]),
  );

/** How many turns of the second session no run is known for, as the next command finds out. */
async function countUntraced(): Promise<number | undefined> {
  const index = new SessionIndex(folder);
  const session = recallOverview(pathOf(2), index);
  if (!session) return undefined;
  const { untraced } = await new SessionStates(new StateStore(folder), {}, 'd', index).find(session);
  index.save();
  return untraced;
}

async function writeBoth(): Promise<void> {
  writeFileSync(pathOf(1), turns(1, 1, 2));
  writeFileSync(pathOf(2), turns(1, 1, 2) + turns(2, 3));
  await new StateStore(folder).update(sessionIdOf(2), { path: pathOf(2) });
}

test('turns of a fork are counted again once its parent has changed', async () => {
  await writeBoth();
  expect(await countUntraced()).toBe(1);
  expect(await countUntraced()).toBe(1);
  writeFileSync(pathOf(1), turns(1, 1, 4));
  expect(await countUntraced()).toBe(2);
  writeFileSync(pathOf(1), turns(1, 1, 2));
  expect(await countUntraced()).toBe(1);
});

test('a transcript is not read again while neither it nor its state has changed', async () => {
  await writeBoth();
  const then = new Date();
  utimesSync(pathOf(2), then, then);
  expect(await countUntraced()).toBe(1);
  const text = readFileSync(pathOf(2), 'utf8');
  writeFileSync(pathOf(2), text.replaceAll(sessionIdOf(1), sessionIdOf(2)));
  utimesSync(pathOf(2), then, then);
  expect(await countUntraced()).toBe(1);
  await new StateStore(folder).update(sessionIdOf(2), { first: 'u3' });
  expect(await countUntraced()).toBe(3);
  rmSync(join(folder, 'cc-langfuse_sessions'), { recursive: true });
  expect(await countUntraced()).toBe(0);
});
