import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listTexts } from '../../src/commands/sessions/text-filter.js';
import { isRecord, parseJson } from '../../src/shared/json.js';
import { sessionIdOf } from '../support/generated.js';
import { jsonLines, user } from '../support/lines.js';
import { run, Workplace } from '../support/program.js';
import { recordings } from '../support/recording.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const index = () => join(workplace.stateFolder, 'cc-langfuse_index');
const stdoutOf = async (...args: string[]) => (await run(args, workplace.env)).stdout;
const COMMANDS = [
  ['sessions', '--limit', 'all', '--json'],
  ['sessions', '--limit', 'all'],
  ['status', '--json'],
  ['cost', '--by', 'session', '--json'],
];
/** What the commands print that share the index, all at the same time. */
const listAll = async () => Promise.all(COMMANDS.map((args) => stdoutOf(...args)));

async function write(n: number, prompt: string): Promise<string> {
  const path = workplace.transcriptOf(sessionIdOf(n));
  mkdirSync(dirname(path), { recursive: true });
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: `m${n}`, role: 'assistant', model: 'claude-opus-5', content: 'yes', usage };
  writeFileSync(path, jsonLines([user(prompt, { sessionId: sessionIdOf(n) }), { type: 'assistant', message }]));
  utimesSync(path, 1_700_000_000, 1_700_000_000);
  return path;
}

const titles = async () =>
  JSON.parse(await stdoutOf('sessions', '--json')).map(({ title }: { title: string }) => title);

describe('all recordings', () => {
  const projects = () => readdirSync(workplace.projects).map((name) => join(workplace.projects, name));

  beforeEach(async () => {
    for (const { folder } of recordings())
      cpSync(join(folder, 'projects'), workplace.projects, { recursive: true, force: true });
    const all: { sessionId: string }[] = JSON.parse(await stdoutOf('sessions', '--limit', 'all', '--json'));
    const ids = all.filter((_, place) => place % 2 === 0).map(({ sessionId }) => sessionId);
    const { stderr, exitCode } = await run(['backfill', '--yes', '--quiet', '--include-open', ...ids], workplace.env);
    expect([exitCode, stderr]).toEqual([0, '']);
  });

  test('are listed the same with the index as without it', async () => {
    const alone: string[] = [];
    for (const args of COMMANDS) {
      rmSync(index(), { force: true });
      alone.push(await stdoutOf(...args));
    }
    expect(alone[0]).toMatch(/"state": "exported"[\s\S]*"state": "not"|"state": "not"[\s\S]*"state": "exported"/);
    for (const _ of ['filled by others', 'filled']) expect(await listAll()).toEqual(alone);
  });

  test('leave nothing in the index that was said', async () => {
    await listAll();
    await stdoutOf('sessions', '--search', 'the');
    await stdoutOf('cost', '--by', 'tool');
    const causes = readFileSync(join(workplace.stateFolder, 'cc-langfuse_causes'), 'utf8');
    expect(causes).toContain('"part":"Bash"');
    const known = readFileSync(index(), 'utf8') + causes;
    const said = projects()
      .flatMap((project) =>
        readdirSync(project, { recursive: true, encoding: 'utf8' }).map((each) => join(project, each)),
      )
      .filter((path) => path.endsWith('.jsonl'))
      .flatMap((path) => readFileSync(path, 'utf8').split('\n'))
      .map(parseJson)
      .flatMap((line) =>
        isRecord(line) && isRecord(line.message)
          ? listTexts([line.message.content, line.toolUseResult])
          : listTexts(isRecord(line) ? [line.customTitle, line.aiTitle, line.summary] : []),
      )
      .flatMap((text) => text.split('\n'))
      .filter((text) => /\w \w/.test(text));
    expect(said.length).toBeGreaterThan(1_000);
    expect(said.filter((text) => known.includes(text) || known.includes(JSON.stringify(text).slice(1, -1)))).toEqual(
      [],
    );
  });
});

describe('a transcript is read again', () => {
  test('if it has grown', async () => {
    const path = await write(1, 'one');
    expect(await titles()).toEqual(['one']);
    expect(await titles()).toEqual(['one']);
    appendFileSync(path, jsonLines([{ type: 'custom-title', customTitle: 'mine', sessionId: sessionIdOf(1) }]));
    expect(await titles()).toEqual(['mine']);
  });

  test('if another one of the same size and time has taken its place', async () => {
    mkdirSync(workplace.stateFolder, { recursive: true });
    const path = await write(1, 'one');
    const before = JSON.parse(await stdoutOf('cost', '--json', '--by', 'session'));
    const { mtime } = statSync(path);
    writeFileSync(
      `${path}.new`,
      readFileSync(path, 'utf8').replace('"one"', '"two"').replace('"input_tokens":1', '"input_tokens":2'),
    );
    utimesSync(`${path}.new`, mtime, mtime);
    renameSync(`${path}.new`, path);
    expect(await titles()).toEqual(['two']);
    const after = JSON.parse(await stdoutOf('cost', '--json', '--by', 'session'));
    expect([before.total.tokens, after.total.tokens]).toEqual([2, 3]);
  });

  test('if the index is damaged, or another version has written it', async () => {
    mkdirSync(workplace.stateFolder, { recursive: true });
    await write(1, 'one');
    const list = () => stdoutOf('sessions', '--json');
    const before = await list();
    const whole = readFileSync(index(), 'utf8');
    for (const damaged of [
      whole.slice(0, -9),
      whole.replace('"bytes":', '"bytes":1'),
      whole.replace(' index 1', ' index 0'),
      '',
    ]) {
      expect(damaged).not.toBe(whole);
      writeFileSync(index(), damaged);
      expect(await list()).toBe(before);
      expect(readFileSync(index(), 'utf8')).toBe(whole);
    }
  });
});

test('a transcript that is gone is no longer in it', async () => {
  mkdirSync(workplace.stateFolder, { recursive: true });
  const path = await write(1, 'one');
  await write(2, 'two');
  await listAll();
  expect(readFileSync(index(), 'utf8')).toContain(path);
  rmSync(path);
  expect(await titles()).toEqual(['two']);
  expect(readFileSync(index(), 'utf8')).not.toContain(path);
});

test('what a killed process has left of it is removed once it is old', async () => {
  mkdirSync(workplace.stateFolder, { recursive: true });
  const [old, fresh] = [`${index()}.4711-1`, `${index()}.4711-2`];
  for (const path of [old, fresh]) writeFileSync(path, 'half of it');
  const yesterday = new Date(Date.now() - 86_400_000);
  utimesSync(old, yesterday, yesterday);
  await write(1, 'one');
  await stdoutOf('sessions');
  expect([old, fresh].map((path) => existsSync(path))).toEqual([false, true]);
});

test('only its owner can read it, and who only lists creates no folder for it', async () => {
  await write(1, 'one');
  for (const args of [['sessions'], ['status'], ['doctor'], ['sessions', '--search', 'one']]) await stdoutOf(...args);
  expect(existsSync(workplace.stateFolder)).toBe(false);
  mkdirSync(workplace.stateFolder, { recursive: true });
  for (const args of [['sessions'], ['status'], ['doctor'], ['sessions', '--search', 'one']]) {
    rmSync(index(), { force: true });
    await stdoutOf(...args);
    expect([args, statSync(index()).mode & 0o777]).toEqual([args, 0o600]);
  }
});
