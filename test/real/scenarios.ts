import type { HomeOptions } from './claude-home.js';
import type { Expected } from './proof.js';
import { bash, call, type Script, says, text, thinking } from './replies.js';

export interface Run {
  readonly prompt: string;
  /** `$SESSION` is replaced by the id of the last session. */
  readonly args?: readonly string[];
  /** The prompt of a second process with the same arguments. It starts after the first answer to this one. */
  readonly meanwhile?: string;
}

/** One or several sessions with `claude -p`. */
export interface Scenario extends HomeOptions, Expected {
  readonly name: string;
  readonly script: Script;
  /** The runs, one after the other. */
  readonly runs: readonly Run[];
  readonly exitCode?: number;
  /** Why it is expected to fail. It is reported as soon as it passes. */
  readonly failsBecause?: string;
}

const RESUME = ['--resume', '$SESSION'];
const OVERLOADED = { status: 529, type: 'overloaded_error', message: 'Overloaded' };
const INVALID = { status: 400, type: 'invalid_request_error', message: 'a scripted refusal' };
/** What the user's own hooks say to the model, or end, by the words of what they are shown. */
const OUTSPOKEN_HOOKS = {
  UserPromptSubmit: `! grep -q 'Say the day' || echo '${JSON.stringify({
    hookSpecificOutput: { hookEventName: 'UserPromptSubmit', additionalContext: 'It is Monday.' },
  })}'`,
  PreToolUse: `case "$(cat)" in *private*) echo 'That file is private.' >&2; exit 2;; *enough*) echo '${JSON.stringify({
    continue: false,
    stopReason: 'It is enough.',
  })}';; esac`,
  Stop: `! grep -q 'Nearly done' || echo '${JSON.stringify({ continue: false, stopReason: 'It is late.' })}'`,
};
const BLOCKS_ONCE = `grep -q '"stop_hook_active":true' || echo '{"decision":"block","reason":"Say more."}'`;

function read(file: string) {
  return call('Read', { file_path: `$WORK/${file}` });
}

function agent(prompt: string, isInBackground = false) {
  const input = { description: 'Look around', subagent_type: 'general-purpose', prompt };
  return call('Agent', { ...input, run_in_background: isInBackground });
}

const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const PAPER = [
  '%PDF-1.4',
  '1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj',
  '2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj',
  '3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>endobj',
  'trailer<</Root 1 0 R/Size 4>>',
  '%%EOF\n',
].join('\n');

/** An image and a document that tools read, and an image that a prompt names. */
export const PICTURES: Scenario = {
  name: 'images and documents',
  files: { 'chart.png': PICTURE, 'paper.pdf': PAPER },
  script: {
    'Look at both': [says(read('chart.png'), read('paper.pdf')), says(text('A point, and nothing.'))],
    'Once more': [says(text('Still a point.'))],
  },
  runs: [{ prompt: 'Look at both' }, { prompt: 'Once more @chart.png', args: RESUME }],
  shows: [
    'session',
    '  Turn 1, completed',
    '    generation',
    '      Read',
    '      Read',
    '    generation "A point, and nothing."',
    '  Turn 2, completed',
    '    generation "Still a point."',
  ],
};

/** Requests of every kind: the first of a process, later ones, parallel tools, a subagent, a compaction. */
export const WHOLE_REQUESTS: Scenario = {
  name: 'the whole requests',
  env: { CC_LANGFUSE_INPUT: 'request' },
  script: {
    'Look at both': [
      says(thinking('Both at once.'), text('Reading.'), read('a.txt'), read('b.txt'), bash('sleep 0.2; ls')),
      says(call('NoSuchTool', { b: 1, 10: 'ten', 9: 'nine', a: { z: null, é: 'ü' } })),
      says(text('Alpha and beta.')),
    ],
    'Delegate it': [says(agent('Look into a.txt')), says(text('It was alpha.'))],
    'Look into a.txt': [says(read('a.txt')), says(text('alpha'))],
    'Once more': [says(bash('sleep 0.5; echo slow'), read('b.txt')), says(text('After the summary.'))],
  },
  runs: [
    { prompt: 'Look at both' },
    { prompt: 'Delegate it', args: RESUME },
    { prompt: '/compact', args: RESUME },
    { prompt: 'Once more', args: RESUME },
  ],
  shows: [
    'session',
    '  Turn 1, completed',
    '    generation thinking "Both at once." "Reading."',
    '      Read',
    '      Read',
    '      Bash',
    '    generation',
    '      NoSuchTool ERROR',
    '    generation "Alpha and beta."',
    '  Turn 2, completed',
    '    generation',
    '      Agent',
    '        general-purpose: Look around, completed',
    '          generation',
    '            Read',
    '          generation "alpha"',
    '    generation "It was alpha."',
    '    compaction "Compact the conversation (manu…"',
    '  Turn 3, completed',
    '    generation',
    '      Bash',
    '      Read',
    '    generation "After the summary."',
  ],
  // After a subagent, the cost of a compaction is unknown.
  account: 'with asides',
};

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'three turns of one session',
    script: { first: [says(text('One.'))], second: [says(text('Two.'))], third: [says(text('Three.'))] },
    runs: [
      { prompt: 'first', args: ['--output-format', 'json'] },
      { prompt: 'second', args: RESUME },
      { prompt: 'third', args: RESUME },
    ],
    shows: [
      'session',
      '  Turn 1, completed',
      '    generation "One."',
      '  Turn 2, completed',
      '    generation "Two."',
      '  Turn 3, completed',
      '    generation "Three."',
    ],
  },
  {
    name: 'a tool loop with parallel tools',
    script: {
      'Look at both': [
        says(text('Reading.'), read('a.txt'), read('b.txt'), bash('sleep 0.2; ls')),
        says(call('Write', { file_path: '$WORK/c.txt', content: 'gamma\n' })),
        says(text('All done.')),
      ],
    },
    runs: [{ prompt: 'Look at both' }],
    shows: [
      'session',
      '  Turn 1, completed',
      '    generation "Reading."',
      '      Read',
      '      Read',
      '      Bash',
      '    generation',
      '      Write',
      '    generation "All done."',
    ],
  },
  {
    name: 'tools that fail',
    script: {
      'Try it': [
        says(read('missing.txt'), bash('echo out; echo err >&2; exit 3')),
        says(call('NoSuchTool', { x: 1 })),
        says(text('They failed.')),
      ],
    },
    runs: [{ prompt: 'Try it' }],
    shows: [
      'session',
      '  Turn 1, completed',
      '    generation',
      '      Read ERROR',
      '      Bash ERROR',
      '    generation',
      '      NoSuchTool ERROR',
      '    generation "They failed."',
    ],
  },
  {
    name: 'two subagents in parallel',
    script: {
      'Delegate both': [says(agent('Look into a.txt'), agent('Look into b.txt')), says(text('alpha and beta.'))],
      'Look into a.txt': [says(read('a.txt')), says(text('alpha'))],
      'Look into b.txt': [says(text('beta'))],
    },
    runs: [{ prompt: 'Delegate both' }],
    shows: [
      'session',
      '  Turn 1, completed',
      '    generation',
      '      Agent',
      '        general-purpose: Look around, completed',
      '          generation',
      '            Read',
      '          generation "alpha"',
      '      Agent',
      '        general-purpose: Look around, completed',
      '          generation "beta"',
      '    generation "alpha and beta."',
    ],
  },
  {
    name: 'nested subagents',
    script: {
      'Delegate it': [says(agent('Ask another')), says(text('The inner one says alpha.'))],
      'Ask another': [says(agent('Look into a.txt')), says(text('It says alpha.'))],
      'Look into a.txt': [says(text('alpha'))],
    },
    runs: [{ prompt: 'Delegate it' }],
    shows: [
      'session',
      '  Turn 1, completed',
      '    generation',
      '      Agent',
      '        general-purpose: Look around, completed',
      '          generation',
      '            Agent',
      '              general-purpose: Look around, completed',
      '                generation "alpha"',
      '          generation "It says alpha."',
      '    generation "The inner one says alpha."',
    ],
  },
  {
    name: 'a subagent in the background',
    script: {
      'Delegate it': [says(agent('Take your time', true)), says(text('It is under way.')), says(text('It is done.'))],
      'Take your time': [says(bash('sleep 1')), says(text('Slept.'))],
    },
    runs: [{ prompt: 'Delegate it' }],
    shows: [
      'session',
      '  Turn 1, completed',
      '    generation',
      '      Agent',
      '        general-purpose: Look around, completed',
      '          generation',
      '            Bash',
      '          generation "Slept."',
      '    generation "It is under way."',
      '  Turn 2, completed',
      '    generation "It is done."',
    ],
  },
  {
    name: 'an API error',
    script: { 'Say hello': [{ failures: [INVALID] }] },
    runs: [{ prompt: 'Say hello' }],
    exitCode: 1,
    shows: ['session', '  Turn 1, api_error ERROR', '    api error "A request to the API failed." ERROR'],
  },
  {
    name: 'an API error after a tool',
    script: { 'Look around': [says(bash('ls')), { failures: [INVALID] }] },
    runs: [{ prompt: 'Look around' }],
    exitCode: 1,
    shows: [
      'session',
      '  Turn 1, api_error ERROR',
      '    generation',
      '      Bash',
      '    api error "A request to the API failed." ERROR',
    ],
  },
  {
    name: 'a retry',
    script: { 'Say hello': [{ failures: [OVERLOADED], content: [text('Hello at last.')] }] },
    runs: [{ prompt: 'Say hello' }],
    shows: [
      'session',
      '  Turn 1, completed',
      '    api retry "A request to the API failed: 5…" WARNING',
      '    generation "Hello at last."',
    ],
  },
  {
    name: 'the limit of turns',
    script: { 'Go on': [says(bash('echo 1')), says(bash('echo 2'))] },
    runs: [{ prompt: 'Go on', args: ['--max-turns', '1'] }],
    exitCode: 1,
    shows: ['session', '  Turn 1, max_turns WARNING', '    generation', '      Bash'],
  },
  {
    name: 'a compaction',
    script: { first: [says(text('One.'))], second: [says(text('Two.'))] },
    runs: [{ prompt: 'first' }, { prompt: '/compact', args: RESUME }, { prompt: 'second', args: RESUME }],
    shows: [
      'session',
      '  Turn 1, completed',
      '    generation "One."',
      '    compaction "Compact the conversation (manu…"',
      '  Turn 2, completed',
      '    generation "Two."',
    ],
  },
  {
    name: 'another Stop hook that blocks',
    script: { 'Say hello': [says(text('Hello.')), says(text('Hello, and more.'))] },
    runs: [{ prompt: 'Say hello' }],
    hooks: { Stop: BLOCKS_ONCE },
    shows: [
      'session',
      '  Turn 1, completed',
      '    generation "Hello."',
      '    stop hook feedback "Stop hook feedback: Say more."',
      '    generation "Hello, and more."',
    ],
  },
  {
    name: 'a custom command',
    script: { 'Greet politely': [says(text('Good day.'))] },
    runs: [{ prompt: '/greet me' }],
    files: { '.claude/commands/greet.md': 'Greet politely: $ARGUMENTS\n' },
    shows: ['session', '  Turn 1, completed', '    generation "Good day."'],
  },
  {
    name: 'a fork',
    script: { first: [says(text('One.'))], second: [says(text('Two.'))] },
    runs: [{ prompt: 'first' }, { prompt: 'second', args: [...RESUME, '--fork-session'] }],
    shows: [
      'session',
      '  Turn 1, completed',
      '    generation "One."',
      'session',
      '  Turn 2, completed',
      '    generation "Two."',
    ],
    // Its account begins with that of the session that it was forked from.
    account: 'not to be compared',
  },
  {
    name: 'two processes that resume one session at once',
    script: {
      'Say hello': [says(text('Hello there.'))],
      'Take your time': [says(text('Slowly.'), bash('sleep 3')), says(read('a.txt')), says(text('Time taken.'))],
      'Look around': [says(text('Looking.'), bash('sleep 0.5; ls'), read('b.txt')), says(text('All seen.'))],
      'Say goodbye': [says(text('Goodbye.'))],
    },
    runs: [
      { prompt: 'Say hello' },
      { prompt: 'Take your time', args: RESUME, meanwhile: 'Look around' },
      { prompt: 'Say goodbye', args: RESUME },
    ],
    shows: [
      'session',
      '  Turn 1, completed',
      '    generation "Hello there."',
      '  Turn 2, completed',
      '    generation "Slowly."',
      '      Bash',
      '    generation',
      '      Read',
      '    generation "Time taken."',
      '  Turn 3, completed',
      '    generation "Looking."',
      '      Bash',
      '      Read',
      '    generation "All seen."',
      '  Turn 4, completed',
      '    generation "Goodbye."',
    ],
    // Each process counts only its own responses.
    account: 'not to be compared',
  },
  {
    name: 'prompts that begin with pasted output',
    script: {
      'What failed?': [says(text('The build.'))],
      'What changed?': [says(text('The cost.'))],
      'What is this?': [says(text('A command.'))],
    },
    runs: [
      { prompt: '<bash-stdout>error 1</bash-stdout><bash-stderr></bash-stderr>\nWhat failed?' },
      { prompt: '<local-command-stdout>Total cost: 1</local-command-stdout>\nWhat changed?', args: RESUME },
      { prompt: '<command-name>/clear</command-name>\nWhat is this?', args: RESUME },
    ],
    shows: [
      'session',
      '  Turn 1, completed',
      '    generation "The build."',
      '  Turn 2, completed',
      '    generation "The cost."',
      '  Turn 3, completed',
      '    generation "A command."',
    ],
  },
  {
    name: "the user's own hooks that speak to the model",
    script: {
      'Say the day': [says(text('Monday.'))],
      'Read on': [says(text('Reading.'), read('private.txt'), read('a.txt')), says(text('One was private.'))],
    },
    hooks: OUTSPOKEN_HOOKS,
    runs: [{ prompt: 'Say the day' }, { prompt: 'Read on', args: RESUME }],
    shows: [
      'session',
      '  Turn 1, completed',
      '    hook context "It is Monday."',
      '    generation "Monday."',
      '  Turn 2, completed',
      '    generation "Reading."',
      '      Read ERROR',
      '      Read',
      '    generation "One was private."',
    ],
  },
  {
    name: "the user's own hooks that end a turn",
    script: {
      'Go on': [says(text('Going on.'), bash('echo enough')), says(text('This is never asked for.'))],
      'Answer me': [says(text('Nearly done.'))],
      'Say hello': [says(text('Hello there.'))],
    },
    hooks: OUTSPOKEN_HOOKS,
    runs: [{ prompt: 'Go on' }, { prompt: 'Answer me', args: RESUME }, { prompt: 'Say hello', args: RESUME }],
    shows: [
      'session',
      '  Turn 1, stopped_by_hook WARNING',
      '    generation "Going on."',
      '      Bash',
      '    stopped by hook "It is enough." WARNING',
      '  Turn 2, stopped_by_hook WARNING',
      '    generation "Nearly done."',
      '    stopped by hook "It is late." WARNING',
      '  Turn 3, completed',
      '    generation "Hello there."',
    ],
  },
  {
    name: 'a fork of an agent',
    script: {
      'Fork yourself': [
        says(
          text('Forking.'),
          call('Agent', { description: 'Read', subagent_type: 'fork', prompt: 'Look into a.txt' }),
        ),
        says(text('It is under way.')),
        says(text('It was alpha.')),
      ],
      'Look into a.txt': [says(read('a.txt')), says(text('alpha'))],
    },
    runs: [{ prompt: 'Fork yourself' }],
    shows: [
      'session',
      '  Turn 1, completed',
      '    generation "Forking."',
      '      Agent',
      '        fork: Read, completed',
      '          generation',
      '            Read',
      '          generation "alpha"',
      '    generation "It is under way."',
      '  Turn 2, completed',
      '    generation "It was alpha."',
    ],
  },
];
