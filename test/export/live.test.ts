import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Destination } from '../../src/langfuse/destination.js';
import { otherFailure } from '../../src/shared/failure.js';
import { numbersFrom } from '../faults/random.js';
import { Exporter } from '../support/exporter.js';
import type { LangfuseServer, StoredObservation } from '../support/langfuse-server.js';
import { appendLines, assistant, at, SESSION, text, toolResult, toolUse, user } from '../support/lines.js';
import { grow, type Recording, recordings } from '../support/recording.js';
import { changeState } from '../support/state-files.js';
import { describeTraces } from '../support/traces.js';

const isTranscript = (path: string) => /^[0-9a-f-]{36}\.jsonl$/.test(basename(path));

/** Plays a recording, with a live export after each line, and ends all of its sessions. */
async function follow(recording: Recording, exporter: Exporter, partBytes = 250_000): Promise<void> {
  const transcripts = new Set<string>();
  const agentsRead = new Map<string, number>();
  for (const { path } of grow(recording, exporter.folder)) {
    if (isTranscript(path)) transcripts.add(path);
    for (const each of transcripts)
      expect(await exporter.exportLive(each, { agentsRead, partBytes })).toMatchObject({ failure: undefined });
  }
  for (const path of transcripts) expect(await exporter.export(path)).toMatchObject({ failure: undefined });
}

/** What a turn uses later is missing from the tags of its early observations. */
function tracesWithoutTags({ observations }: LangfuseServer): object[] {
  const untagged = observations.map(({ trace, ...rest }) => ({ ...rest, trace: { ...trace, tags: [] } }));
  return withoutTags(describeTraces(untagged));
}

function withoutTags(traces: string): object[] {
  return (JSON.parse(traces) as { tags: string[] }[]).map(({ tags: _, ...rest }) => rest);
}

function expected({ folder }: Recording): object[] {
  return withoutTags(readFileSync(join(folder, 'expected.json'), 'utf8'));
}

function sentAgain(server: LangfuseServer): string[] {
  const again = server.observations.filter((each) => server.timesSent(each) > 1);
  return again.map(({ type, name }) => `${type} ${name}`);
}

describe('a session that is followed becomes the observations in its expected.json, and none is sent twice', () => {
  test.each(recordings())('$name', async (recording) => {
    const exporter = await Exporter.open();
    try {
      await follow(recording, exporter);
      expect(tracesWithoutTags(exporter.server)).toEqual(expected(recording));
      expect(sentAgain(exporter.server)).toEqual([]);
      expect(exporter.server.lost).toBe(0);
    } finally {
      await exporter.close();
    }
  });

  test.each(recordings())('$name, if what is settled is dropped at once', async (recording) => {
    const exporter = await Exporter.open();
    try {
      await follow(recording, exporter, 0);
      expect(tracesWithoutTags(exporter.server)).toEqual(expected(recording));
      expect(sentAgain(exporter.server)).toEqual([]);
    } finally {
      await exporter.close();
    }
  });
});

test('a turn of which an older version overlooked something is sent whole once it is over, and not while it goes on', async () => {
  const exporter = await Exporter.open();
  try {
    const path = join(exporter.folder, `${SESSION}.jsonl`);
    const answer = (n: number) => {
      appendLines(path, assistant(`m${n}`, [toolUse(`t${n}`)], { timestamp: at(2 * n) }));
      appendLines(path, user([toolResult(`t${n}`)], { timestamp: at(2 * n + 1) }));
    };
    const times = () => exporter.server.observations.map((each) => exporter.server.timesSent(each));
    appendLines(path, user('question', { uuid: 'u1', timestamp: at(0) }));
    answer(1);
    expect(await exporter.export(path)).toMatchObject({ failure: undefined });
    const kept = [{ prompts: [0], why: 'overlooked' }];
    changeState(join(exporter.folder, 'state'), SESSION, { kept, roots: undefined }, 'x');
    for (const n of [2, 3, 4]) {
      answer(n);
      expect(await exporter.exportLive(path)).toMatchObject({ failure: undefined });
    }
    expect(Math.max(...times())).toBe(1);
    expect(await exporter.export(path)).toMatchObject({ failure: undefined });
    expect(await exporter.export(path)).toMatchObject({ failure: undefined });
    expect(Math.max(...times())).toBe(2);
    expect(exporter.server.observations).toHaveLength(9);
  } finally {
    await exporter.close();
  }
});

/** A destination that stops in the middle of a request now and then, as if the follower were killed there. */
function unreliable(destination: Destination, random: () => number): Destination {
  return new Proxy(destination, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name !== 'send') return typeof value === 'function' ? value.bind(target) : value;
      const send: Destination['send'] = async (outgoing, limits) => {
        if (random() < 0.5) return target.send(outgoing, limits);
        const some = outgoing.slice(0, Math.floor(random() * outgoing.length));
        const report = some.length > 0 ? await target.send(some, limits) : { dropped: [] };
        return { ...report, settled: some.length, failure: otherFailure('killed') };
      };
      return send;
    },
  });
}

test.each(recordings())(
  '$name becomes the same observations if followers come and go at random and are killed in the middle of requests',
  async (recording) => {
    const random = numbersFrom(recording.name.length * 7 + 1);
    const exporter = await Exporter.open();
    try {
      const transcripts = new Set<string>();
      for (const { path } of grow(recording, exporter.folder)) {
        if (isTranscript(path)) transcripts.add(path);
        if (random() < 0.5) continue;
        const destination = unreliable(exporter.destination, random);
        const partBytes = random() < 0.5 ? 0 : 250_000;
        for (const each of transcripts) await exporter.exportLive(each, { partBytes, destination });
      }
      for (const path of transcripts) expect(await exporter.export(path)).toMatchObject({ failure: undefined });
      expect(tracesWithoutTags(exporter.server)).toEqual(expected(recording));
      expect(sentAgain(exporter.server)).toEqual([]);
    } finally {
      await exporter.close();
    }
  },
);

describe('of a turn that runs', () => {
  const stopped = (id: string, content: unknown, more: object = {}) => {
    const line = assistant(id, content, more) as { message: object };
    return { ...line, message: { ...line.message, stop_reason: 'tool_use' } };
  };
  const prompt = user('question', { uuid: 'u1', timestamp: at(0) });
  const result = (id: string, second: number) => user([toolResult(id)], { timestamp: at(second) });
  const request = (id: string, second: number) => ({ type: 'api-request', id, timestamp: at(second) });
  const shown = ({ observations }: LangfuseServer) =>
    observations.map(
      ({ type, name, metadata }: StoredObservation) => `${type} ${metadata.tool_id ?? metadata.message_id ?? name}`,
    );

  async function growing(use: (add: (...lines: object[]) => Promise<string[]>, exporter: Exporter) => Promise<void>) {
    const exporter = await Exporter.open();
    const path = join(exporter.folder, `${SESSION}.jsonl`);
    let before: string[] = [];
    try {
      await use(async (...lines) => {
        appendLines(path, ...lines);
        await exporter.exportLive(path);
        const now = shown(exporter.server);
        const news = now.filter((each) => !before.includes(each));
        before = now;
        return news;
      }, exporter);
      expect(sentAgain(exporter.server)).toEqual([]);
    } finally {
      await exporter.close();
    }
  }

  test('a call is sent with its result, although its siblings still run', () =>
    growing(async (add) => {
      expect(await add(prompt, assistant('m1', [toolUse('a')]), assistant('m1', [toolUse('b')]))).toEqual([]);
      expect(await add(result('b', 5))).toEqual(['tool b']);
      expect(await add(result('a', 9))).toEqual(['tool a']);
    }));

  test('a response is sent once another one has begun', () =>
    growing(async (add) => {
      expect(await add(prompt, assistant('m1', [toolUse('a')]), result('a', 5))).toEqual(['tool a']);
      expect(await add(assistant('m2', [text('well')], { timestamp: at(7) }))).toEqual(['generation m1']);
    }));

  test('a response is sent once its results are in the next request, but not if a block of it may still come', () =>
    growing(async (add) => {
      expect(await add(prompt, assistant('m1', [toolUse('a')]), result('a', 5), request('r', 6))).toEqual(['tool a']);
      expect(await add(stopped('m1', [toolUse('b')], { timestamp: at(6) }))).toEqual([]);
      expect(await add(result('b', 8))).toEqual(['tool b']);
      expect(await add(request('r2', 9))).toEqual(['generation m1']);
    }));

  test('an answer that its Stop has sent is not sent again, although the turn goes on', () =>
    growing(async (add, exporter) => {
      await add(prompt, assistant('m1', [text('An answer')], { timestamp: at(3) }));
      const path = join(exporter.folder, `${SESSION}.jsonl`);
      await exporter.export(path);
      const feedback = { isMeta: true, uuid: 'f1', timestamp: at(4) };
      expect(await add(user('Stop hook feedback:\nNot yet.', feedback))).toContain('event stop hook feedback');
      await add(assistant('m2', [text('Another answer')], { timestamp: at(6) }));
      const before = exporter.server.observations.find(({ metadata }) => metadata.message_id === 'm1');
      await exporter.exportLive(path);
      expect(before && exporter.server.timesSent(before)).toBe(1);
    }));

  test('a call that never gets a result is sent when its turn is over', () =>
    growing(async (add, exporter) => {
      await add(prompt, assistant('m1', [toolUse('a')]), assistant('m1', [toolUse('b')]), result('b', 5));
      await exporter.export(join(exporter.folder, `${SESSION}.jsonl`));
      expect(shown(exporter.server).toSorted()).toEqual(['agent Turn 1', 'generation m1', 'tool a', 'tool b']);
    }));
});
