import { describe, expect, test } from 'vitest';
import { buildSubagent } from '../../../src/observations/build/agents.js';
import { buildTrace } from '../../../src/observations/build/trace.js';
import { buildTurn } from '../../../src/observations/build/turn.js';
import type { Observation } from '../../../src/observations/model.js';
import { type Turn, toThread } from '../../../src/transcript/turns/turn.js';
import { readTranscript } from '../../support/langfuse-transcript.js';
import { assistant, at, groupTurns, SESSION, text, toolResult, toolUse, user } from '../../support/lines.js';
import { recording, recordings, transcriptsOf } from '../../support/recording.js';
import { OPTIONS, turnsOf } from '../../support/traces.js';

const IN_TURNS = { ...OPTIONS, sessionId: SESSION, input: 'turn' } as const;

function build(turn: Turn | undefined, options: Partial<typeof OPTIONS> = {}): Observation[] {
  if (!turn) throw new Error('no turn');
  const { children, root } = buildTurn(turn, { ...IN_TURNS, ...options });
  return [...children, root];
}

const generationsOf = (all: readonly Observation[]) => all.filter(({ type }) => type === 'generation');
const inputsOf = (all: readonly Observation[]) => generationsOf(all).map(({ input }) => input);

/** A turn of several steps: each reads a file, and the last one answers. */
function steps(count: number, words = (n: number) => `file ${n}`): Turn | undefined {
  const reads = Array.from({ length: count }, (_, n) => [
    assistant(`m${n}`, [text(`I read ${n}.`), toolUse(`t${n}`, 'Read', { path: `${n}` })], {
      timestamp: at(2 * n + 1),
    }),
    user([toolResult(`t${n}`, words(n))], { timestamp: at(2 * n + 2) }),
  ]).flat();
  const end = assistant('end', 'done', { timestamp: at(2 * count + 1) });
  return groupTurns([user('go', { uuid: 'u', timestamp: at(0) }), ...reads, end]).all[0];
}

const asked = { role: 'user', content: 'go' };
const read = (n: number) => ({
  role: 'assistant',
  content: `I read ${n}.`,
  tool_calls: [{ id: `t${n}`, type: 'function', function: { name: 'Read', arguments: `{"path":"${n}"}` } }],
});
const result = (n: number) => ({ role: 'tool', name: 'Read', tool_call_id: `t${n}`, content: `file ${n}` });

describe('the inputs of generations with CC_LANGFUSE_INPUT=turn', () => {
  test('are all messages of the turn so far', () => {
    expect(inputsOf(build(steps(2)))).toEqual([
      [asked],
      [asked, read(0), result(0)],
      [asked, read(0), result(0), read(1), result(1)],
    ]);
  });

  test('are one conversation for Langfuse, whereas each is one of its own if it has only what it answers', () => {
    const lines = [
      'user: go',
      'assistant: I read 0. [Read]',
      'tool: file 0',
      'assistant: I read 1. [Read]',
      'tool: file 1',
    ];
    expect(readTranscript(build(steps(2)))).toEqual([[...lines, 'assistant: done']]);
    expect(readTranscript(build(steps(2), { input: 'answered' }))).toEqual([
      lines.slice(0, 3),
      ['tool: file 0', ...lines.slice(3)],
      ['tool: file 1', 'assistant: done'],
    ]);
  });

  test('are the same if only some generations are built, in whatever order they are asked for', () => {
    const whole = generationsOf(build(steps(4)));
    const turn = steps(4) as Turn;
    for (const places of [[3], [1, 4], [4, 2], [0, 0, 2]]) {
      const { children } = buildTurn(turn, IN_TURNS, undefined, (parts) => {
        const generations = parts.filter(({ key }) => key === 'end' || key?.startsWith('m'));
        return places.flatMap((place) => generations[place] ?? []);
      });
      expect([...children]).toEqual(places.map((place) => whole[place]));
    }
  });

  test('differ from the others in nothing else', () => {
    const without = (all: readonly Observation[]) => all.map(({ input: _, media: __, ...rest }) => rest);
    for (const each of recordings())
      for (const path of transcriptsOf(each))
        for (const turn of turnsOf(path))
          expect(without(build(turn))).toEqual(without(build(turn, { input: 'answered' })));
  });

  test('begin anew if they would be too long, and say how much is left out', () => {
    const turn = steps(6, (n) => `${n}`.repeat(300));
    const all = build(turn, { maxChars: 1_000 });
    const sizes = generationsOf(all).map(({ input }) => JSON.stringify(input).length);
    expect(Math.max(...sizes)).toBeLessThan(1_600);
    const mark = (count: number) => ({ role: 'system', content: `[${count} earlier messages left out]` });
    expect(inputsOf(all).map((input) => (Array.isArray(input) ? [input[0], input.length] : input))).toEqual([
      [asked, 1],
      [asked, 3],
      [asked, 5],
      [mark(6), 2],
      [mark(6), 4],
      [mark(10), 2],
      [mark(10), 4],
    ]);
    expect(readTranscript(all).map((thread) => thread.length)).toEqual([7, 6, 5]);
  });

  test('keep no more than 20 images', () => {
    const image = (n: number) => ({
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: btoa(`image ${n}`) },
    });
    const lines = Array.from({ length: 22 }, (_, n) => [
      assistant(`m${n}`, [toolUse(`t${n}`)]),
      user([toolResult(`t${n}`, [image(n)])]),
    ]).flat();
    const [turn] = groupTurns([user('go', { uuid: 'u' }), ...lines, assistant('end', 'done')]).all;
    const counts = generationsOf(build(turn)).map(({ media = [] }) => media.length);
    expect(counts).toEqual([...Array(21).keys(), 1, 2]);
  });

  test.each(['no_tool_io', 'metadata'] as const)('repeat nothing that may not leave with %s', (capture) => {
    const words = (all: readonly Observation[]) => new Set(JSON.stringify(inputsOf(all)).match(/\w+/g));
    const [turn] = turnsOf(transcriptsOf(recording('p-toolloop'))[0] as string);
    const answered = build(turn, { capture, input: 'answered' });
    const allowed = new Set([
      ...words(answered),
      ...(JSON.stringify(answered.map(({ output }) => output)).match(/\w+/g) ?? []),
    ]);
    expect([...words(build(turn, { capture }))].filter((word) => !allowed.has(word))).toEqual([]);
  });

  test('of an agent that was continued go on with what it said before', () => {
    const turns = groupTurns([
      user('look', { uuid: 'a', timestamp: at(0) }),
      assistant('m1', 'seen', { timestamp: at(1) }),
      user('and here?', { uuid: 'b', timestamp: at(2) }),
      assistant('m2', 'seen, too', { timestamp: at(3) }),
    ]).all;
    const thread = toThread(turns, 'a1', 'a1');
    if (!thread || !turns[0]) throw new Error('no thread');
    const agent = { thread, type: 'Explore', description: undefined, isBackground: false };
    const place = { trace: buildTrace(turns[0], IN_TURNS), parentId: 'f'.repeat(16) };
    const { children, root } = buildSubagent(agent, place, IN_TURNS);
    expect(readTranscript([...children, root])).toEqual([
      ['user: look', 'assistant: seen', 'user: and here?', 'assistant: seen, too'],
    ]);
  });
});
