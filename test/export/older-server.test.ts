import { appendFileSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Exporter } from '../support/exporter.js';
import { assistant, at, jsonLines, toolResult, toolUse, user } from '../support/lines.js';
import { recording, recordings, transcriptsOf } from '../support/recording.js';
import { describeTraces } from '../support/traces.js';

let exporter: Exporter;

beforeEach(async () => {
  exporter = await Exporter.open();
  exporter.server.isOlder = true;
});

afterEach(() => exporter.close());

interface Described {
  readonly observations: { type: string; start: string; end: string; metadata: { [key: string]: unknown } }[];
}

/** Converts observations to the types of the ingestion API: spans, generations, and events without an end. */
function asIngested(expected: string): unknown {
  const traces: Described[] = JSON.parse(expected);
  for (const observation of traces.flatMap(({ observations }) => observations)) {
    const { type } = observation;
    if (type === 'event') observation.end = observation.start;
    if (type !== 'agent' && type !== 'tool') continue;
    observation.type = 'span';
    observation.metadata.observation_type = type;
  }
  return traces;
}

const expectedOf = (name: string) => readFileSync(join(recording(name).folder, 'expected.json'), 'utf8');
const described = () => JSON.parse(describeTraces(exporter.server.observations));
const events = () => exporter.server.ingested.events;

describe('an older server shows the same as a newer one for a recorded session, except for the types of its API', () => {
  test.each(recordings())('$name', async (recording) => {
    for (const path of transcriptsOf(recording)) {
      expect(await exporter.export(path)).toMatchObject({ failure: undefined });
    }
    expect(described()).toEqual(asIngested(expectedOf(recording.name)));
  });
});

test('an older server gets user, tags, environment and release', async () => {
  const [path = ''] = transcriptsOf(recording('p-simple'));
  await exporter.export(path, {
    LANGFUSE_USER_ID: 'me',
    LANGFUSE_TAGS: 'a,b',
    CC_LANGFUSE_AUTO_TAGS: 'none',
    LANGFUSE_TRACING_ENVIRONMENT: 'ci',
    LANGFUSE_RELEASE: 'v1',
    LANGFUSE_METADATA: '{"n":1}',
  });
  expect(described()).toMatchObject([
    { userId: 'me', tags: ['a', 'b'], environment: 'ci', release: 'v1', metadata: { n: 1, source: 'claude-code' } },
  ]);
  expect(new Set(events().map(({ body }) => body.environment))).toEqual(new Set(['ci']));
});

test('an older server gets tokens by kind, and in the form of version 2', async () => {
  const [path = ''] = transcriptsOf(recording('i-simple'));
  await exporter.export(path);
  const generation = events().find(({ type }) => type === 'generation-create')?.body;
  expect(generation).toMatchObject({
    usageDetails: { input: 172, output: 17, total: expect.any(Number), cache_read_input_tokens: expect.any(Number) },
    usage: { input: 172, output: 17, total: expect.any(Number), unit: 'TOKENS' },
  });
});

describe('an event of the ingestion API', () => {
  const turn = [
    user('q', { uuid: 'u', timestamp: at(1) }),
    assistant('m1', [toolUse('t')], { timestamp: at(2) }),
    user([toolResult('t')], { timestamp: at(3) }),
    assistant('m2', 'first answer', { timestamp: at(4) }),
  ];
  const path = () => join(exporter.folder, '66666666-6666-4666-8666-666666666666.jsonl');
  const append = (...lines: object[]) => appendFileSync(path(), jsonLines(lines));

  test('is sent with a new id for a turn that has grown, but not for an observation that is the same', async () => {
    append(...turn);
    await exporter.export(path());
    const before = events().map(({ id }) => id);
    expect(before).toHaveLength(5);
    expect(new Set(before).size).toBe(5);
    append(assistant('m3', 'second answer', { timestamp: at(9) }));
    await exporter.export(path());
    const grown = events().slice(before.length);
    expect(grown.map(({ type }) => type)).toEqual(['generation-create', 'trace-create', 'span-create']);
    for (const { id } of grown) expect(before).not.toContain(id);
    const root = exporter.server.observations.find(({ parentId }) => parentId === undefined);
    expect(root).toMatchObject({ output: { content: 'second answer' }, endTime: Date.parse(at(9)) });
  });

  test('that is sent again has the same id', async () => {
    append(...turn);
    exporter.server.misbehave = (_, number) => (number === 1 ? { disconnect: 'after taking' } : undefined);
    await exporter.export(path());
    const ids = events().map(({ id }) => id);
    expect(ids).toEqual(Array.from({ length: 10 }, () => expect.stringMatching(/^[0-9a-f]+-[0-9a-f]{16}$/)));
    expect(ids.slice(5)).toEqual(ids.slice(0, 5));
  });
});

test('large observations are split into requests that an older server accepts', async () => {
  const path = join(exporter.folder, '66666666-6666-4666-8666-666666666666.jsonl');
  const long = (words: string) => `${words} `.repeat(1_200_000 / words.length);
  const lines = [1, 2].flatMap((n) => [
    user(long(`question ${n}`), { uuid: `u${n}`, timestamp: at(n * 10) }),
    assistant(`m${n}`, long(`answer ${n}`), { timestamp: at(n * 10 + 1) }),
  ]);
  appendFileSync(path, jsonLines(lines));
  expect(await exporter.export(path, { CC_LANGFUSE_MAX_CHARS: '10000000' })).toMatchObject({ failure: undefined });
  const taken = exporter.server.requests.filter(({ events }) => events > 0);
  expect(taken.length).toBeGreaterThan(1);
  expect(Math.max(...taken.map(({ bytes }) => bytes))).toBeLessThan(3_000_000);
  expect(described()).toHaveLength(2);
  for (const { observations } of described()) {
    const [{ input, output }] = observations;
    expect(input[0].content.length + output.content.length).toBeGreaterThan(2_300_000);
  }
});

describe('a transcript that is exported while an older server fails at random', () => {
  test('arrives completely', async () => {
    const [source = ''] = transcriptsOf(recording('p-streamjson'));
    let requests = 0;
    exporter.server.ingested.refuse = () => {
      requests += 1;
      return requests % 7 === 0 ? 500 : undefined;
    };
    exporter.server.misbehave = ({ url }, number) =>
      url === '/api/public/ingestion' && number % 3 === 2 ? { status: 401 } : undefined;
    const failures: (string | undefined)[] = [];
    do failures.push((await exporter.export(source)).failure?.text);
    while (failures.at(-1) !== undefined);
    expect(failures.length).toBeGreaterThan(1);
    expect(described()).toEqual(asIngested(expectedOf('p-streamjson')));
    expect(basename(source)).toContain(String(described()[0].sessionId));
  });
});
