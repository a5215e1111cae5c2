import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { findOwnHooks, findOwnPlugins, HOOK_SECONDS, PORTABLE_COMMAND } from '../../src/config/claude-hooks.js';

const example = JSON.parse(readFileSync(new URL('../../hooks.example.json', import.meta.url), 'utf8'));
const stop = (hook: object) => ({ hooks: { Stop: [{ hooks: [{ type: 'command', ...hook }] }] } });

test('hooks.example.json registers the hooks that install registers', () => {
  expect(Object.fromEntries(findOwnHooks(example).map(({ event, timeout }) => [event, timeout]))).toEqual(HOOK_SECONDS);
  expect(new Set(findOwnHooks(example).map(({ command }) => command))).toEqual(new Set([PORTABLE_COMMAND]));
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
])('%s starts this program', (command) => {
  expect(findOwnHooks(stop({ command }))).toMatchObject([
    { event: 'Stop', path: ['hooks', 'Stop', 0, 'hooks', 0], command },
  ]);
});

test('a hook with a list of arguments may start this program, too', () => {
  expect(
    findOwnHooks(stop({ command: 'node', args: ['/opt/cc-langfuse/dist/cli.cjs', 'hook'], timeout: 9 })),
  ).toMatchObject([{ words: ['node', '/opt/cc-langfuse/dist/cli.cjs', 'hook'], timeout: 9 }]);
});

test.each([
  'pnpm dlx github:elct9620/cc-langfuse hook',
  'npx github:elct9620/cc-langfuse#0.3.1 hook',
  'python3 ~/.claude/hooks/langfuse_hook.py',
  'node /opt/another/dist/cli.cjs hook',
  'notify "cc-langfuse hook done"',
  'cc-langfuse sessions',
  'tail ~/.claude/state/cc-langfuse_hook.log',
])('%s does not start this program', (command) => {
  expect(findOwnHooks(stop({ command }))).toEqual([]);
});

test.each([{}, { hooks: [] }, { hooks: { Stop: {} } }, { hooks: { Stop: [null, { hooks: [1, { command: 2 }] }] } }])(
  'settings of another shape (%j) have no hooks',
  (settings) => expect(findOwnHooks(settings)).toEqual([]),
);

test('the plugin is recognised by its name, if it is enabled', () => {
  expect(
    findOwnPlugins({ enabledPlugins: { 'cc-langfuse@tools': true, 'cc-langfuse@old': false, 'x@y': true } }),
  ).toEqual(['cc-langfuse@tools']);
  expect(findOwnPlugins({})).toEqual([]);
});
