import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  expandHome,
  findOwnHooks,
  findOwnPlugins,
  HOOK_SECONDS,
  portableCommand,
} from '../../src/config/claude-hooks.js';

const example = JSON.parse(readFileSync(new URL('../../hooks.example.json', import.meta.url), 'utf8'));
const stop = (hook: object) => ({ hooks: { Stop: [{ hooks: [{ type: 'command', ...hook }] }] } });

test('hooks.example.json registers the hooks that install registers', () => {
  expect(Object.fromEntries(findOwnHooks(example).map(({ event, timeout }) => [event, timeout]))).toEqual(HOOK_SECONDS);
  for (const { event, command } of findOwnHooks(example)) expect({ command }).toEqual(portableCommand(event));
});

test.each([
  'exec cc-langfuse-hook Stop',
  'exec "/usr/local/bin/cc-langfuse-hook" Stop "/usr/local/bin/node"',
  `exec "/home/me/my code/cc-langfuse/dist/hook.sh" Stop "/opt/node/bin/node"`,
  `exec '/home/me/elsewhere/dist/hook.sh' Stop '/opt/node/bin/node' # cc-langfuse`,
  'TRACE_TO_LANGFUSE="$' +
    '{TRACE_TO_LANGFUSE:-true}" exec "$' +
    '{CLAUDE_PLUGIN_ROOT}/dist/hook.sh" Stop # cc-langfuse',
  'C:\\Users\\me\\AppData\\Roaming\\npm\\cc-langfuse-hook.cmd Stop',
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
  'cc-langfuse Stop',
  'cc-langfuse-hook toString',
  '/opt/another/dist/hook.sh Stop',
  'tail ~/.claude/state/cc-langfuse_hook.log',
])('%s does not start this program', (command) => {
  expect(findOwnHooks(stop({ command }))).toEqual([]);
});

test('a hook that names a file by its path starts this program if the launcher is in that file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lf-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'hook.sh');
  const isOwn = () => findOwnHooks(stop({ command: `exec "${file}" Stop` })).length > 0;
  writeFileSync(file, '#!/bin/sh\n# another hook');
  expect(isOwn()).toBe(false);
  writeFileSync(file, readFileSync(new URL('../../src/commands/hook/hook.sh', import.meta.url)));
  expect(isOwn()).toBe(true);
});

test('a hook that names a file by its path starts this program if the program is in that file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lf-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'cli.cjs');
  const isOwn = (path = file) => findOwnHooks(stop({ command: `node "${path}" hook` })).length > 0;
  expect(isOwn()).toBe(false);
  // The source has the same texts as the program that is built from it.
  const program = readFileSync(new URL('../../src/cli.ts', import.meta.url), 'utf8');
  writeFileSync(file, program);
  expect(isOwn()).toBe(true);
  expect(findOwnHooks(stop({ command: 'node', args: [file, 'hook'] }))).toHaveLength(1);
  // Which directory a hook runs in is not known.
  expect(isOwn('dist/cli.cjs')).toBe(false);
  writeFileSync(file, "console.log('usage: another hook')");
  expect(isOwn()).toBe(false);
  rmSync(file);
  writeFileSync(join(folder, 'program'), program);
  symlinkSync('program', file);
  expect(isOwn()).toBe(true);
  rmSync(file);
  mkdirSync(file);
  expect(isOwn()).toBe(false);
  rmSync(file, { recursive: true });
  // Reading it would block.
  if (process.platform !== 'win32') execFileSync('mkfifo', [file]);
  expect(isOwn()).toBe(false);
});

test('a path may begin with the home directory', () => {
  expect(['~/a', '$HOME/a', '$' + '{HOME}/a'].map(expandHome)).toEqual(Array(3).fill(`${homedir()}/a`));
  expect(['/a/~/b', '~me/a', '$HOMES/a'].map(expandHome)).toEqual(['/a/~/b', '~me/a', '$HOMES/a']);
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
