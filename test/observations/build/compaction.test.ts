import { describe, expect, test } from 'vitest';
import { buildTurn } from '../../../src/observations/build/turn.js';
import { assistant, at, groupTurns, ms, SESSION, toolResult, toolUse, user } from '../../support/lines.js';
import { OPTIONS } from '../../support/traces.js';

const MODEL = 'claude-opus-5';

/** What an account says of one model: input, output, cache read, cache writes for 5 minutes and for 1 hour. */
function counted(input: number, output: number, read: number, for5m: number, for1h: number): object {
  return {
    inputTokens: input,
    outputTokens: output,
    cacheReadInputTokens: read,
    cacheCreationInputTokens: for5m + for1h,
    cacheCreationEphemeral5mInputTokens: for5m,
    cacheCreationEphemeral1hInputTokens: for1h,
  };
}

const account = (modelUsage: object) => ({ type: 'cost-state', modelUsage });
const prompt = (more: object = {}) => user('go', { uuid: 'u1', timestamp: at(1), entrypoint: 'sdk-cli', ...more });
const boundary = {
  type: 'system',
  subtype: 'compact_boundary',
  uuid: 'c1',
  timestamp: at(5),
  compactMetadata: { trigger: 'auto', preTokens: 9_000, durationMs: 1_500 },
};

function answer(id: string, content: unknown = 'done', more: object = {}): object {
  const line = assistant(id, content, { timestamp: at(8), ...more }) as { message: object };
  const usage = {
    input_tokens: 10,
    output_tokens: 20,
    cache_read_input_tokens: 1_000,
    cache_creation_input_tokens: 150,
    cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 50 },
  };
  return { ...line, message: { ...line.message, usage } };
}

const BEFORE = account({ [MODEL]: counted(5, 6, 7, 8, 9) });
const AFTER = account({ [MODEL]: counted(5 + 10 + 3, 6 + 20 + 4, 7 + 1_000 + 300, 8 + 100 + 40, 9 + 50 + 2) });

/** Lines that follow an earlier turn. */
function build(...lines: object[]) {
  const { all } = groupTurns([user('before', { uuid: 'u-1' }), assistant('m-1', 'before'), ...lines]);
  return all.flatMap((turn) => [...buildTurn(turn, { ...OPTIONS, sessionId: SESSION }).children]);
}

const compactions = (...lines: object[]) =>
  build(...lines).filter(({ type, name }) => type === 'generation' && name === 'compaction');

/** The tokens of an advisor that the response asked are in the account, too. */
function advised(id: string): object {
  const line = answer(id) as { message: { usage: object } };
  const iterations = [{ type: 'advisor_message', model: 'claude-opus-4-7', input_tokens: 70, output_tokens: 80 }];
  return { ...line, message: { ...line.message, usage: { ...line.message.usage, iterations } } };
}

describe('a compaction', () => {
  test('has no tokens of an advisor', () => {
    const told = { 'claude-opus-4-7': counted(70, 80, 0, 0, 0) };
    const before = account({ [MODEL]: counted(5, 6, 7, 8, 9) });
    const after = account({ [MODEL]: counted(5 + 10 + 3, 6 + 20 + 4, 7 + 1_000, 8 + 100, 9 + 50), ...told });
    const lines = [before, prompt(), boundary, advised('m1'), after];
    expect(build(...lines).find(({ type }) => type === 'event')?.metadata).toMatchObject({
      input_tokens: 3,
      output_tokens: 4,
    });
    expect(compactions(...lines)).toMatchObject([{ model: MODEL, usage: { input: 3, output: 4, total: 7 } }]);
  });

  test('is a generation with the tokens that the account has in addition to those of the lines', () => {
    const [generation, ...more] = compactions(BEFORE, prompt(), boundary, answer('m1'), AFTER);
    expect(more).toEqual([]);
    expect(generation).toMatchObject({
      model: MODEL,
      startTime: ms(5) - 1_500,
      endTime: ms(5),
      metadata: { compaction_trigger: 'auto' },
      usage: {
        input: 3,
        output: 4,
        cache_read_input_tokens: 300,
        input_cache_creation_5m: 40,
        input_cache_creation_1h: 2,
        total: 349,
      },
      line: 7,
    });
  });

  test('ran where the responses beside it did', () => {
    const inUs = JSON.parse(JSON.stringify(answer('m1')).replace('"usage":{', '$&"inference_geo":"us",'));
    expect(compactions(BEFORE, prompt(), boundary, inUs, AFTER)[0]?.modelParameters).toEqual({ inference_geo: 'us' });
    expect(compactions(BEFORE, prompt(), boundary, answer('m1'), AFTER)[0]?.modelParameters).toBeUndefined();
  });

  test('is still an event, which keeps its id', () => {
    const ids = (...lines: object[]) => build(...lines).flatMap(({ type, id }) => (type === 'event' ? [id] : []));
    const known = ids(BEFORE, prompt(), boundary, answer('m1'), AFTER);
    expect(known).toHaveLength(1);
    expect(ids(prompt(), boundary, answer('m1'))).toEqual(known);
  });

  test.each([-1, 0.5, 1e300])('has no duration if the line says %d ms', (durationMs) => {
    const odd = { ...boundary, compactMetadata: { durationMs } };
    expect(compactions(BEFORE, prompt(), odd, answer('m1'), AFTER)).toMatchObject([
      { startTime: ms(5), endTime: ms(5) },
    ]);
  });

  test.each<[string, object[]]>([
    ['the account comes later', [BEFORE, prompt(), boundary, answer('m1')]],
    ['there was no account before', [prompt(), boundary, answer('m1'), AFTER]],
    ['it was in the terminal', [BEFORE, prompt({ entrypoint: 'cli' }), boundary, answer('m1'), AFTER]],
    ['there were two', [BEFORE, prompt(), boundary, { ...boundary, uuid: 'c2' }, answer('m1'), AFTER]],
    ['an answer was aborted', [BEFORE, prompt(), boundary, answer('m1', 'x', { isAbortedMidStream: true }), AFTER]],
    [
      'a tool may have asked a model',
      [
        BEFORE,
        prompt(),
        boundary,
        answer('m0', [toolUse('t1', 'WebFetch')]),
        user([toolResult('t1')]),
        answer('m1'),
        account({ [MODEL]: counted(99, 99, 9_999, 999, 999) }),
      ],
    ],
    [
      'a command ran as an agent',
      [
        BEFORE,
        user('/review', { uuid: 'c' }),
        {
          type: 'system',
          subtype: 'local_command',
          content: '<local-command-stdout>fine</local-command-stdout>',
          parentUuid: 'c',
        },
        prompt(),
        boundary,
        answer('m1'),
        AFTER,
      ],
    ],
    [
      'two models were used',
      [
        BEFORE,
        prompt(),
        boundary,
        answer('m1'),
        account({ [MODEL]: counted(18, 30, 1_307, 148, 61), 'claude-haiku-4-5': counted(1, 1, 1, 1, 1) }),
      ],
    ],
    [
      'another model was used',
      [
        BEFORE,
        prompt(),
        boundary,
        answer('m1'),
        account({ [MODEL]: counted(15, 26, 1_007, 108, 59), 'claude-haiku-4-5': counted(1, 1, 1, 1, 1) }),
      ],
    ],
    [
      'the account lacks tokens that a line has',
      [BEFORE, prompt(), boundary, answer('m1'), account({ [MODEL]: counted(18, 30, 1_307, 107, 61) })],
    ],
    [
      'an earlier turn is not in the account',
      [BEFORE, prompt({ uuid: 'u0' }), answer('m0'), prompt(), boundary, answer('m1'), AFTER],
    ],
  ])('is only an event if %s', (_, lines) => {
    expect(compactions(...lines)).toEqual([]);
  });
});
