import { describe, test } from 'vitest';
import { bash, call, type Script, says, text } from './replies.js';
import { hasTmux } from './terminal.js';
import { play } from './typed-scenario.js';

const TALK: Script = {
  'Say hello': [says(text('Hello there.'))],
  'Look around': [
    says(text('Looking.'), call('Read', { file_path: '$WORK/a.txt' }), bash('ls')),
    says(text('All seen.')),
  ],
  'Take your time': [says(text('Working.'), bash('sleep 1.5')), says(text('Time taken.'))],
  // Claude Code shows a streamed text line by line.
  'Tell a story': [{ content: [text(`Once upon a time,\n${'there was a king,\n'.repeat(25)}`)], msPerWord: 30 }],
  'Plan it': [
    says(text('Here is my plan.'), call('Write', { file_path: '$PLAN', content: '# Plan\n\n1. Do it.\n' })),
    says(call('ExitPlanMode', { plan: '# Plan\n\n1. Do it.\n' })),
    says(text('The plan is carried out.')),
  ],
};

describe.skipIf(!hasTmux())('Langfuse receives everything from Claude Code in the terminal (needs tmux)', () => {
  test('/exit right after the answer', (context) =>
    play(context, TALK, {
      typed: async ({ terminal, finds }) => {
        await terminal.type('Take your time');
        await terminal.shows('Working.');
        await terminal.write('/exit');
        await terminal.shows('Time taken.');
        await terminal.press('Enter');
        await terminal.ended();
        // It may have stopped the Stop hook before the worker started. Then SessionEnd sends the turn.
        await finds(Date.now());
      },
      shows: [
        'session',
        '  Turn 1, completed',
        '    generation "Working."',
        '      Bash',
        '    generation "Time taken."',
      ],
    }));

  test('Esc during the answer, and then another prompt', (context) =>
    play(context, TALK, {
      typed: async ({ terminal, reads }) => {
        await terminal.type('Tell a story');
        await terminal.shows('there was a king');
        await terminal.press('Escape');
        await terminal.shows('Interrupted');
        await terminal.type('Say hello');
        await reads('Hello there.');
        await terminal.type('/exit');
      },
      // Claude Code counts an aborted answer in its own way.
      account: 'not to be compared',
      shows: [
        'session',
        '  Turn 1, interrupted WARNING',
        '    generation "Once upon a time, there was a …" WARNING',
        '  Turn 2, completed',
        '    generation "Hello there."',
      ],
    }));

  test('a prompt that is queued while a tool runs', (context) =>
    play(context, TALK, {
      typed: async ({ terminal, reads }) => {
        await terminal.type('Take your time');
        await terminal.shows('Working.');
        await terminal.type('Say hello');
        await reads('Hello there.');
        await terminal.type('/exit');
      },
      shows: [
        'session',
        '  Turn 1, completed',
        '    generation "Working."',
        '      Bash',
        '    message while working "Say hello"',
        '    generation "Hello there."',
      ],
    }));

  test('a prompt that is queued during the answer', (context) =>
    play(context, TALK, {
      typed: async ({ terminal, reads }) => {
        await terminal.type('Tell a story');
        await terminal.shows('there was a king');
        await terminal.type('Say hello');
        await reads('Hello there.');
        await terminal.type('/exit');
      },
      shows: [
        'session',
        '  Turn 1, completed',
        '    generation "Once upon a time, there was a …"',
        '  Turn 2, completed',
        '    generation "Hello there."',
      ],
    }));

  test('/compact between two prompts', (context) =>
    play(context, TALK, {
      typed: async ({ terminal, reads }) => {
        await terminal.type('Say hello');
        await reads('Hello there.');
        await terminal.type('/compact');
        await terminal.shows('Compacted');
        await terminal.idle();
        await terminal.type('Look around');
        await reads('All seen.');
        await terminal.type('/exit');
      },
      // In a terminal the account is written once, at the end, so it does not show what the compaction itself used.
      account: 'with asides',
      shows: [
        'session',
        '  Turn 1, completed',
        '    generation "Hello there."',
        '    compaction "Compact the conversation (manu…"',
        '  Turn 2, completed',
        '    generation "Looking."',
        '      Read',
        '      Bash',
        '    generation "All seen."',
      ],
    }));

  test('a plan that is accepted', (context) =>
    play(context, TALK, {
      args: ['--permission-mode', 'plan'],
      typed: async ({ terminal, reads }) => {
        await terminal.type('Plan it');
        await terminal.answer('Would you like to proceed', '1');
        await reads('The plan is carried out.');
        await terminal.type('/exit');
      },
      // Claude Code asks for a name of the session after its plan.
      account: 'with asides',
      shows: [
        'session',
        '  Turn 1, completed',
        '    generation "Here is my plan."',
        '      Write',
        '    generation',
        '      ExitPlanMode',
        '    generation "The plan is carried out."',
      ],
    }));
});
