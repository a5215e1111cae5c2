import { describe, expect, test } from 'vitest';
import { answerText } from '../../../src/observations/content/messages.js';
import { findUnknownTypes } from '../../../src/transcript/file/unknown.js';
import type { Turn } from '../../../src/transcript/turns/turn.js';
import {
  assistant,
  at,
  groupTurns,
  linesOf,
  ms,
  SESSION,
  text,
  toolResult,
  toolUse,
  user,
} from '../../support/lines.js';

/** Reduces a turn to its number, its prompts, its answers and its tool results. */
function summarize(turn: Turn) {
  return {
    number: turn.number,
    prompts: turn.prompts.map(({ content }) => content),
    answers: turn.responses.map(answerText),
    tools: turn.responses.flatMap(({ calls }) => calls.map(({ id, result }) => [id, result?.content])),
  };
}

describe('the lines of a transcript', () => {
  test('with a tool result belong to the turn of the call, since a result is not a prompt', () => {
    const { all } = groupTurns([
      user('read a file', { sessionId: SESSION }),
      assistant('m1', [toolUse('t1', 'Read', { path: '/' })]),
      user([toolResult('t1', 'file data')]),
      assistant('m2', [text('done')]),
    ]);
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['read a file'], answers: ['', 'done'], tools: [['t1', 'file data']] },
    ]);
    expect(all[0]?.lineNumbers).toEqual([1, 2, 3, 4]);
  });

  test('that are not JSON count in the line numbers', () => {
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

  test('have a string or blocks as their content', () => {
    const { all } = groupTurns([
      user([text('hello')]),
      assistant('m1', 'hi there'),
      user('second question'),
      assistant('m2', [text('second answer')]),
    ]);
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['hello'], answers: ['hi there'], tools: [] },
      { number: 2, prompts: ['second question'], answers: ['second answer'], tools: [] },
    ]);
  });

  test('with a timestamp that is not a string have the time of the line before', () => {
    const { all } = groupTurns([user('one', { timestamp: at(1) }), assistant('m1', 'x', { timestamp: 12 })]);
    expect(all[0]?.responses[0]?.firstBlockAt).toBe(ms(1));
  });

  test('with the same message id are one response, whatever is between them', () => {
    const { all } = groupTurns([
      user('go'),
      assistant('m1', [text('part one')]),
      assistant('m1', [toolUse('t1')]),
      user([toolResult('t1')]),
      assistant('m1', [text('part two')]),
      assistant('m2', [text('end')]),
    ]);
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['go'], answers: ['part one\npart two', 'end'], tools: [['t1', 'done']] },
    ]);
  });

  test('with responses without an id are merged with their neighbours without an id', () => {
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
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['go'], answers: ['a', 'b', 'c', 'd\ne'], tools: [['t1', 'done']] },
    ]);
  });

  test('with a response without an id that is written twice are one response', () => {
    const answer = assistant(undefined, [text('a')], { uuid: 'u1' });
    const { all } = groupTurns([user('go'), answer, assistant('m1', [text('b')]), answer]);
    expect(all.map(summarize)).toEqual([{ number: 1, prompts: ['go'], answers: ['a', 'b'], tools: [] }]);
  });

  test('with a prompt without a response are not a turn yet, and are not counted', () => {
    const { ended, open } = groupTurns([user('one'), assistant('m1', [text('first')]), user('two')]);
    expect(ended.map(summarize)).toEqual([{ number: 1, prompts: ['one'], answers: ['first'], tools: [] }]);
    expect(open).toBeUndefined();
  });

  test('that are marked as meta are ignored, wherever they are', () => {
    const { all } = groupTurns([
      user('skill scaffolding', { isMeta: true }),
      user('fix it'),
      user('rubric', { isMeta: true }),
      assistant('m0', 'meta response', { isMeta: true }),
      assistant('m1', [text('fixed')]),
      user('more rubric', { isMeta: true }),
    ]);
    expect(all.map(summarize)).toEqual([{ number: 1, prompts: ['fix it'], answers: ['fixed'], tools: [] }]);
    expect(all[0]?.lineNumbers).toEqual([2, 5]);
  });

  test('with a result for another call leave this call without a result', () => {
    const { all } = groupTurns([user('go'), assistant('m1', [toolUse('t1')]), user([toolResult('t9')])]);
    expect(all.map(summarize)).toEqual([{ number: 1, prompts: ['go'], answers: [''], tools: [['t1', undefined]] }]);
  });

  test('whose usage differs keep that of the last line with the most output, not the largest of each kind', () => {
    const line = (usage: object, content: object) => ({
      type: 'assistant',
      message: { id: 'm1', role: 'assistant', model: 'minimax', content: [content], usage },
    });
    const { all } = groupTurns([
      user('go'),
      line({ input_tokens: 23_921, output_tokens: 0 }, text('I will')),
      line({ input_tokens: 7_545, output_tokens: 232 }, toolUse('t1')),
    ]);
    expect(all[0]?.responses.map(({ usage }) => usage)).toMatchObject([{ input_tokens: 7_545, output_tokens: 232 }]);
  });

  test('that repeat a response keep its largest usage, and each block counts once', () => {
    const usage = (output_tokens: number) => ({ input_tokens: 9, output_tokens });
    const line = (output: number, ...content: object[]) => ({
      type: 'assistant',
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

  test('with the model <synthetic> are not responses', () => {
    const { all } = groupTurns([
      user('one'),
      {
        type: 'assistant',
        message: { id: 'm0', role: 'assistant', model: '<synthetic>', content: 'No response requested.' },
      },
      user('two'),
      assistant('m1', 'answer'),
    ]);
    expect(all.map(summarize)).toEqual([{ number: 1, prompts: ['two'], answers: ['answer'], tools: [] }]);
  });
});

describe('a prompt that is queued while a tool runs', () => {
  const chain = (uuid: string, parentUuid: string) => ({ uuid, parentUuid });
  const begun = [
    user('one', { uuid: 'u1' }),
    assistant('m1', [toolUse('t1')], chain('a1', 'u1')),
    user('two', { ...chain('u2', 'a1'), promptSource: 'queued', turnOrigin: 'human' }),
    user([toolResult('t1', 'rejected')], chain('r1', 'a1')),
  ];
  const interrupt = user('[Request interrupted by user for tool use]', chain('i1', 'r1'));

  test('is answered after an interrupt, from which its answer descends', () => {
    const { all } = groupTurns([...begun, interrupt, assistant('m2', 'answer', chain('a2', 'i1'))]);
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['one'], answers: [''], tools: [['t1', 'rejected']] },
      { number: 2, prompts: ['two'], answers: ['answer'], tools: [] },
    ]);
    expect(all.map(({ notes }) => notes.map(({ kind }) => kind))).toEqual([['interrupt'], []]);
  });

  test('of another process is not answered by what follows the interrupt', () => {
    const other = begun.map((line) => ('promptSource' in line ? { ...line, promptSource: 'typed' } : line));
    const { all } = groupTurns([...other, interrupt, assistant('m2', 'answer', chain('a2', 'i1'))]);
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['one'], answers: ['', 'answer'], tools: [['t1', 'rejected']] },
    ]);
  });
});

describe('a file that begins in the middle of a turn', () => {
  test('has a turn that says so, which keeps its responses and calls', () => {
    const { all } = groupTurns([
      user([toolResult('t0')], { uuid: 'r0' }),
      assistant('m1', [toolUse('t1')], { uuid: 'a1', cwd: '/work' }),
      user([toolResult('t1')], { uuid: 'r1' }),
      assistant('m2', 'done', { uuid: 'a2' }),
      user('next', { uuid: 'u2' }),
      assistant('m3', 'answer', { uuid: 'a3' }),
    ]);
    expect(all.map(summarize)).toEqual([
      {
        number: 1,
        prompts: ['(The file begins here: the prompt of this turn is not in it.)'],
        answers: ['', 'done'],
        tools: [['t1', 'done']],
      },
      { number: 2, prompts: ['next'], answers: ['answer'], tools: [] },
    ]);
    expect(all[0]).toMatchObject({ key: `${SESSION}:2`, context: { cwd: '/work' } });
  });

  test('has none for what Claude Code itself has written there', () => {
    const { all } = groupTurns([
      { type: 'assistant', message: { id: 'm0', model: '<synthetic>', content: 'No response requested.' } },
      { ...assistant('e0', 'API Error'), isApiErrorMessage: true },
      user('hello'),
      assistant('m1', 'hi'),
    ]);
    expect(all.map(summarize)).toEqual([{ number: 1, prompts: ['hello'], answers: ['hi'], tools: [] }]);
  });
});

describe('a turn that has ended', () => {
  const prompt = (n: number) => user(`question ${n}`, { uuid: `u${n}` });
  const unfinished = (id: string, content: unknown) => assistant(id, content, { uuid: `${id}-line` });

  test('goes on with the rest of a response in which a message was typed, and ends again with the next turn', () => {
    const { ended } = groupTurns([
      prompt(1),
      unfinished('m1', [text('I see!')]),
      prompt(2),
      unfinished('m1', [toolUse('t1', 'Grep')]),
      user([toolResult('t1', 'x.ts:1')]),
      unfinished('m2', [text('You are right.')]),
      prompt(3),
      unfinished('m3', [text('Yes.')]),
    ]);
    expect(ended.map(({ number }) => number)).toEqual([1, 1, 2]);
    expect(ended.slice(1).map(summarize)).toEqual([
      { number: 1, prompts: ['question 1'], answers: ['I see!'], tools: [['t1', 'x.ts:1']] },
      { number: 2, prompts: ['question 2'], answers: ['You are right.'], tools: [] },
    ]);
  });

  test('gets the result of its call that comes turns later', () => {
    const { ended } = groupTurns([
      { ...prompt(1), timestamp: at(0) },
      { ...unfinished('m1', [toolUse('t1', 'Bash')]), timestamp: at(1) },
      { ...prompt(2), timestamp: at(4_000) },
      { ...unfinished('m2', [text('two')]), timestamp: at(4_001) },
      { ...prompt(3), timestamp: at(4_002) },
      { ...unfinished('m3', [text('three')]), timestamp: at(4_003) },
      { ...user([toolResult('t1', 'rejected', { is_error: true })]), timestamp: at(4_004) },
      { ...prompt(4), timestamp: at(4_005) },
    ]);
    expect(ended.map(({ number }) => number)).toEqual([1, 2, 1, 3]);
    expect(ended.slice(2).map(summarize)).toEqual([
      { number: 1, prompts: ['question 1'], answers: [''], tools: [['t1', 'rejected']] },
      { number: 3, prompts: ['question 3'], answers: ['three'], tools: [] },
    ]);
    expect(ended[2]?.lineNumbers).toEqual([1, 2, 7]);
  });

  test('does not take a response that begins after it with the id of an older one', () => {
    const { all } = groupTurns([
      prompt(1),
      unfinished('m1', [text('one')]),
      prompt(2),
      unfinished('m2', [text('two')]),
      unfinished('m1', [text('one again')]),
    ]);
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['question 1'], answers: ['one'], tools: [] },
      { number: 2, prompts: ['question 2'], answers: ['two'], tools: [] },
    ]);
  });
});

describe('a line of the user', () => {
  test('with a local command or its output is not a prompt', () => {
    const { all } = groupTurns([
      user('<local-command-caveat>…</local-command-caveat>', { isMeta: true }),
      user('<command-name>/clear</command-name>\n<command-message>clear</command-message>'),
      user('<local-command-stdout></local-command-stdout>'),
      user('<command-name>/model</command-name>'),
      { type: 'system', subtype: 'local_command', content: '<local-command-stdout>Sonnet</local-command-stdout>' },
      user('hello'),
      assistant('m1', 'hi'),
    ]);
    expect(all.map(summarize)).toEqual([{ number: 1, prompts: ['hello'], answers: ['hi'], tools: [] }]);
  });

  test('with a built-in command that asks the model is a prompt: its output says who began the turn', () => {
    const { all } = groupTurns([
      user('<command-name>/goal</command-name>\n<command-args>until green</command-args>', { uuid: 'c' }),
      user('<local-command-stdout>Goal set</local-command-stdout>', {
        turnOrigin: 'human',
        parentUuid: 'c',
        uuid: 'o',
      }),
      user('A Stop hook is now active', { isMeta: true, parentUuid: 'o', uuid: 'h' }),
      assistant('m1', 'on it', { parentUuid: 'h' }),
    ]);
    expect(all.map(summarize)).toEqual([{ number: 1, prompts: ['/goal until green'], answers: ['on it'], tools: [] }]);
  });

  test('with a local command in the middle of a turn does not end the turn', () => {
    const { all } = groupTurns([
      user('go'),
      assistant('m1', [toolUse('t1')]),
      user('<command-name>/context</command-name>'),
      user('<local-command-stdout>12k</local-command-stdout>'),
      user([toolResult('t1')]),
      assistant('m2', 'done'),
    ]);
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['go'], answers: ['', 'done'], tools: [['t1', 'done']] },
    ]);
  });

  test('with a custom command is a prompt, even in versions that do not mark it', () => {
    const command = '<command-message>fix</command-message>\n<command-name>/fix</command-name>';
    const { all } = groupTurns([
      user('one'),
      assistant('m1', 'first'),
      user(command),
      user('the body of the command', { isMeta: true }),
      assistant('m2', 'fixed'),
    ]);
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['one'], answers: ['first'], tools: [] },
      { number: 2, prompts: ['/fix'], answers: ['fixed'], tools: [] },
    ]);
  });

  test('after a command that never got its output is a prompt', () => {
    const command = '<command-name>/exit</command-name>';
    const { all } = groupTurns([
      user('one', { uuid: 'a' }),
      assistant('m1', 'first', { uuid: 'b', parentUuid: 'a' }),
      user(command, { uuid: 'c', parentUuid: 'b' }),
      user('two', { uuid: 'd', parentUuid: 'b' }),
      assistant('m2', 'second', { uuid: 'e', parentUuid: 'd' }),
    ]);
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['one'], answers: ['first'], tools: [] },
      { number: 2, prompts: ['two'], answers: ['second'], tools: [] },
    ]);
  });

  test('with a custom command starts the turn, which contains what follows', () => {
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

  test('with the summary of a compaction or an interrupt is not a prompt', () => {
    const { all } = groupTurns([
      user('one'),
      assistant('m1', 'first'),
      { type: 'system', subtype: 'compact_boundary', compactMetadata: { trigger: 'manual', preTokens: 9 } },
      user('This session is being continued…', { isCompactSummary: true, isVisibleInTranscriptOnly: true }),
      user('two'),
      assistant('m2', 'sec'),
      user([text('[Request interrupted by user]')]),
    ]);
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['one'], answers: ['first'], tools: [] },
      { number: 2, prompts: ['two'], answers: ['sec'], tools: [] },
    ]);
    expect(all.map(({ notes }) => notes.map(({ kind }) => kind))).toEqual([['compaction'], ['interrupt']]);
  });

  test('that a subagent wrote into the main transcript is not part of the main thread', () => {
    const { all } = groupTurns([
      user('go'),
      assistant('m1', [toolUse('t1', 'Task')]),
      user('do the work', { isSidechain: true }),
      assistant('s1', 'working', { isSidechain: true }),
      user([toolResult('t1')]),
      assistant('m2', 'done'),
    ]);
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['go'], answers: ['', 'done'], tools: [['t1', 'done']] },
    ]);
  });
});

describe('the text of a prompt', () => {
  const prompt = (content: unknown, more: object = {}, ...lines: object[]) => {
    const [turn] = groupTurns([user(content, more), ...lines, assistant('m1', 'ok')]).all;
    const { content: words = '' } = turn?.prompts[0] ?? {};
    return { words, trigger: turn?.context.trigger, ide: turn?.context.ide, skill: turn?.skill };
  };
  const human = { origin: { kind: 'human' } };
  const call = (name: string, args: string) =>
    `<command-message>${name}</command-message>\n<command-name>/${name}</command-name>\n<command-args>${args}</command-args>`;

  test('with a command is the command and its arguments as typed', () => {
    expect(prompt(call('mycmd', 'foo bar'), human)).toEqual({ words: '/mycmd foo bar', trigger: 'command' });
    expect(prompt(call('mycmd', ''), human)).toEqual({ words: '/mycmd', trigger: 'command' });
  });

  test('with a skill is the command, and its body shows that it is a skill', () => {
    const body = user([text('Base directory for this skill: /x\n\nBody')], { isMeta: true, turnCompanion: true });
    expect(prompt(call('myskill', 'a b'), human, body)).toEqual({
      words: '/myskill a b',
      trigger: 'command',
      skill: 'myskill',
    });
  });

  test('with a command after ! is that command, and the model answers its output, too', () => {
    const output = user('<bash-stdout>out</bash-stdout><bash-stderr>err</bash-stderr>');
    const [turn] = groupTurns([user('<bash-input>echo out</bash-input>'), output, assistant('m1', 'ok')]).all;
    expect(turn?.prompts.map(({ content }) => content)).toEqual(['!echo out']);
    expect(turn?.responses[0]?.answered).toEqual([
      { role: 'user', content: '!echo out', media: [], trigger: 'bash' },
      { role: 'user', content: 'out\nerr' },
    ]);
  });

  test('has a trigger that says whether a background task or a plan started the turn', () => {
    expect(prompt('<task-notification>…', { origin: { kind: 'task-notification' } }).trigger).toBe('task-notification');
    expect(prompt('Go on', { origin: { kind: 'auto-continuation' } }).trigger).toBe('auto-continuation');
    const planContent = '# Plan';
    const plan = { origin: { kind: 'auto-continuation' }, planContent };
    expect(prompt('Implement the following plan:', plan).trigger).toBe('accepted-plan');
    expect(prompt('Implement the following plan:', { planContent }).trigger).toBe('accepted-plan');
  });

  test('does not contain what was selected or open in the editor', () => {
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

describe('a message of another session', () => {
  const wrapped = (...messages: string[]) =>
    `Another Claude session sent a message:\n${messages.join('\n\n')}\n\nThis came from another Claude session — not typed by your user.`;
  const from = (id: string, words: string) =>
    `<teammate-message teammate_id="${id}" color="blue">\n${words}\n</teammate-message>`;
  const idle = JSON.stringify({
    type: 'idle_notification',
    from: 'mate',
    idleReason: 'available',
    result: 'Found it.',
  });
  const peer = { isMeta: true, origin: { kind: 'peer', from: 'uds:/tmp/1.sock' } };
  const shown = (content: string, more: object = {}) => {
    const [turn] = groupTurns([user(content, more), assistant('m1', 'ok')]).all;
    return [turn?.prompts[0].content, turn?.context.trigger];
  };

  test.each([
    ['a teammate', wrapped(from('mate', 'Which file?')), {}, 'mate: Which file?'],
    ['a teammate that has ended', wrapped(from('mate', idle)), {}, 'mate: Found it.'],
    ['two teammates', wrapped(from('a', '{"type":"x"}'), from('b', 'two')), {}, 'a: {"type":"x"}\nb: two'],
    ['the lead, to a teammate', from('lead', 'Please\n\nlook.'), {}, 'lead: Please\n\nlook.'],
    [
      'a session of the same user',
      wrapped('<cross-session-message from="uds:/tmp/1.sock" from-name="other">\nRun it\n</cross-session-message>'),
      peer,
      'other: Run it',
    ],
    ['an agent', wrapped('<agent-message from="a1b2">\nHalf way.\n</agent-message>'), peer, 'a1b2: Half way.'],
  ])('is what was written by %s', (_, content, more, words) => {
    expect(shown(content, more)).toEqual([words, 'peer']);
  });

  test('stays as it is if it is not wrapped, or was pasted by a person', () => {
    const pasted = wrapped(from('mate', 'Which file?'));
    expect(shown(pasted, { promptSource: 'typed', origin: { kind: 'human' } })).toEqual([pasted, 'human']);
    expect(shown('Run it', peer)).toEqual(['Run it', 'peer']);
    expect(shown(wrapped('<teammate-message>Which'))).toEqual([wrapped('<teammate-message>Which'), 'human']);
  });

  test('that comes while Claude works is what was written, too', () => {
    const prompt = '<cross-session-message from="uds:/x" from-name="other">\nStop that\n</cross-session-message>';
    const absorbed = (kind: string) => ({
      type: 'attachment',
      attachment: { type: 'queued_command', prompt, origin: { kind } },
    });
    const { all } = groupTurns([user('go'), absorbed('peer'), absorbed('human'), assistant('m1', 'ok')]);
    expect(all[0]?.responses[0]?.answered).toEqual([
      { role: 'user', content: 'go', media: [] },
      { role: 'user', content: 'other: Stop that', media: [] },
      { role: 'user', content: prompt, media: [] },
    ]);
  });
});

describe('consecutive prompts', () => {
  const attachment = (uuid: string, parentUuid: string) => ({
    parentUuid,
    attachment: { type: 'date', date: '2026-11-18' },
    type: 'attachment',
    uuid,
  });

  test('are one turn if each descends from the one before, also through attachments', () => {
    const { all } = groupTurns([
      user('one', { uuid: 'a' }),
      attachment('x', 'a'),
      user('two', { uuid: 'b', parentUuid: 'x' }),
      assistant('m1', 'both', { parentUuid: 'b' }),
    ]);
    expect(all.map(summarize)).toEqual([{ number: 1, prompts: ['one', 'two'], answers: ['both'], tools: [] }]);
  });

  test('are one turn if they are connected by lines of other types', () => {
    const { all } = groupTurns([
      user('one', { uuid: 'a' }),
      { type: 'progress', uuid: 'x', parentUuid: 'a', data: {} },
      { parentUuid: 'x', type: 'brand-new', uuid: 'y' },
      user('two', { uuid: 'b', parentUuid: 'y' }),
      assistant('m1', 'both', { parentUuid: 'b' }),
    ]);
    expect(all.map(summarize)).toEqual([{ number: 1, prompts: ['one', 'two'], answers: ['both'], tools: [] }]);
  });

  test('that do not descend from each other leave only the last: the others were taken back', () => {
    const { all } = groupTurns([
      user('one', { uuid: 'a' }),
      assistant('m1', 'first', { uuid: 'b', parentUuid: 'a' }),
      user('oops', { uuid: 'c', parentUuid: 'b' }),
      user('two', { uuid: 'd', parentUuid: 'b' }),
      assistant('m2', 'second', { uuid: 'e', parentUuid: 'd' }),
    ]);
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['one'], answers: ['first'], tools: [] },
      { number: 2, prompts: ['two'], answers: ['second'], tools: [] },
    ]);
    expect(all[1]?.start.line).toBe(4);
  });

  test('with an interrupt between them are two, and the first was never answered', () => {
    const { all } = groupTurns([
      user('one', { uuid: 'a' }),
      user('[Request interrupted by user]', { uuid: 'b', parentUuid: 'a' }),
      user('two', { uuid: 'c', parentUuid: 'b' }),
      assistant('m1', 'second', { uuid: 'd', parentUuid: 'c' }),
    ]);
    expect(all.map(summarize)).toEqual([{ number: 1, prompts: ['two'], answers: ['second'], tools: [] }]);
    expect(all[0]?.notes).toEqual([]);
  });

  test('are not taken back by a compaction that came before the answer', () => {
    const { all } = groupTurns([
      user('one', { uuid: 'a' }),
      { type: 'system', subtype: 'compact_boundary', uuid: 'b', compactMetadata: { trigger: 'auto', preTokens: 9 } },
      user('summary', { uuid: 'c', parentUuid: 'b', isCompactSummary: true }),
      assistant('m1', 'answer', { parentUuid: 'c' }),
    ]);
    expect(all.map(summarize)).toEqual([{ number: 1, prompts: ['one'], answers: ['answer'], tools: [] }]);
  });

  test('are grouped even if their parents form a circle', () => {
    const { all } = groupTurns([
      user('one', { uuid: 'a', parentUuid: 'b' }),
      user('two', { uuid: 'b', parentUuid: 'a' }),
      user('three', { uuid: 'c', parentUuid: 'x' }),
      { type: 'system', uuid: 'x', parentUuid: 'y' },
      { type: 'system', uuid: 'y', parentUuid: 'x' },
      user('four', { uuid: 'd', parentUuid: 'x' }),
      assistant('m1', 'answer'),
    ]);
    expect(all.map(summarize)).toEqual([{ number: 1, prompts: ['four'], answers: ['answer'], tools: [] }]);
  });
});

describe('a turn without a normal answer', () => {
  test('has an API error as its response', () => {
    const error = { isApiErrorMessage: true, apiErrorStatus: 529 };
    const { all } = groupTurns([
      user('go'),
      { ...assistant('m0', 'API Error: Overloaded', error), uuid: 'e' },
      user('again'),
      assistant('m1', 'yes'),
    ]);
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['go'], answers: [], tools: [] },
      { number: 2, prompts: ['again'], answers: ['yes'], tools: [] },
    ]);
    expect(all[0]?.notes).toEqual([
      { kind: 'api-error', content: 'API Error: Overloaded', status: 529, line: 2, at: expect.any(Number), uuid: 'e' },
    ]);
  });

  test('is over if a system line says so, since an empty answer has no line', () => {
    const over = { type: 'system', subtype: 'stop_hook_summary' };
    const { all } = groupTurns([user('go'), over, user('again'), assistant('m1', 'yes')]);
    expect(all.map(summarize)).toEqual([
      { number: 1, prompts: ['go'], answers: [], tools: [] },
      { number: 2, prompts: ['again'], answers: ['yes'], tools: [] },
    ]);
  });

  test('passes its notes to the next turn that is exported', () => {
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

describe('a turn whose last response has a stop reason as if it went on', () => {
  const last = (content: unknown, stop_reason: string) => ({
    type: 'assistant',
    uuid: 'b',
    parentUuid: 'a',
    message: { role: 'assistant', id: 'm1', content, stop_reason },
  });
  const given = user([toolResult('t1')], { uuid: 'c', parentUuid: 'b', toolEndsTurn: true });

  test.each([
    ['a call whose result ends the turn', [last([toolUse('t1', 'StructuredOutput')], 'tool_use'), given]],
    ['a pause of the API, after which Claude Code does not go on', [last('Searching.', 'pause_turn')]],
  ])('is over with %s when the next prompt comes', (_, lines) => {
    const next = user('two', { uuid: 'd', parentUuid: lines.length > 1 ? 'c' : 'b', promptId: 'p2', timestamp: at(2) });
    const { ended } = groupTurns([user('one', { uuid: 'a', promptId: 'p1', timestamp: at(1) }), ...lines, next]);
    expect(ended.map(({ prompts }) => prompts.map(({ content }) => content))).toEqual([['one']]);
  });
});

describe('a command that runs as an agent', () => {
  const output = (parentUuid: string, content: string, more: object = {}) => ({
    type: 'system',
    subtype: 'local_command',
    content: `<local-command-stdout>${content}</local-command-stdout>`,
    uuid: `after-${parentUuid}`,
    parentUuid,
    ...more,
  });
  const describeTurn = ({ prompts, notes, responses, skill, context: { trigger } }: Turn) => ({
    prompts: prompts.map(({ content }) => content),
    notes: notes.map((note) => ('content' in note ? [note.kind, note.content] : [note.kind])),
    answers: responses.map(answerText),
    skill,
    trigger,
  });
  const next = [
    user('next', { uuid: 'b', parentUuid: 'after-a', promptSource: 'typed' }),
    assistant('m1', 'yes', { parentUuid: 'b' }),
  ];
  const nextTurn = { prompts: ['next'], notes: [], answers: ['yes'], skill: undefined, trigger: 'human' };

  test.each([
    ['headless', {}, 'What <b>it</b> said', ''],
    [
      'typed, when it has only begun',
      { origin: { kind: 'human' } },
      'Running in the background as @x',
      '\n<forked-skill-launch>{"agentId":"a1"}</forked-skill-launch>',
    ],
  ])('is a turn of its own, answered by its result: %s', (_, more, result, after) => {
    const line = output('a', result);
    const { all } = groupTurns([
      user('<local-command-caveat>…', { isMeta: true, uuid: 'c' }),
      user('/review low', { uuid: 'a', parentUuid: 'c', ...more }),
      { ...line, content: `<local-command-stdout>${result}</local-command-stdout>${after}` },
      ...next,
    ]);
    expect(all.map(describeTurn)).toEqual([
      {
        prompts: ['/review low'],
        notes: [['command-result', result]],
        answers: [],
        skill: 'review',
        trigger: 'command',
      },
      nextTurn,
    ]);
  });

  test.each<[string, object[]]>([
    ['a built-in command', [user('<command-name>/cost</command-name>', { uuid: 'a' }), output('a', '$1')]],
    ['a built-in command without a user line', [output('z', '', { content: '/help', uuid: 'a' }), output('a', 'none')]],
  ])('is not %s', (_, lines) => {
    const { all } = groupTurns([...lines, ...next]);
    expect(all.map(describeTurn)).toEqual([nextTurn]);
  });

  test('is not a prompt after which a command has printed something', () => {
    const { all } = groupTurns([
      user('go', { uuid: 'a' }),
      output('a', 'Renamed'),
      assistant('m0', 'gone', { parentUuid: 'after-a' }),
      user('/x is a path', { uuid: 'p', parentUuid: 'after-a' }),
      assistant('m2', 'it is', { uuid: 'q', parentUuid: 'p' }),
      output('q', 'Renamed'),
    ]);
    expect(all.map(({ notes, responses }) => [notes, responses.map(answerText)])).toEqual([
      [[], ['gone']],
      [[], ['it is']],
    ]);
  });
});

describe('an answer that Claude Code asks the model to continue', () => {
  test('is marked as aborted, and the next response answers that request', () => {
    const request = 'Your response above was cut off mid-stream. Resume directly from where it stops';
    const { all } = groupTurns([
      user('go'),
      assistant('m1', 'partial'),
      user(request, { isMeta: true, turnCompanion: true }),
      assistant('m2', 'the rest'),
    ]);
    expect(all[0]?.responses.map(({ aborted, answered }) => ({ aborted, answered }))).toEqual([
      { aborted: true, answered: [{ role: 'user', content: 'go', media: [] }] },
      { aborted: false, answered: [{ role: 'user', content: request, trigger: 'system', continuesAnswer: true }] },
    ]);
  });

  test.each([
    ['Output token limit hit. Resume directly — no apology', true],
    ['Your response above was stopped by a safety classifier', false],
  ])('is not marked as aborted if the request begins: %s', (request, continuesAnswer) => {
    const { all } = groupTurns([
      user('go', { promptId: 'p1' }),
      assistant('m1', 'partial'),
      user(request, { isMeta: true, turnCompanion: true, promptId: 'p1' }),
      assistant('m2', 'the rest'),
    ]);
    expect(all.map(({ responses }) => responses.map(({ aborted, answered }) => ({ aborted, answered })))).toEqual([
      [
        { aborted: false, answered: [{ role: 'user', content: 'go', media: [] }] },
        { aborted: false, answered: [{ role: 'user', content: request, trigger: 'system', continuesAnswer }] },
      ],
    ]);
  });
});

describe('history that was copied from another session', () => {
  const other = '22222222-2222-4222-8222-222222222222';

  test.each([
    ['its prompt names the session it is from', { sessionId: other }, {}],
    ['its lines say where they were forked from', { forkedFrom: { sessionId: other } }, { forkedFrom: {} }],
    ['its response was requested by the other session', {}, { sessionId: SESSION, requestSessionId: other }],
  ])('is counted and marked as copied if %s', (_, onPrompt, onResponse) => {
    const lines = [
      user('one', { uuid: 'a', ...onPrompt }),
      assistant('m1', 'first', { uuid: 'b', parentUuid: 'a', ...onResponse }),
      user('two', { uuid: 'c', parentUuid: 'b', sessionId: SESSION }),
      assistant('m2', 'second', { uuid: 'd', parentUuid: 'c', sessionId: SESSION }),
    ];
    const { all } = groupTurns(lines, SESSION, ['a', 'b']);
    expect(all.map(({ number, copied }) => ({ number, copied }))).toEqual([
      { number: 1, copied: true },
      { number: 2, copied: false },
    ]);
  });

  test('does not include an answer that the other session does not have: its turn says where the prompt is', () => {
    const lines = [
      user('one', { uuid: 'a', sessionId: other }),
      assistant('m1', 'first', { uuid: 'b', parentUuid: 'a' }),
      assistant('m2', 'own', { uuid: 'c', parentUuid: 'b' }),
      assistant('m3', 'more', { uuid: 'd', parentUuid: 'c' }),
    ];
    const { all } = groupTurns(lines, SESSION, ['a', 'b']);
    expect(all.map((turn) => ({ copied: turn.copied, ...summarize(turn) }))).toEqual([
      { copied: true, number: 1, prompts: ['one'], answers: [], tools: [] },
      {
        copied: false,
        number: 2,
        prompts: ['(The prompt of this turn is in another session.)'],
        answers: ['own', 'more'],
        tools: [],
      },
    ]);
  });

  test("does not include the session's own prompt after a copied one that was never answered", () => {
    const lines = [
      user('planned elsewhere', { uuid: 'a', sessionId: other }),
      user('here', { uuid: 'b', parentUuid: 'a', sessionId: SESSION }),
      assistant('m1', 'answer', { parentUuid: 'b', sessionId: SESSION }),
    ];
    const { all } = groupTurns(lines, SESSION, ['a']);
    expect(all.map(({ copied, prompts }) => ({ copied, prompts: prompts.map(({ content }) => content) }))).toEqual([
      { copied: false, prompts: ['here'] },
    ]);
  });

  test('is not counted if it is a prompt that was never answered', () => {
    const lines = [
      user('planned elsewhere', { uuid: 'a', sessionId: other }),
      user('here', { uuid: 'b' }),
      assistant('m1', 'answer'),
    ];
    const { all } = groupTurns(lines, SESSION, ['a']);
    expect(all.map(({ number, copied }) => ({ number, copied }))).toEqual([{ number: 1, copied: false }]);
  });
});

describe('the time of a line', () => {
  test('without a timestamp is that of the line before, or of the file if there is none', () => {
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

  test.each(['1969-12-31T23:59:59Z', '9999-01-01T00:00:00Z', 'yesterday', ''])(
    'with the timestamp %j is that of the line before',
    (timestamp) => {
      const { all } = groupTurns([user('one', { timestamp: at(1) }), assistant('m1', 'x', { timestamp })]);
      expect(all[0]?.responses[0]?.firstBlockAt).toBe(ms(1));
    },
  );
});

describe('a line that says where it came from', () => {
  const scheduled = { isMeta: true, promptSource: 'system', turnOrigin: 'scheduled', scheduledTaskId: 's1' };
  const prompts = (content: string, more: object) =>
    groupTurns([
      user('first', { uuid: 'a' }),
      assistant('m1', 'ok'),
      user(content, more),
      assistant('m2', 'ok'),
    ]).all.map(({ prompts: [{ content }], context: { trigger } }) => [content, trigger]);

  test.each([
    ['a schedule', scheduled, 'scheduled'],
    ['a background task', { promptSource: 'system', turnOrigin: 'task_notification' }, 'task-notification'],
    ['a session that goes on by itself', { isMeta: true, origin: { kind: 'auto-continuation' } }, 'auto-continuation'],
    ['another session', { origin: { kind: 'peer' } }, 'peer'],
    ['a process that resumes a turn', { isMeta: true, promptSource: 'system', turnOrigin: 'system' }, 'system'],
    ['a program', { promptSource: 'sdk', turnOrigin: 'sdk' }, 'human'],
    ['a person', { promptSource: 'typed', turnOrigin: 'human', origin: { kind: 'human' } }, 'human'],
    ['something without a name', { promptSource: 'typed', origin: { kind: 'not one word' } }, 'human'],
  ])('is a prompt by %s', (_, more, trigger) => {
    expect(prompts('do it', more)).toEqual([
      ['first', 'human'],
      ['do it', trigger],
    ]);
  });

  test.each([
    '<bash-stdout>total 3</bash-stdout>\nwhat is this?',
    '<bash-input>ls</bash-input>',
    '<local-command-stdout>Set model</local-command-stdout> and this?',
    '<command-name>/clear</command-name>\nwhat does that do?',
    'Caveat: The messages below were generated by the user',
    '[Request interrupted by user]',
    'Stop hook feedback:\nis in my log',
  ])('is a prompt whatever was pasted into it: %j', (content) => {
    expect(prompts(content, { promptSource: 'typed' })).toEqual([
      ['first', 'human'],
      [content, 'human'],
    ]);
  });

  test('is not a prompt if it is the body of a skill, or says only who began the turn', () => {
    expect(prompts('body', { isMeta: true, turnCompanion: true, origin: { kind: 'human' } })).toHaveLength(1);
    expect(prompts('<bash-stdout>x</bash-stdout>', { turnOrigin: 'human' })).toHaveLength(1);
  });

  test('is a command if it ends as one, and a program has given it', () => {
    const command =
      '<command-message>x</command-message>\n<command-name>/x</command-name>\n<command-args>a</command-args>';
    expect(prompts(command, { turnOrigin: 'sdk' })).toContainEqual(['/x a', 'command']);
  });
});

describe('turns of two processes in one session', () => {
  const final = (id: string, content: unknown, more: object) => ({
    type: 'assistant',
    message: { role: 'assistant', id, content, stop_reason: 'end_turn' },
    ...more,
  });
  const calling = (id: string, call: string, more: object) => ({
    type: 'assistant',
    message: { role: 'assistant', id, content: [toolUse(call)], stop_reason: 'tool_use' },
    ...more,
  });
  const end = (uuid: string, parentUuid: string) => ({
    type: 'system',
    subtype: 'stop_hook_summary',
    uuid,
    parentUuid,
  });
  const typed = (content: string, uuid: string, parentUuid: string, seconds = 0) =>
    user(content, { uuid, parentUuid, promptId: `id-${uuid}`, promptSource: 'typed', timestamp: at(seconds) });

  const BOTH = [
    typed('one', 'a', 'root'),
    calling('m1', 't1', { uuid: 'a1', parentUuid: 'a' }),
    typed('two', 'b', 'root', 1),
    final('m2', 'answer two', { uuid: 'b1', parentUuid: 'b' }),
    user([toolResult('t1', 'late')], { uuid: 'a2', parentUuid: 'a1', promptId: 'id-a' }),
    final('m3', 'answer one', { uuid: 'a3', parentUuid: 'a2' }),
    end('a4', 'a3'),
    end('b2', 'b1'),
  ];
  const ONE = { number: 1, prompts: ['one'], answers: ['', 'answer one'], tools: [['t1', 'late']] };
  const TWO = { number: 2, prompts: ['two'], answers: ['answer two'], tools: [] };

  test('have the lines that descend from their prompts', () => {
    const { all } = groupTurns(BOTH);
    expect(all.map(summarize)).toEqual([ONE, TWO]);
    expect(all.map(({ lineNumbers }) => lineNumbers)).toEqual([
      [1, 2, 5, 6, 7],
      [3, 4],
    ]);
  });

  test('end together, when the next prompt comes after both', () => {
    expect(groupTurns(BOTH).ended).toEqual([]);
    const { ended, open } = groupTurns([
      ...BOTH,
      typed('three', 'c', 'b2', 9),
      final('m4', 'answer three', { parentUuid: 'c' }),
    ]);
    expect(ended.map(summarize)).toEqual([ONE, TWO]);
    expect(open?.prompts.map(({ content }) => content)).toEqual(['three']);
  });

  test('are numbered in the order of their first answers, since a prompt that is never answered has no number', () => {
    const { all } = groupTurns([
      typed('one', 'a', 'root'),
      typed('two', 'b', 'root', 1),
      final('m2', 'answer two', { uuid: 'b1', parentUuid: 'b' }),
      final('m1', 'answer one', { uuid: 'a1', parentUuid: 'a' }),
    ]);
    expect(all.map(({ number, prompts }) => [number, prompts[0].content])).toEqual([
      [1, 'two'],
      [2, 'one'],
    ]);
  });

  test('are two if a prompt descends from an unanswered one, but the answer does not descend from it', () => {
    const { all } = groupTurns([
      typed('one', 'a', 'root'),
      typed('two', 'b', 'a', 1),
      final('m1', 'answer one', { uuid: 'a1', parentUuid: 'a' }),
      final('m2', 'answer two', { uuid: 'b1', parentUuid: 'b' }),
    ]);
    expect(
      all.map(({ prompts, responses }) => [prompts.map(({ content }) => content), responses.map(answerText)]),
    ).toEqual([
      [['one'], ['answer one']],
      [['two'], ['answer two']],
    ]);
  });

  test('keep the result of a call itself, not the one that the other process has assumed', () => {
    const assumed = user([toolResult('t1', 'interrupted', { is_error: true })], {
      uuid: 'x',
      parentUuid: 'a1',
      promptId: 'id-b',
    });
    const [one] = groupTurns([...BOTH.slice(0, 2), assumed, typed('two', 'b', 'x', 1), ...BOTH.slice(3)]).all;
    expect(one && summarize(one)).toEqual(ONE);
    expect(one?.responses[1]?.answered).toEqual([
      { role: 'tool', toolCallId: 't1', toolName: 'Read', content: 'late' },
    ]);
    const [killed] = groupTurns([...BOTH.slice(0, 2), assumed, typed('two', 'b', 'x', 1), ...BOTH.slice(3, 4)]).all;
    expect(killed?.responses[0]?.calls[0]?.result).toMatchObject({ content: 'interrupted', isError: true });
  });

  test('are not waited for any more when an hour has passed', () => {
    const later = [typed('later', 'c', 'b1', 3_700), final('m4', 'answer', { uuid: 'c1', parentUuid: 'c' })];
    const { ended } = groupTurns([...BOTH.slice(0, 4), end('b2', 'b1'), ...later]);
    expect(ended.map(({ prompts }) => prompts[0].content)).toEqual(['one', 'two']);
    const soon = [typed('soon', 'c', 'b1', 3_500), ...later.slice(1)];
    expect(groupTurns([...BOTH.slice(0, 4), end('b2', 'b1'), ...soon]).ended).toEqual([]);
  });

  test('can come between a built-in command of one and its output', () => {
    const { all } = groupTurns([
      ...BOTH.slice(0, 4),
      user('<command-name>/model</command-name>', { uuid: 'c', parentUuid: 'b1' }),
      ...BOTH.slice(4),
      user('<local-command-stdout>Set model</local-command-stdout>', { uuid: 'c1', parentUuid: 'c' }),
      typed('three', 'd', 'c1', 9),
      final('m4', 'answer three', { parentUuid: 'd' }),
    ]);
    expect(all.map(({ prompts }) => prompts.map(({ content }) => content))).toEqual([['one'], ['two'], ['three']]);
  });

  test('are not ended by the last line of one that is over', () => {
    const { all } = groupTurns([
      typed('one', 'a', 'root'),
      final('m1', 'answer one', { uuid: 'a1', parentUuid: 'a' }),
      end('a2', 'a1'),
      typed('two', 'b', 'a2', 1),
      { type: 'system', subtype: 'turn_duration', uuid: 'a3', parentUuid: 'a2' },
    ]);
    expect(all.map(summarize)).toEqual([{ number: 1, prompts: ['one'], answers: ['answer one'], tools: [] }]);
  });
});

test('a response of which the API has paused the request, and that another request has resumed, is one response', () => {
  const request = (id: string) => ({ type: 'api-request', id, timestamp: at(1) });
  const resumed = { messageId: 'm1', pausedRequestId: 'r1', resumedRequestId: 'r2' };
  const lines = [
    user('go', { uuid: 'a' }),
    request('q1'),
    assistant('m1', [text('one')], { parentUuid: 'a', requestRef: 'q1', requestId: 'r1' }),
    request('q2'),
    { type: 'api-request-resumed', sessionId: SESSION, timestamp: at(2), version: '2.1.328', ...resumed },
    assistant('m1', [text('two')], { parentUuid: 'a', requestRef: 'q2', requestId: 'r2' }),
  ];
  const { all } = groupTurns(lines);
  const responses = all.flatMap((turn) => turn.responses);
  expect(responses).toMatchObject([
    { id: 'm1', requestId: 'r1', request: { id: 'q1' }, blocks: [{ text: 'one' }, { text: 'two' }], lastLine: 6 },
  ]);
  expect(linesOf(lines).flatMap(findUnknownTypes)).toEqual([]);
});

describe('lines of types about which nothing is known', () => {
  test('do not disturb anything, and are links in the chain', () => {
    const types = ['session-owner', 'isolation-latch', 'data-flow-incomplete', 'frame-link', 'content-replacement'];
    const lines = types.map((type, place) => ({ type, uuid: type, parentUuid: types[place - 1] ?? 'a', content: 'x' }));
    const { all } = groupTurns([
      user('one', { uuid: 'a' }),
      ...lines,
      user('two', { uuid: 'b', parentUuid: types.at(-1) }),
      assistant('m1', 'both', { parentUuid: 'b' }),
    ]);
    expect(all.map(summarize)).toEqual([{ number: 1, prompts: ['one', 'two'], answers: ['both'], tools: [] }]);
    expect(linesOf(lines).flatMap(findUnknownTypes)).toEqual([]);
  });
});
