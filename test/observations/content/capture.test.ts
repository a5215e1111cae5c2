import { describe, expect, test } from 'vitest';
import { buildTurn } from '../../../src/observations/build/turn.js';
import type { Capture } from '../../../src/observations/model.js';
import type { Turn } from '../../../src/transcript/turns/turn.js';
import { assistant, groupTurns, SESSION, text, toolResult, toolUse, user } from '../../support/lines.js';
import { OPTIONS } from '../../support/traces.js';

const IMAGE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'QUJD' } };

const LINES = [
  user('<ide_selection>word-of-ide</ide_selection>word-of-prompt', { uuid: 'u' }),
  { type: 'custom-title', customTitle: 'word-of-title' },
  assistant('m1', [
    { type: 'thinking', thinking: 'word-of-thought' },
    text('word-of-answer'),
    toolUse('t1', 'Bash', { command: 'word-of-input', description: 'word-of-description' }),
  ]),
  user([toolResult('t1', 'word-of-result', { is_error: true })], {
    toolUseResult: { persistedOutputPath: 'word-of-path' },
  }),
  { type: 'attachment', attachment: { type: 'queued_command', prompt: 'word-of-message' } },
  assistant('m2', 'word-of-error', { isApiErrorMessage: true }),
];

function wordsIn(capture: Capture): string[] {
  const observations = groupTurns(LINES).all.flatMap((turn) => {
    const { children, root } = buildTurn(turn, { ...OPTIONS, capture, sessionId: SESSION });
    return [root, ...children];
  });
  expect(observations.map(({ type, name, level }) => [type, name, level])).toEqual([
    ['agent', 'Turn 1', 'ERROR'],
    ['generation', 'claude-opus-5', 'DEFAULT'],
    ['tool', 'Bash', 'ERROR'],
    ['event', 'message while working', 'DEFAULT'],
    ['event', 'api error', 'ERROR'],
  ]);
  return [...new Set(JSON.stringify(observations).match(/word-of-\w+/g))].toSorted();
}

const TOOLS = ['word-of-description', 'word-of-input', 'word-of-path', 'word-of-result'];
const SAID = [
  'word-of-answer',
  'word-of-error',
  'word-of-ide',
  'word-of-message',
  'word-of-prompt',
  'word-of-thought',
  'word-of-title',
];

describe('what is captured', () => {
  test('with full is everything', () => {
    expect(wordsIn('full')).toEqual([...SAID, ...TOOLS].toSorted());
  });

  test('with no_tool_io excludes the inputs and outputs of tools', () => {
    expect(wordsIn('no_tool_io')).toEqual(SAID);
  });

  test.each([
    ['', '<task-notification>word-of-result'],
    [' with an image', [text('<task-notification>word-of-result'), IMAGE]],
  ])('with no_tool_io excludes the notification%s of a background task that ends while Claude works', (_, prompt) => {
    const notification = { type: 'attachment', uuid: 'a', attachment: { type: 'queued_command', prompt } };
    const [turn] = groupTurns([user('go', { uuid: 'u' }), notification, assistant('m1', 'ok')]).all;
    const options = { ...OPTIONS, capture: 'no_tool_io', sessionId: SESSION } as const;
    const children = [...buildTurn(turn as Turn, options).children];
    const placeholder = { role: 'user', name: 'Background task', content: '[not captured]' };
    expect(children.map(({ name, input, media }) => ({ name, input, media }))).toEqual([
      { name: 'message while working', input: [placeholder], media: undefined },
      { name: 'claude-opus-5', input: [{ role: 'user', content: 'go' }, placeholder], media: undefined },
    ]);
  });

  test('with no_tool_io excludes what hooks say, which can be about a tool', () => {
    const hook = (fields: object) => ({ type: 'attachment', attachment: { hookName: 'PostToolUse:Bash', ...fields } });
    const lines = [
      user('go', { uuid: 'u' }),
      hook({ type: 'hook_success', hookEvent: 'UserPromptSubmit', content: 'word-of-hook' }),
      assistant('m1', [toolUse('t1')]),
      user([toolResult('t1', 'word-of-result')]),
      hook({ type: 'hook_additional_context', hookEvent: 'PostToolUse', content: ['word-of-hook'] }),
      hook({ type: 'hook_blocking_error', hookEvent: 'PostToolUse', blockingError: { blockingError: 'word-of-hook' } }),
      user('Stop hook feedback:\nword-of-hook', { isMeta: true }),
      assistant('m2', 'ok'),
      hook({ type: 'hook_stopped_continuation', hookEvent: 'Stop', message: 'word-of-hook' }),
    ];
    const [turn] = groupTurns(lines).all;
    const options = { ...OPTIONS, sessionId: SESSION };
    const built = buildTurn(turn as Turn, { ...options, capture: 'no_tool_io' });
    const { root, children } = { ...built, children: [...built.children] };
    expect(JSON.stringify([root, children])).not.toContain('word-of');
    expect(root).toMatchObject({
      output: { content: 'ok\n\n> **stopped by a hook**' },
      metadata: { outcome: 'stopped_by_hook' },
      statusMessage: 'stopped by a hook',
    });
    expect(children.filter(({ type }) => type === 'event').map(({ name, input }) => [name, input])).toEqual(
      ['hook context', 'hook context', 'hook feedback', 'stop hook feedback', 'stopped by hook'].map((name) => [
        name,
        [{ role: 'user', name: 'Hook', content: '[not captured]' }],
      ]),
    );
    const whole = buildTurn(turn as Turn, options);
    expect(JSON.stringify([whole.root, ...whole.children]).match(/word-of-hook/g)).toHaveLength(11);
  });

  test('with metadata is nothing that was said or done', () => {
    expect(wordsIn('metadata')).toEqual([]);
  });
});
