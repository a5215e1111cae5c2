import { cpSync, mkdtempSync, readFileSync, renameSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readAllUsage } from '../../src/costs/read-usage.js';
import { recording, recordings, transcriptsOf } from '../support/recording.js';
import { removeFolder } from '../support/remove-folder.js';

let root: string;
let state: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cc-langfuse-costs-'));
  state = join(root, 'state');
});

afterEach(() => removeFolder(root));

const rememberedIn = (folder: string) => readFileSync(join(folder, 'cc-langfuse_index'), 'utf8');

const several = recordings().filter((each) => transcriptsOf(each).length > 1);

test('some recordings have several sessions', () => {
  expect(several.length).toBeGreaterThan(5);
});

test.each(several)('what one session of $name used is the same if the others are not asked for', (each) => {
  const whole = readAllUsage(each.folder, state);
  const remembered = rememberedIn(state);
  for (const path of transcriptsOf(each)) {
    const sessionId = basename(path, '.jsonl');
    const find = (sessions: typeof whole) => sessions.find((session) => session.sessionId === sessionId);
    expect(find(whole)).toBeDefined();
    expect(find(readAllUsage(each.folder, state, { wanted: [path] }))).toEqual(find(whole));
    expect(rememberedIn(state)).toBe(remembered);
  }
});

test('a session that has moved to another project is counted once, also if the others are not asked for', () => {
  const [from = ''] = transcriptsOf(recording('i-simple'));
  const [before, after] = [join(root, 'projects', '-before'), join(root, 'projects', '-after')];
  cpSync(from, join(before, basename(from)));
  const [whole] = readAllUsage(root, state);
  renameSync(before, after);
  const path = join(after, basename(from));
  expect(readAllUsage(root, state, { wanted: [path] })).toEqual([{ ...whole, path }]);
  expect(rememberedIn(state)).not.toContain('-before');
});
