import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Stop } from '../../src/state/facts.js';
import { StateStore } from '../../src/state/store.js';
import { hashAnswer } from '../../src/transcript/turns/answer.js';
import { numbersFrom } from '../faults/random.js';
import { Exporter } from '../support/exporter.js';
import { assistant, at, jsonLines, SESSION, toolUse, user } from '../support/lines.js';
import { recording, recordings, transcriptsOf } from '../support/recording.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { describeTraces, withoutShared } from '../support/traces.js';

let exporter: Exporter;

beforeEach(async () => {
  exporter = await Exporter.open();
});

afterEach(() => exporter.close());

describe('a transcript that is exported after every single line', () => {
  test.each([
    'i-simple',
    'h-block1',
    'i-queue',
    'i-interrupt',
    'i-slash',
    'p-e500x2',
    'p-emid',
    'p-bigusage',
    'v1.0.128-toolloop',
    'q-twop',
    'q-twoterm',
    'q-hookstop',
  ])('becomes the same observations as one that is exported once: %s', async (name) => {
    const [source = ''] = transcriptsOf(recording(name));
    const path = join(exporter.folder, basename(source));
    const lines = readFileSync(source, 'utf8').trimEnd().split('\n');
    for (const [place] of lines.entries()) {
      writeFileSync(path, `${lines.slice(0, place + 1).join('\n')}\n`);
      expect(await exporter.export(path)).toMatchObject({ failure: undefined });
    }
    const expected = JSON.parse(readFileSync(join(recording(name).folder, 'expected.json'), 'utf8'));
    expect(JSON.parse(describeTraces(exporter.server.observations))).toEqual(expected);
    expect(exporter.server.repeated).toEqual([]);
    expect(exporter.server.lost).toBe(0);
  });
});

describe('the turns of all recordings below one span', () => {
  test('are in the trace of that span, and no two of their observations have the same id', async () => {
    const own = await Exporter.open();
    try {
      const parent = { trace: 'c'.repeat(32), span: 'd'.repeat(16) };
      for (const path of recordings().flatMap(transcriptsOf)) {
        await own.export(path, {}, { parent });
        await exporter.export(path);
      }
      const { observations } = own.server;
      const ids = observations.flatMap(({ traceId, id }) => (traceId === parent.trace ? [id] : []));
      expect(new Set(ids).size).toBe(ids.length);
      expect(observations).toHaveLength(exporter.server.observations.length);
      const hasRoot = ({ name }: { name: string }) => /^Turn \d+$/.test(name);
      const roots = observations.filter(hasRoot);
      expect(roots).toHaveLength(exporter.server.observations.filter(hasRoot).length);
      expect(new Set(roots.map(({ traceId, parentId }) => `${traceId} ${parentId}`))).toEqual(
        new Set([`${parent.trace} ${parent.span}`]),
      );
    } finally {
      await own.close();
    }
  });
});

describe('the cost of a compaction', () => {
  const usage = (input_tokens: number) => ({ input_tokens, output_tokens: 1 });
  const turn = (n: number) => [
    user(`q${n}`, { uuid: `u${n}`, timestamp: at(n * 10) }),
    {
      type: 'assistant',
      timestamp: at(n * 10 + 1),
      message: { id: `m${n}`, model: 'claude-opus-5', content: 'a', usage: usage(10) },
    },
  ];
  const compaction = {
    type: 'system',
    subtype: 'compact_boundary',
    uuid: 'c',
    timestamp: at(35),
    compactMetadata: { trigger: 'manual' },
  };
  const account = (inputTokens: number, outputTokens: number) => ({
    type: 'cost-state',
    modelUsage: {
      'claude-opus-5': { inputTokens, outputTokens, cacheReadInputTokens: 0, cacheCreationInputTokens: 0 },
    },
  });
  const agentCall = {
    type: 'assistant',
    message: { id: 'x', model: 'm', content: [toolUse('t', 'Agent')], usage: usage(1) },
  };

  /** Appends and exports one piece after the other. Returns what the server has in the end. */
  async function exported(pieces: readonly (readonly object[])[]) {
    const own = await Exporter.open();
    try {
      const path = join(own.folder, '66666666-6666-4666-8666-666666666666.jsonl');
      for (const piece of pieces) {
        appendFileSync(path, jsonLines(piece));
        await own.export(path);
      }
      const { server } = own;
      const event = server.observations.find(({ name }) => name === 'compaction');
      return {
        metadata: withoutShared(event?.metadata ?? {}, event?.trace.metadata ?? {}),
        server,
        all: describeTraces(server.observations),
      };
    } finally {
      await own.close();
    }
  }

  test.each([
    ['the turn before it', [turn(1), [account(10, 1)], [...turn(2), ...turn(3), compaction, account(130, 8)], turn(4)]],
    [
      'a prompt that was taken back',
      [turn(1), [account(10, 1), ...turn(2)], turn(3), [compaction, account(130, 8)], turn(4)],
    ],
  ])('is the same live and in a backfill, and nothing is sent again for it: after %s', async (_, pieces) => {
    const live = await exported(pieces);
    const late = await exported([pieces.flat(), turn(5)]);
    expect(live.metadata).toEqual({
      compaction_trigger: 'manual',
      input_tokens: 100,
      output_tokens: 5,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
    });
    expect(late.metadata).toEqual(live.metadata);
    expectEachSentOnce(late.server);
    expect(live.all).toBe((await exported([pieces.flat()])).all);
  });

  test('is left out if the account includes an agent or another compaction', async () => {
    const withAgent = [...turn(1), account(10, 1), ...turn(2), agentCall, compaction, account(500, 9)];
    expect((await exported([withAgent])).metadata).toEqual({ compaction_trigger: 'manual' });
    const two = [...turn(1), account(10, 1), ...turn(2), compaction, { ...compaction, uuid: 'd' }, account(500, 9)];
    expect((await exported([two])).metadata).toEqual({ compaction_trigger: 'manual' });
  });
});

describe('the last line of a transcript', () => {
  const path = () => join(exporter.folder, '77777777-7777-4777-8777-777777777777.jsonl');

  test('is not reported if only half of it has been written, and is read once it is whole', async () => {
    const [question, answer] = [user('q', { uuid: 'u' }), assistant('m1', 'first')];
    const last = JSON.stringify(assistant('m2', 'second'));
    writeFileSync(path(), `${jsonLines([question, answer])}${last.slice(0, 40)}`);
    await exporter.export(path());
    expect(exporter.log).not.toContain('cannot be read');
    appendFileSync(path(), `${last.slice(40)}\n`);
    await exporter.export(path());
    const generations = exporter.server.observations.filter(({ type }) => type === 'generation');
    expect(generations.map(({ metadata }) => metadata.message_id)).toEqual(['m1', 'm2']);
  });

  test('is reported if it cannot be read although it is whole', async () => {
    writeFileSync(path(), `${jsonLines([user('q', { uuid: 'u' }), assistant('m1', 'first')])}{"half\n`);
    await exporter.export(path());
    expect(exporter.log).toContain('skipped a line that cannot be read');
  });
});

test('the answer of a Stop is not waited for if the clock was set back since', async () => {
  const path = join(exporter.folder, `${SESSION}.jsonl`);
  writeFileSync(path, jsonLines([user('q', { uuid: 'u', promptId: 'p' }), assistant('m1', 'first')]));
  const stop: Stop = {
    kind: 'stop',
    at: Date.now() + 3_600_000,
    run: { destination: 'x', given: {} },
    bytes: 1_000,
    promptId: 'p',
    answer: hashAnswer('never written'),
    isAfterFeedback: false,
    running: [],
  };
  await new StateStore(join(exporter.folder, 'state')).update(SESSION, { path, facts: [stop] });
  // If it were waited for, that would never end while time stands still.
  vi.useFakeTimers({ toFake: ['Date'] });
  try {
    await exporter.export(path);
  } finally {
    vi.useRealTimers();
  }
  expect(exporter.server.roots).toHaveLength(1);
});

describe('the title of a session', () => {
  test('is known to a run that begins after its line', async () => {
    const path = join(exporter.folder, '77777777-7777-4777-8777-777777777777.jsonl');
    const turn = (n: number) => [user(`q${n}`, { uuid: `u${n}` }), assistant(`m${n}`, 'a')];
    const append = (...lines: object[]) => appendFileSync(path, jsonLines(lines));
    append({ type: 'custom-title', customTitle: 'mine' }, ...turn(1));
    await exporter.export(path);
    append(...turn(2));
    await exporter.export(path);
    append(...turn(3), { type: 'ai-title', aiTitle: 'made up' }, ...turn(4));
    await exporter.export(path);
    const roots = exporter.server.observations.filter(({ parentId }) => parentId === undefined);
    expect(roots.map(({ metadata }) => metadata.session_title)).toEqual(['mine', 'mine', 'mine', 'mine']);
  });
});

describe('a transcript that is exported while the server fails at random', () => {
  test.each([
    ['p-streamjson', 1],
    ['p-streamjson', 2],
    ['p-streamjson', 3],
    ['q-twoterm', 4],
    ['q-twop', 5],
  ])('arrives completely, and what was acknowledged is not sent again: %s (seed %i)', async (name, seed) => {
    const [source = ''] = transcriptsOf(recording(name));
    const random = numbersFrom(seed);
    exporter.server.misbehave = (_, __, spans) => {
      if (spans.length === 0) return undefined;
      if (spans.length > 3) return { status: 413 };
      return random() < 0.3 ? { status: 401 } : undefined;
    };
    const failures: (string | undefined)[] = [];
    do failures.push((await exporter.export(source)).failure?.text);
    while (failures.at(-1) !== undefined);
    expect(failures.length).toBeGreaterThan(1);
    const expected = JSON.parse(readFileSync(join(recording(name).folder, 'expected.json'), 'utf8'));
    expect(JSON.parse(describeTraces(exporter.server.observations))).toEqual(expected);
    expectEachSentOnce(exporter.server);
  });
});
