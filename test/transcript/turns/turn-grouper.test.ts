import { describe, expect, test } from 'vitest';
import { answerText } from '../../../src/observations/content/messages.js';
import type { Turn } from '../../../src/transcript/turns/turn.js';
import { assistant, at, groupTurns, ms, SESSION, text, toolResult, toolUse, user } from '../../support/lines.js';

/** A turn as who said what. */
function told(turn: Turn) {
  return {
    number: turn.number,
    prompts: turn.prompts.map(({ content }) => content),
    answers: turn.responses.map(answerText),
    tools: turn.responses.flatMap(({ calls }) => calls.map(({ id, result }) => [id, result?.content])),
  };
}

describe('the worked examples of the transcript documents', () => {
  test('a tool result is no prompt: reading a file is one turn', () => {
    const { all } = groupTurns([
      { sessionId: SESSION, type: 'user', content: 'read a file' },
      { message: { id: 'm1', role: 'assistant', content: [toolUse('t1', 'Read', { path: '/' })] } },
      { type: 'user', content: [toolResult('t1', 'file data')] },
      { message: { id: 'm2', role: 'assistant', content: [text('done')] } },
    ]);
    expect(all.map(told)).toEqual([
      { number: 1, prompts: ['read a file'], answers: ['', 'done'], tools: [['t1', 'file data']] },
    ]);
    expect(all[0]?.lineNumbers).toEqual([1, 2, 3, 4]);
  });

  test('lines that do not parse never shift lineOffsets', () => {
    const { ended, open } = groupTurns([
      'no JSON at all',
      user('one'),
      '{"torn":',
      assistant('m1', [text('first')]),
      'again no JSON',
      user('two'),
      assistant('m2', [text('second')]),
    ]);
    expect(ended.map(({ lineNumbers }) => lineNumbers)).toEqual([[2, 4]]);
    expect(open?.lineNumbers).toEqual([6, 7]);
  });

  test('the message with a role but no type is an assistant line, its content a string or blocks', () => {
    const { all } = groupTurns([
      { type: 'user', content: [text('hello')] },
      { timestamp: at(5), message: { id: 'm1', role: 'assistant', content: 'hi there' } },
      { type: 'user', content: 'second question' },
      { timestamp: at(9), message: { id: 'm2', role: 'assistant', content: [text('second answer')] } },
    ]);
    expect(all.map(told)).toEqual([
      { number: 1, prompts: ['hello'], answers: ['hi there'], tools: [] },
      { number: 2, prompts: ['second question'], answers: ['second answer'], tools: [] },
    ]);
  });

  test('content nested in the message wins over content beside it', () => {
    const { all } = groupTurns([
      { type: 'user', content: 'outer', message: { content: 'inner' } },
      assistant('m1', [text('yes')], { content: 'not this' }),
    ]);
    expect(all.map(told)).toEqual([{ number: 1, prompts: ['inner'], answers: ['yes'], tools: [] }]);
  });

  test('a timestamp beside the message wins over one in it, and one that is no string does not count', () => {
    const { all } = groupTurns([
      user('one', { timestamp: at(1), message: { content: 'one', timestamp: at(2) } }),
      { timestamp: 12, message: { id: 'm1', role: 'assistant', content: 'x', timestamp: at(3) } },
      { timestamp: 12, message: { id: 'm2', role: 'assistant', content: 'y' } },
    ]);
    const [turn] = all;
    expect(turn?.prompts[0].at).toBe(ms(1));
    expect(turn?.responses.map(({ firstBlockAt }) => firstBlockAt)).toEqual([ms(3), ms(3)]);
  });

  test('the lines of one message id are one response, whatever stands between them', () => {
    const { all } = groupTurns([
      user('go'),
      assistant('m1', [text('part one')]),
      assistant('m1', [toolUse('t1')]),
      user([toolResult('t1')]),
      assistant('m1', [text('part two')]),
      assistant('m2', [text('end')]),
    ]);
    expect(all.map(told)).toEqual([
      { number: 1, prompts: ['go'], answers: ['part one\npart two', 'end'], tools: [['t1', 'done']] },
    ]);
  });

  test('assistant lines without an id are merged with their neighbours that have none either', () => {
    const { all } = groupTurns([
      user('go'),
      assistant(undefined, [text('a')]),
      user('meta', { isMeta: true }),
      assistant(undefined, [toolUse('t1')]),
      user([toolResult('t1')]),
      assistant(undefined, [text('b')]),
      assistant('m1', [text('c')]),
      assistant(undefined, [text('d')], { requestId: 'r1' }),
      user('what is meant?', { isMeta: true }),
      assistant(undefined, [text('e')], { requestId: 'r1' }),
    ]);
    expect(all.map(told)).toEqual([
      { number: 1, prompts: ['go'], answers: ['a', 'b', 'c', 'd\ne'], tools: [['t1', 'done']] },
    ]);
  });

  test('a user without an assistant is no turn yet, and is not counted', () => {
    const { ended, open } = groupTurns([user('one'), assistant('m1', [text('first')]), user('two')]);
    expect(ended.map(told)).toEqual([{ number: 1, prompts: ['one'], answers: ['first'], tools: [] }]);
    expect(open).toBeUndefined();
  });

  test('meta lines, of users and assistants, may stand anywhere and are as if they were not', () => {
    const { all } = groupTurns([
      user('skill scaffolding', { isMeta: true }),
      user('fix it'),
      user('rubric', { isMeta: true }),
      assistant('m0', 'meta response', { isMeta: true }),
      assistant('m1', [text('fixed')]),
      user('more rubric', { isMeta: true }),
    ]);
    expect(all.map(told)).toEqual([{ number: 1, prompts: ['fix it'], answers: ['fixed'], tools: [] }]);
    expect(all[0]?.lineNumbers).toEqual([2, 5]);
  });

  test('a call without a result has none', () => {
    const { all } = groupTurns([user('go'), assistant('m1', [toolUse('t1')]), user([toolResult('t9')])]);
    expect(all.map(told)).toEqual([{ number: 1, prompts: ['go'], answers: [''], tools: [['t1', undefined]] }]);
  });

  test('of lines that a stream repeated the largest usage stands, and a block counts once', () => {
    const usage = (output_tokens: number) => ({ input_tokens: 9, output_tokens });
    const line = (output: number, ...content: object[]) => ({
      message: { id: 'm1', role: 'assistant', model: 'claude-opus-4', content, usage: usage(output) },
    });
    const thinking = { type: 'thinking', thinking: 'hm', signature: 'x' };
    const { all } = groupTurns([
      user('go'),
      line(2, thinking),
      line(480, text('I will'), toolUse('t1')),
      line(2, thinking),
      line(2, text('I will'), toolUse('t1')),
    ]);
    const [response, ...more] = all[0]?.responses ?? [];
    expect(more).toEqual([]);
    expect(response?.usage).toMatchObject({ input_tokens: 9, output_tokens: 480 });
    expect(response?.blocks.map(({ kind }) => kind)).toEqual(['thinking', 'text', 'tool_use']);
    expect(response?.calls.map(({ id }) => id)).toEqual(['t1']);
  });

  test('what the program itself said in the name of a model is no response', () => {
    const { all } = groupTurns([
      user('one'),
      { message: { id: 'm0', role: 'assistant', model: '<synthetic>', content: 'No response requested.' } },
      user('two'),
      assistant('m1', 'answer'),
    ]);
    expect(all.map(told)).toEqual([{ number: 1, prompts: ['two'], answers: ['answer'], tools: [] }]);
  });
});

describe('which lines are prompts', () => {
  test('a local command and its output are none', () => {
    const { all } = groupTurns([
      user('<local-command-caveat>…</local-command-caveat>', { isMeta: true }),
      user('<command-name>/clear</command-name>\n<command-message>clear</command-message>'),
      user('<local-command-stdout></local-command-stdout>'),
      user('<command-name>/model</command-name>'),
      { type: 'system', subtype: 'local_command', content: '<local-command-stdout>Sonnet</local-command-stdout>' },
      user('hello'),
      assistant('m1', 'hi'),
    ]);
    expect(all.map(told)).toEqual([{ number: 1, prompts: ['hello'], answers: ['hi'], tools: [] }]);
  });

  test('a local command in the middle of a turn does not end it', () => {
    const { all } = groupTurns([
      user('go'),
      assistant('m1', [toolUse('t1')]),
      user('<command-name>/context</command-name>'),
      user('<local-command-stdout>12k</local-command-stdout>'),
      user([toolResult('t1')]),
      assistant('m2', 'done'),
    ]);
    expect(all.map(told)).toEqual([{ number: 1, prompts: ['go'], answers: ['', 'done'], tools: [['t1', 'done']] }]);
  });

  test("a command of the user's own is a prompt, also in versions that do not mark it", () => {
    const command = '<command-message>fix</command-message>\n<command-name>/fix</command-name>';
    const { all } = groupTurns([
      user('one'),
      assistant('m1', 'first'),
      user(command),
      user('the body of the command', { isMeta: true }),
      assistant('m2', 'fixed'),
    ]);
    expect(all.map(told)).toEqual([
      { number: 1, prompts: ['one'], answers: ['first'], tools: [] },
      { number: 2, prompts: ['/fix'], answers: ['fixed'], tools: [] },
    ]);
  });

  test('a prompt behind a command that never got its output is not swallowed', () => {
    const command = '<command-name>/exit</command-name>';
    const { all } = groupTurns([
      user('one', { uuid: 'a' }),
      assistant('m1', 'first', { uuid: 'b', parentUuid: 'a' }),
      user(command, { uuid: 'c', parentUuid: 'b' }),
      user('two', { uuid: 'd', parentUuid: 'b' }),
      assistant('m2', 'second', { uuid: 'e', parentUuid: 'd' }),
    ]);
    expect(all.map(told)).toEqual([
      { number: 1, prompts: ['one'], answers: ['first'], tools: [] },
      { number: 2, prompts: ['two'], answers: ['second'], tools: [] },
    ]);
  });

  test("what happens behind a command of one's own is of its turn, and the turn starts at the command", () => {
    const { all } = groupTurns([
      user('one'),
      assistant('m1', 'first'),
      user('<command-name>/fix</command-name>'),
      { type: 'system', subtype: 'api_error', retryAttempt: 1 },
      user('the body', { isMeta: true }),
      assistant('m2', 'fixed'),
      user('[Request interrupted by user]'),
    ]);
    expect(all.map(({ start, notes }) => ({ line: start.line, notes: notes.map(({ kind }) => kind) }))).toEqual([
      { line: 1, notes: [] },
      { line: 3, notes: ['retry', 'interrupt'] },
    ]);
  });

  test('the summary of a compaction and an interrupt are none', () => {
    const { all } = groupTurns([
      user('one'),
      assistant('m1', 'first'),
      { type: 'system', subtype: 'compact_boundary', compactMetadata: { trigger: 'manual', preTokens: 9 } },
      user('This session is being continued…', { isCompactSummary: true, isVisibleInTranscriptOnly: true }),
      user('two'),
      assistant('m2', 'sec'),
      user([text('[Request interrupted by user]')]),
    ]);
    expect(all.map(told)).toEqual([
      { number: 1, prompts: ['one'], answers: ['first'], tools: [] },
      { number: 2, prompts: ['two'], answers: ['sec'], tools: [] },
    ]);
    expect(all.map(({ notes }) => notes.map(({ kind }) => kind))).toEqual([['compaction'], ['interrupt']]);
  });

  test('what a subagent wrote into the main file is not of the main thread', () => {
    const { all } = groupTurns([
      user('go'),
      assistant('m1', [toolUse('t1', 'Task')]),
      user('do the work', { isSidechain: true }),
      assistant('s1', 'working', { isSidechain: true }),
      user([toolResult('t1')]),
      assistant('m2', 'done'),
    ]);
    expect(all.map(told)).toEqual([{ number: 1, prompts: ['go'], answers: ['', 'done'], tools: [['t1', 'done']] }]);
  });
});

describe('what a prompt says to a person', () => {
  const prompt = (content: unknown, more: object = {}, ...lines: object[]) => {
    const [turn] = groupTurns([user(content, more), ...lines, assistant('m1', 'ok')]).all;
    const { content: words = '' } = turn?.prompts[0] ?? {};
    return { words, trigger: turn?.context.trigger, ide: turn?.context.ide, skill: turn?.skill };
  };
  const human = { origin: { kind: 'human' } };
  const call = (name: string, args: string) =>
    `<command-message>${name}</command-message>\n<command-name>/${name}</command-name>\n<command-args>${args}</command-args>`;

  test('a command and its arguments as they were typed', () => {
    expect(prompt(call('mycmd', 'foo bar'), human)).toEqual({ words: '/mycmd foo bar', trigger: 'command' });
    expect(prompt(call('mycmd', ''), human)).toEqual({ words: '/mycmd', trigger: 'command' });
  });

  test('a skill is known by its body', () => {
    const body = user([text('Base directory for this skill: /x\n\nBody')], { isMeta: true, turnCompanion: true });
    expect(prompt(call('myskill', 'a b'), human, body)).toEqual({
      words: '/myskill a b',
      trigger: 'command',
      skill: 'myskill',
    });
  });

  test('what was run with ! before it is answered', () => {
    const output = user('<bash-stdout>out</bash-stdout><bash-stderr>err</bash-stderr>');
    const [turn] = groupTurns([user('<bash-input>echo out</bash-input>'), output, assistant('m1', 'ok')]).all;
    expect(turn?.prompts.map(({ content }) => content)).toEqual(['!echo out']);
    expect(turn?.responses[0]?.answered).toEqual([
      { role: 'user', content: '!echo out', media: [] },
      { role: 'user', content: 'out\nerr' },
    ]);
  });

  test('the result of a background task, and a plan that starts by itself, say so', () => {
    expect(prompt('<task-notification>…', { origin: { kind: 'task-notification' } }).trigger).toBe('task-notification');
    expect(prompt('Implement the plan', { origin: { kind: 'auto-continuation' } }).trigger).toBe('auto-continuation');
  });

  test('what was selected or open in the editor is not said by the user', () => {
    const content = [
      text('<ide_selection>The user selected line 7</ide_selection>'),
      text('<ide_opened_file>The user opened a.ts</ide_opened_file>'),
      text('fix this'),
    ];
    expect(prompt(content)).toEqual({
      words: 'fix this',
      trigger: 'human',
      ide: { selection: 'The user selected line 7', opened_file: 'The user opened a.ts' },
    });
    expect(prompt('<ide_opened_file>b.ts</ide_opened_file>\ngo on')).toMatchObject({ words: 'go on' });
    expect(prompt('say <ide_selection>x</ide_selection>')).toMatchObject({
      words: 'say <ide_selection>x</ide_selection>',
    });
  });
});

describe('prompts that follow one another', () => {
  const attachment = (uuid: string, parentUuid: string) => ({
    parentUuid,
    attachment: { type: 'date', date: '2026-11-18' },
    type: 'attachment',
    uuid,
  });

  test('those that descend from one another are one turn, also through attachments', () => {
    const { all } = groupTurns([
      user('one', { uuid: 'a' }),
      attachment('x', 'a'),
      user('two', { uuid: 'b', parentUuid: 'x' }),
      assistant('m1', 'both', { parentUuid: 'b' }),
    ]);
    expect(all.map(told)).toEqual([{ number: 1, prompts: ['one', 'two'], answers: ['both'], tools: [] }]);
  });

  test('the chain may run through lines of any type', () => {
    const { all } = groupTurns([
      user('one', { uuid: 'a' }),
      { type: 'progress', uuid: 'x', parentUuid: 'a', data: {} },
      { parentUuid: 'x', type: 'brand-new', uuid: 'y' },
      user('two', { uuid: 'b', parentUuid: 'y' }),
      assistant('m1', 'both', { parentUuid: 'b' }),
    ]);
    expect(all.map(told)).toEqual([{ number: 1, prompts: ['one', 'two'], answers: ['both'], tools: [] }]);
  });

  test('one that the next does not descend from was taken back', () => {
    const { all } = groupTurns([
      user('one', { uuid: 'a' }),
      assistant('m1', 'first', { uuid: 'b', parentUuid: 'a' }),
      user('oops', { uuid: 'c', parentUuid: 'b' }),
      user('two', { uuid: 'd', parentUuid: 'b' }),
      assistant('m2', 'second', { uuid: 'e', parentUuid: 'd' }),
    ]);
    expect(all.map(told)).toEqual([
      { number: 1, prompts: ['one'], answers: ['first'], tools: [] },
      { number: 2, prompts: ['two'], answers: ['second'], tools: [] },
    ]);
    expect(all[1]?.start.line).toBe(4);
  });

  test('with an interrupt between them they are two, and the first was never answered', () => {
    const { all } = groupTurns([
      user('one', { uuid: 'a' }),
      user('[Request interrupted by user]', { uuid: 'b', parentUuid: 'a' }),
      user('two', { uuid: 'c', parentUuid: 'b' }),
      assistant('m1', 'second', { uuid: 'd', parentUuid: 'c' }),
    ]);
    expect(all.map(told)).toEqual([{ number: 1, prompts: ['two'], answers: ['second'], tools: [] }]);
    expect(all[0]?.notes).toEqual([]);
  });

  test('a compaction that came while a prompt waited does not take the prompt away', () => {
    const { all } = groupTurns([
      user('one', { uuid: 'a' }),
      { type: 'system', subtype: 'compact_boundary', uuid: 'b', compactMetadata: { trigger: 'auto', preTokens: 9 } },
      user('summary', { uuid: 'c', parentUuid: 'b', isCompactSummary: true }),
      assistant('m1', 'answer', { parentUuid: 'c' }),
    ]);
    expect(all.map(told)).toEqual([{ number: 1, prompts: ['one'], answers: ['answer'], tools: [] }]);
  });

  test('a chain that bites its own tail ends', () => {
    const { all } = groupTurns([
      user('one', { uuid: 'a', parentUuid: 'b' }),
      user('two', { uuid: 'b', parentUuid: 'a' }),
      user('three', { uuid: 'c', parentUuid: 'x' }),
      { type: 'system', uuid: 'x', parentUuid: 'y' },
      { type: 'system', uuid: 'y', parentUuid: 'x' },
      user('four', { uuid: 'd', parentUuid: 'x' }),
      assistant('m1', 'answer'),
    ]);
    expect(all.map(told)).toEqual([{ number: 1, prompts: ['four'], answers: ['answer'], tools: [] }]);
  });
});

describe('how a turn ends without a plain answer', () => {
  test('an API error counts as a response', () => {
    const error = { isApiErrorMessage: true, apiErrorStatus: 529 };
    const { all } = groupTurns([
      user('go'),
      { ...assistant('m0', 'API Error: Overloaded', error), uuid: 'e' },
      user('again'),
      assistant('m1', 'yes'),
    ]);
    expect(all.map(told)).toEqual([
      { number: 1, prompts: ['go'], answers: [], tools: [] },
      { number: 2, prompts: ['again'], answers: ['yes'], tools: [] },
    ]);
    expect(all[0]?.notes).toEqual([
      { kind: 'api-error', content: 'API Error: Overloaded', status: 529, line: 2, at: expect.any(Number), uuid: 'e' },
    ]);
  });

  test('an empty answer writes no line, but the harness tells that the turn is over', () => {
    const over = { type: 'system', subtype: 'stop_hook_summary' };
    const { all } = groupTurns([user('go'), over, user('again'), assistant('m1', 'yes')]);
    expect(all.map(told)).toEqual([
      { number: 1, prompts: ['go'], answers: [], tools: [] },
      { number: 2, prompts: ['again'], answers: ['yes'], tools: [] },
    ]);
  });

  test('what was noted of a turn that is not exported goes to the next that is', () => {
    const retry = { type: 'system', subtype: 'api_error', retryAttempt: 1, maxRetries: 10, uuid: 'r' };
    const { all } = groupTurns([
      user('one', { uuid: 'a' }),
      { ...retry, parentUuid: 'a' },
      user('[Request interrupted by user]', { uuid: 'i', parentUuid: 'r' }),
      user('two', { uuid: 'b', parentUuid: 'i' }),
      assistant('m1', 'answer'),
    ]);
    expect(all.map(({ notes }) => notes.map(({ kind }) => kind))).toEqual([['retry']]);
  });
});

describe('an answer that the model is asked to go on with', () => {
  test('was cut while it streamed; the next one answers that', () => {
    const again = 'Your response above was cut off mid-stream. Resume directly from where it stops';
    const { all } = groupTurns([
      user('go'),
      assistant('m1', 'partial'),
      user(again, { isMeta: true, turnCompanion: true }),
      assistant('m2', 'the rest'),
    ]);
    expect(all[0]?.responses.map(({ aborted, answered }) => ({ aborted, answered }))).toEqual([
      { aborted: true, answered: [{ role: 'user', content: 'go', media: [] }] },
      { aborted: false, answered: [{ role: 'user', content: again }] },
    ]);
  });
});

describe('history that was copied from another session', () => {
  const other = '22222222-2222-4222-8222-222222222222';

  test.each([
    ['its prompt names the session it is from', { sessionId: other }, {}],
    ['its lines say where they were forked from', { forkedFrom: { sessionId: other } }, { forkedFrom: {} }],
    ['its response was requested by the other session', {}, { sessionId: SESSION, requestSessionId: other }],
  ])('counts, and is marked: %s', (_, onPrompt, onResponse) => {
    const { all } = groupTurns([
      user('one', { uuid: 'a', ...onPrompt }),
      assistant('m1', 'first', { uuid: 'b', parentUuid: 'a', ...onResponse }),
      user('two', { uuid: 'c', parentUuid: 'b', sessionId: SESSION }),
      assistant('m2', 'second', { parentUuid: 'c', sessionId: SESSION }),
    ]);
    expect(all.map(({ number, copied }) => ({ number, copied }))).toEqual([
      { number: 1, copied: true },
      { number: 2, copied: false },
    ]);
  });

  test('a prompt of our own that descends from a foreign one which nobody answered is ours', () => {
    const { all } = groupTurns([
      user('planned elsewhere', { uuid: 'a', sessionId: other }),
      user('here', { uuid: 'b', parentUuid: 'a', sessionId: SESSION }),
      assistant('m1', 'answer', { parentUuid: 'b', sessionId: SESSION }),
    ]);
    expect(all.map(({ copied, prompts }) => ({ copied, prompts: prompts.map(({ content }) => content) }))).toEqual([
      { copied: false, prompts: ['here'] },
    ]);
  });

  test('a foreign prompt that nobody answered does not count', () => {
    const { all } = groupTurns([
      user('planned elsewhere', { uuid: 'a', sessionId: other }),
      user('here', { uuid: 'b' }),
      assistant('m1', 'answer'),
    ]);
    expect(all.map(({ number, copied }) => ({ number, copied }))).toEqual([{ number: 1, copied: false }]);
  });
});

describe('lines without a time', () => {
  test('take that of the line before, and the first ones that of the file', () => {
    const { all } = groupTurns([
      user('one'),
      assistant('m1', 'first', { timestamp: at(3) }),
      user('two'),
      assistant('m2', 'second'),
    ]);
    expect(all.map(({ prompts, inheritedTime }) => ({ at: prompts[0].at, inheritedTime }))).toEqual([
      { at: Date.UTC(2025, 0, 1), inheritedTime: Date.UTC(2025, 0, 1) },
      { at: ms(3), inheritedTime: ms(3) },
    ]);
  });

  test.each(['1969-12-31T23:59:59Z', '9999-01-01T00:00:00Z', 'yesterday', ''])('%j is none', (timestamp) => {
    const { all } = groupTurns([user('one', { timestamp: at(1) }), assistant('m1', 'x', { timestamp })]);
    expect(all[0]?.responses[0]?.firstBlockAt).toBe(ms(1));
  });
});
