import { copyFileSync, cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { Exporter } from '../support/exporter.js';
import type { StoredObservation } from '../support/langfuse-server.js';
import { appendLines, assistant, at, SESSION, toolResult, toolUse, user } from '../support/lines.js';
import { recordings, transcriptsOf } from '../support/recording.js';

/** Parts of a turn are sent at every response after which something is settled. */
const SMALLEST_PARTS = { partBytes: 0 };
const NO_PARTS = { partBytes: Number.POSITIVE_INFINITY };

/** Without tags: what a turn uses after a part of it was sent is on its later observations only. */
function withoutTags(observations: readonly StoredObservation[]) {
  return observations
    .map(({ trace: { tags: _, ...trace }, ...rest }) => ({ ...rest, trace }))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

async function withTwo(use: (whole: Exporter, inParts: Exporter) => Promise<void>): Promise<void> {
  const [whole, inParts] = [await Exporter.open(), await Exporter.open()];
  try {
    await use(whole, inParts);
    expect(withoutTags(inParts.server.observations)).toEqual(withoutTags(whole.server.observations));
    expect(inParts.server.lost).toBe(0);
  } finally {
    await whole.close();
    await inParts.close();
  }
}

test.each(recordings())(
  '$name becomes the same observations if each turn is sent in as many parts as possible',
  (recording) =>
    withTwo(async (whole, inParts) => {
      for (const path of transcriptsOf(recording)) {
        await whole.export(path, {}, {}, NO_PARTS);
        await inParts.export(path, {}, {}, SMALLEST_PARTS);
      }
    }),
);

test('an answer that was cut several times is whole although runs go on between its parts', async () => {
  const cut = (id: string, words: string, seconds: number) => {
    const { message, ...rest } = assistant(id, words, { timestamp: at(seconds) }) as { message: object };
    return { ...rest, message: { ...message, stop_reason: 'max_tokens' } };
  };
  const resume = (seconds: number) =>
    user('Output token limit hit. Resume directly', { isMeta: true, turnCompanion: true, timestamp: at(seconds) });
  const lines = [
    user('go', { uuid: 'u1', timestamp: at(0) }),
    cut('m1', 'one', 1),
    resume(2),
    cut('m2', 'two', 3),
    resume(4),
    cut('m3', 'three', 5),
    resume(6),
    assistant('m4', 'four', { timestamp: at(7) }),
  ];
  const exporter = await Exporter.open();
  try {
    const path = join(exporter.folder, `${SESSION}.jsonl`);
    for (const line of lines) {
      appendLines(path, line);
      await exporter.export(path, {}, {}, SMALLEST_PARTS);
    }
    const root = exporter.server.observations.find(({ name }) => name === 'Turn 1');
    expect(root?.output).toEqual({ role: 'assistant', name: 'Claude', content: 'one\ntwo\nthree\nfour' });
  } finally {
    await exporter.close();
  }
});

test('a retry counts for the response that follows, whether or not a run ends between them', () =>
  withTwo(async (whole, inParts) => {
    const retry = (n: number) => ({
      type: 'system',
      subtype: 'api_error',
      retryAttempt: n,
      uuid: `r${n}`,
      timestamp: at(n),
    });
    const call = (n: number) => [
      assistant(`m${n}`, [toolUse(`t${n}`)], { uuid: `a${n}`, timestamp: at(n) }),
      user([toolResult(`t${n}`)], { uuid: `b${n}`, timestamp: at(n) }),
    ];
    const lines = [
      user('go', { uuid: 'u1', timestamp: at(0) }),
      ...[...call(1), ...call(2), retry(3), retry(4), ...call(5), ...call(6), retry(7), ...call(8), ...call(9)],
      assistant('m10', 'done', { timestamp: at(10) }),
    ];
    for (const exporter of [whole, inParts]) {
      const path = join(exporter.folder, `${SESSION}.jsonl`);
      for (const line of lines) {
        appendLines(path, line);
        if (exporter === inParts) await exporter.exportLive(path, SMALLEST_PARTS);
      }
      await exporter.export(path, {}, {}, exporter === whole ? NO_PARTS : SMALLEST_PARTS);
    }
    const retries = inParts.server.observations.flatMap(({ metadata: { message_id, retries } }) =>
      retries === undefined ? [] : [[message_id, retries]],
    );
    expect(retries).toEqual([
      ['m5', 2],
      ['m8', 1],
    ]);
  }));

test.each(recordings())('$name becomes the same observations if runs go on in the middle of its turns', (recording) =>
  withTwo(async (whole, inParts) => {
    for (const path of transcriptsOf(recording)) {
      const lines = readFileSync(path, 'utf8').split('\n');
      const step = Math.max(1, Math.ceil(lines.length / 12));
      for (const exporter of [whole, inParts]) {
        const copy = join(exporter.folder, basename(path));
        const agents = path.replace(/\.jsonl$/, '');
        if (existsSync(agents)) cpSync(agents, copy.replace(/\.jsonl$/, ''), { recursive: true });
        for (let count = step; count < lines.length; count += step) {
          writeFileSync(
            copy,
            lines
              .slice(0, count)
              .map((line) => `${line}\n`)
              .join(''),
          );
          await exporter.export(copy, {}, {}, exporter === whole ? NO_PARTS : SMALLEST_PARTS);
        }
        copyFileSync(path, copy);
        await exporter.export(copy, {}, {}, exporter === whole ? NO_PARTS : SMALLEST_PARTS);
      }
    }
  }),
);
