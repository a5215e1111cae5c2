import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OtlpSpan } from '../support/langfuse-server.js';
import { type Environment, Workplace } from '../support/program.js';

const EXAMPLE = fileURLToPath(new URL('../../examples/dataset-run.mjs', import.meta.url));
const STAND_IN = fileURLToPath(new URL('../support/claude-stand-in.ts', import.meta.url));
const TSX = import.meta.resolve('tsx');

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
  const folder = join(workplace.home, 'bin');
  mkdirSync(folder);
  const claude = join(folder, 'claude');
  writeFileSync(claude, `#!/bin/sh\nexec '${process.execPath}' --import '${TSX}' '${STAND_IN}' "$@"\n`);
  chmodSync(claude, 0o755);
  workplace.env = { ...workplace.env, PATH: `${folder}${delimiter}${process.env.PATH}` };
  workplace.server.api.datasetItems = [
    { id: 'item-1', input: 'p-simple', datasetId: 'd1', expectedOutput: { text: 'x' } },
    { id: 'item-2', input: 'p-toolloop', datasetId: 'd1' },
  ];
});

afterEach(() => workplace.close());

function example(args: readonly string[], env: Environment = {}) {
  return new Promise<{ exitCode: number | null; stdout: string; stderr: string }>((resolve) => {
    const child = spawn(process.execPath, [EXAMPLE, ...args], {
      env: { ...workplace.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (chunk: Buffer) => {
        output[name] += chunk;
      });
    child.on('close', (exitCode) => resolve({ exitCode, ...output }));
  });
}

const turns = () => workplace.server.observations.filter(({ name }) => name === 'Turn 1');

describe('examples/dataset-run.mjs', () => {
  test('links the items of a dataset to the traces on an older server', async () => {
    workplace.server.isOlder = true;
    const { exitCode, stdout, stderr } = await example(['questions', 'nightly']);
    const [one, two] = turns().map(({ traceId }) => traceId);
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 0, stdout: `item-1 ${one}\nitem-2 ${two}\n`, stderr: '' });
    expect(workplace.server.api.runItems).toEqual([
      { runName: 'nightly', datasetItemId: 'item-1', traceId: one },
      { runName: 'nightly', datasetItemId: 'item-2', traceId: two },
    ]);
    expect(new Set(turns().map(({ trace }) => trace.sessionId)).size).toBe(2);
  });

  test('makes an experiment on a newer server, whose items cost what the turns cost', async () => {
    workplace.server.api.models.models.push({
      modelName: 'claude-opus-5-5',
      matchPattern: '^claude-opus-5-5$',
      isLangfuseManaged: false,
      prices: { input: 4.4e-6, output: 22e-6 },
    });
    const { exitCode, stderr } = await example(['questions', 'nightly']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const { events, observations } = workplace.server;
    const [one, two, ...more] = events.experimentItems;
    expect(more).toEqual([]);
    expect(one).toMatchObject({
      root: 'item item-1',
      experiment: { name: 'nightly', 'dataset.id': 'd1', 'item.id': 'item-1', 'item.expected_output': '{"text":"x"}' },
    });
    expect(two).toMatchObject({ root: 'item item-2', experiment: { id: one?.experiment?.id, 'item.id': 'item-2' } });
    expect(Math.min(one?.totalCost ?? 0, two?.totalCost ?? 0)).toBeGreaterThan(0);
    const total = events.events.reduce((sum, { totalCost = 0 }) => sum + totalCost, 0);
    expect((one?.totalCost ?? 0) + (two?.totalCost ?? 0)).toBeCloseTo(total, 12);
    const generations = observations.filter(({ type }) => type === 'generation').length;
    // Each item is its own span, which the script sends, and what has a cost.
    expect((one?.observations ?? 0) + (two?.observations ?? 0)).toBe(generations + 2);
    // Some of its tools have failed, which is no error of the item.
    expect(observations.filter(({ level }) => level === 'ERROR')).not.toEqual([]);
    expect(two?.errors).toBe(0);
    expect(events.events.filter(({ name }) => name.startsWith('item ')).map(({ metadata }) => metadata)).toEqual([
      {},
      {},
    ]);
    expect(new Set(observations.map(({ trace }) => trace.name))).toEqual(new Set(['nightly']));
    expect(workplace.server.api.runItems).toEqual([]);
  });

  test('links nothing on a newer server with --dataset-run: it answers 200, and stores nothing', async () => {
    expect(await example(['questions', 'nightly', '--dataset-run'])).toMatchObject({ exitCode: 0 });
    expect(workplace.server.api.runItems).toEqual([]);
    expect(workplace.server.events.experimentItems).toEqual([]);
  });

  test('puts the turns below the spans of the items with --experiment', async () => {
    const sent: OtlpSpan[] = [];
    workplace.server.misbehave = (_, __, spans) => {
      sent.push(...spans);
      return undefined;
    };
    const { exitCode, stderr } = await example(['questions', 'nightly', '--experiment']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const items = sent.filter(({ name }) => name.startsWith('item '));
    const below = turns().map(({ traceId, parentId }) => `${traceId} ${parentId}`);
    expect(items.map(({ traceId, spanId }) => `${traceId} ${spanId}`)).toEqual(below);
    const [first] = items;
    const attributes = first?.attributes.map(({ key, value }) => [key, value?.stringValue]) ?? [];
    expect(Object.fromEntries(attributes)).toEqual({
      'langfuse.trace.name': 'nightly',
      'langfuse.observation.input': 'p-simple',
      'langfuse.observation.output': 'answer to p-simple',
      'langfuse.experiment.id': expect.stringMatching(/^[0-9a-f]{16}$/),
      'langfuse.experiment.name': 'nightly',
      'langfuse.experiment.dataset.id': 'd1',
      'langfuse.experiment.item.id': 'item-1',
      'langfuse.experiment.item.root_observation_id': first?.spanId,
      'langfuse.experiment.item.expected_output': '{"text":"x"}',
    });
  });

  test('reports an item that fails, and runs the others', async () => {
    workplace.server.isOlder = true;
    workplace.server.api.datasetItems = [
      { id: 'bad', input: 'nothing' },
      ...workplace.server.api.datasetItems.slice(0, 1),
    ];
    const { exitCode, stderr } = await example(['questions', 'nightly']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: 'no recording nothing\nbad: claude exited with 1\n' });
    expect(workplace.server.api.runItems.map(({ datasetItemId }) => datasetItemId)).toEqual(['item-1']);
  });

  test('says what to do if the server has no dataset runs', async () => {
    workplace.server.misbehave = ({ url }) => (url?.endsWith('run-items') ? { status: 404 } : undefined);
    workplace.server.isOlder = true;
    workplace.server.api.datasetItems = workplace.server.api.datasetItems.slice(0, 1);
    expect(await example(['questions', 'nightly'])).toMatchObject({
      exitCode: 1,
      stderr: 'item-1: /api/public/dataset-run-items answers 404 (use --experiment if it has no dataset runs)\n',
    });
  });

  test('says in one line that the server refuses the keys', async () => {
    expect(await example(['questions', 'nightly'], { LANGFUSE_SECRET_KEY: 'wrong' })).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'dataset-run: /api/public/dataset-items answers 401\n',
    });
  });

  test.each([
    [[], {}, /^usage: /],
    [['questions', 'nightly', '--oops'], {}, /^usage: /],
    [['questions', 'nightly'], { LANGFUSE_SECRET_KEY: '' }, /LANGFUSE_SECRET_KEY are not set/],
  ])('says what is missing: %j %j', async (args, env, message) => {
    expect(await example(args, env)).toMatchObject({ exitCode: 2, stdout: '', stderr: expect.stringMatching(message) });
  });
});
