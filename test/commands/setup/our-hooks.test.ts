import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ourHooks, ourPlugins, PORTABLE_COMMAND, TIMEOUTS } from '../../../src/commands/setup/our-hooks.js';
import { absoluteCommand } from '../../../src/commands/setup/program-path.js';

const example = JSON.parse(readFileSync(new URL('../../../hooks.example.json', import.meta.url), 'utf8'));
const stop = (hook: object) => ({ hooks: { Stop: [{ hooks: [{ type: 'command', ...hook }] }] } });

test('the example registers what we register', () => {
  expect(Object.fromEntries(ourHooks(example).map(({ event, timeout }) => [event, timeout]))).toEqual(TIMEOUTS);
  expect(new Set(ourHooks(example).map(({ command }) => command))).toEqual(new Set([PORTABLE_COMMAND]));
});

test.each([
  'exec cc-langfuse hook',
  'cc-langfuse hook',
  '/usr/local/bin/cc-langfuse hook',
  `exec "/opt/node/bin/node" "/home/me/my code/cc-langfuse/dist/cli.cjs" hook`,
  `exec '/opt/node/bin/node' '/home/me/elsewhere/dist/cli.cjs' hook # cc-langfuse`,
  'node ~/cc-langfuse/dist/cli.cjs hook',
  'npx --yes cc-langfuse@0.1.0 hook',
  'npx cc-langfuse hook',
  'test -d .git && exec cc-langfuse hook; true',
  'exec node "$' + '{CLAUDE_PLUGIN_ROOT}/dist/cli.cjs" hook # cc-langfuse',
  '& "C:\\Program Files\\nodejs\\node.exe" "C:\\Users\\me\\cc-langfuse\\dist\\cli.cjs" hook',
  'C:\\Users\\me\\AppData\\Roaming\\npm\\cc-langfuse.cmd hook',
])('%s is ours', (command) => {
  expect(ourHooks(stop({ command }))).toMatchObject([
    { event: 'Stop', path: ['hooks', 'Stop', 0, 'hooks', 0], command },
  ]);
});

test('so is one whose arguments stand apart', () => {
  expect(
    ourHooks(stop({ command: 'node', args: ['/opt/cc-langfuse/dist/cli.cjs', 'hook'], timeout: 9 })),
  ).toMatchObject([{ words: ['node', '/opt/cc-langfuse/dist/cli.cjs', 'hook'], timeout: 9 }]);
});

test.each(['my code', "o'brien", 'a"b', 'a\\b', 'a`id`', 'a$HOME', 'tools\\'])(
  'a program below %s is known by the command that install writes for it',
  (name) => {
    const program = `/opt/${name}/cc-langfuse/dist/cli.cjs`;
    const [hook] = ourHooks(stop({ command: absoluteCommand(program, {}) }));
    expect(hook?.words).toEqual(['exec', process.execPath, program, 'hook']);
  },
);

test.each([
  'pnpm dlx github:elct9620/cc-langfuse hook',
  'npx github:elct9620/cc-langfuse#0.3.1 hook',
  'python3 ~/.claude/hooks/langfuse_hook.py',
  'node /opt/another/dist/cli.cjs hook',
  'notify "cc-langfuse hook done"',
  'cc-langfuse sessions',
  'tail ~/.claude/state/cc-langfuse_hook.log',
])('%s is not', (command) => {
  expect(ourHooks(stop({ command }))).toEqual([]);
});

test.each([{}, { hooks: [] }, { hooks: { Stop: {} } }, { hooks: { Stop: [null, { hooks: [1, { command: 2 }] }] } }])(
  'settings of another shape (%j) have none',
  (settings) => expect(ourHooks(settings)).toEqual([]),
);

test('our plugin is known by its name, where it is on', () => {
  expect(ourPlugins({ enabledPlugins: { 'cc-langfuse@tools': true, 'cc-langfuse@old': false, 'x@y': true } })).toEqual([
    'cc-langfuse@tools',
  ]);
  expect(ourPlugins({})).toEqual([]);
});
