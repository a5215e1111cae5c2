import { describe, test } from 'vitest';
import { bash, call, type Script, says, text } from './replies.js';
import { hasTmux } from './terminal.js';
import { play } from './typed-scenario.js';

const EVERY_MINUTE = { cron: '* * * * *', prompt: 'Water the plants', recurring: true };
/** A recurring prompt comes up to half its period late: one for each minute after 90 s at most. */
const FIRES_WITHIN_MS = 100_000;

const TALK: Script = {
  'Say hello': [says(text('Hello there.'))],
  'Say goodbye': [says(text('Goodbye.'))],
  'Take your time': [says(text('Slowly.'), bash('sleep 3')), says(text('Time taken.'))],
  'Look around': [says(text('Looking.'), bash('ls')), says(text('All seen.'))],
  'Remind me': [says(text('Scheduling.'), call('CronCreate', EVERY_MINUTE)), says(text('It is scheduled.'))],
  'Water the plants': [says(text('Watering.'), bash('echo wet')), says(text('All plants are wet.'))],
  'Delegate it': [
    says(
      text('Delegating.'),
      call('Agent', {
        description: 'A long walk',
        subagent_type: 'general-purpose',
        prompt: 'Walk slowly',
        run_in_background: true,
      }),
    ),
    says(text('It is under way.')),
    says(text('It is back.')),
  ],
  'Walk slowly': [says(text('One step.'), bash('sleep 4')), says(bash('sleep 4')), says(text('Walked.'))],
  'Start afresh': [says(text('A fresh start.')), says(text('It is back.'))],
};

describe.skipIf(!hasTmux())('Langfuse receives what happens unattended (needs tmux)', { concurrent: true }, () => {
  test('a prompt that /loop schedules', (context) =>
    play(context, TALK, {
      typed: async ({ terminal, reads }) => {
        await terminal.type('/loop 1m Remind me');
        await reads('It is scheduled.');
        await terminal.shows('All plants are wet.', FIRES_WITHIN_MS);
        await reads('All plants are wet.');
        await terminal.type('Say hello');
        await reads('Hello there.');
        await terminal.type('/exit');
        await terminal.answer('Background work is running', '1');
      },
      shows: [
        'session',
        '  Turn 1, completed',
        '    generation "Scheduling."',
        '      CronCreate',
        '    generation "It is scheduled."',
        '  Turn 2, completed',
        '    generation "Watering."',
        '      Bash',
        '    generation "All plants are wet."',
        '  Turn 3, completed',
        '    generation "Hello there."',
      ],
    }));

  test('two terminals with one session', (context) =>
    play(context, TALK, {
      typed: async ({ terminal, reads, resume }) => {
        await terminal.type('Say hello');
        await reads('Hello there.');
        const other = await resume();
        await terminal.type('Take your time');
        await terminal.shows('Slowly.');
        await other.type('Look around');
        await other.shows('All seen.');
        await reads('Time taken.');
        await other.type('Say goodbye');
        await other.shows('Goodbye.');
        await other.idle();
        await other.type('/exit');
        await other.ended();
        await terminal.type('/exit');
      },
      shows: [
        'session',
        '  Turn 1, completed',
        '    generation "Hello there."',
        '  Turn 2, completed',
        '    generation "Slowly."',
        '      Bash',
        '    generation "Time taken."',
        '  Turn 3, completed',
        '    generation "Looking."',
        '      Bash',
        '    generation "All seen."',
        '  Turn 4, completed',
        '    generation "Goodbye."',
      ],
      // Each process counts only its own responses.
      account: 'not to be compared',
    }));

  test('an agent that continues after /clear', (context) =>
    play(context, TALK, {
      typed: async ({ terminal, reads }) => {
        await terminal.type('Delegate it');
        // The answers of the agent arrive later.
        await terminal.shows('It is under way.');
        await terminal.idle();
        await terminal.type('/clear');
        await terminal.gone('It is under way.');
        await terminal.type('Start afresh');
        await terminal.shows('A fresh start.');
        await reads('It is back.');
        await terminal.type('/exit');
      },
      shows: [
        'session',
        '  Turn 1, completed',
        '    generation "Delegating."',
        '      Agent',
        '        general-purpose: A long walk, completed',
        '          generation "One step."',
        '            Bash',
        '          generation',
        '            Bash',
        '          generation "Walked."',
        '    generation "It is under way."',
        'session',
        '  Turn 1, completed',
        '    generation "A fresh start."',
        '  Turn 2, completed',
        '    generation "It is back."',
      ],
    }));

  test('an agent that continues after /branch', (context) =>
    play(context, TALK, {
      typed: async ({ terminal, reads }) => {
        await terminal.type('Delegate it');
        // The answers of the agent arrive later.
        await terminal.shows('It is under way.');
        await terminal.idle();
        await terminal.type('/branch');
        await terminal.shows('Branched');
        await terminal.type('Start afresh');
        await terminal.shows('A fresh start.');
        await reads('It is back.');
        await terminal.type('/exit');
      },
      shows: [
        'session',
        '  Turn 1, completed',
        '    generation "Delegating."',
        '      Agent',
        '        general-purpose: A long walk, completed',
        '          generation "One step."',
        '            Bash',
        '          generation',
        '            Bash',
        '          generation "Walked."',
        '    generation "It is under way."',
        'session',
        '  Turn 2, completed',
        '    generation "A fresh start."',
        '  Turn 3, completed',
        '    generation "It is back."',
      ],
      // Its account begins with that of the session that it was branched from.
      account: 'not to be compared',
    }));
});
