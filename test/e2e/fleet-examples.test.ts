import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { buildCommand } from '../../src/commands/setup/program-path.js';
import type { HookCommand } from '../../src/config/claude-hooks.js';
import { version } from '../../src/shared/version.js';
import { run } from '../support/program.js';
import { removeFolder } from '../support/remove-folder.js';

const read = (name: string) => readFileSync(new URL(`../../examples/fleet/${name}`, import.meta.url), 'utf8');
const URL_OF_SERVER = 'https://langfuse.example.com';
const COMMAND = 'vault kv get -field=secret_key secret/langfuse-1';
const REQUEST = ['--public-key', 'pk-lf-1', '--base-url', URL_OF_SERVER, '--secret-key-command', COMMAND];
const MAC_FOLDER = '/Library/Application Support/ClaudeCode/managed-settings.d';
let folder: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'cc-langfuse-')));
});

afterEach(() => removeFolder(folder));

interface Settings {
  readonly hooks: { readonly [event: string]: readonly { readonly hooks: readonly HookCommand[] }[] };
}

/** What `install --scope managed --print` prints, with the commands for a program that is elsewhere. */
async function printSettings(commandFor: (event: string) => HookCommand): Promise<Settings> {
  const args = ['install', '--scope', 'managed', '--print', '--user', 'git', ...REQUEST];
  const { stdout } = await run(args, { HOME: folder });
  const settings: Settings = JSON.parse(stdout);
  const hooks = Object.entries(settings.hooks).map(([event, groups]) => [
    event,
    groups.map((group) => ({ hooks: group.hooks.map((hook) => ({ ...hook, ...commandFor(event) })) })),
  ]);
  return { ...settings, hooks: Object.fromEntries(hooks) };
}

const onPosix = (platform: 'darwin' | 'linux', prefix: string) => (event: string) => {
  const dist = `${prefix}/lib/node_modules/cc-langfuse/dist`;
  const start = { program: `${dist}/cli.cjs`, launcher: `${dist}/hook.sh`, node: `${prefix}/bin/node` };
  return buildCommand(event, { ...start, platform, claudeVersion: undefined });
};

/** A property list with this value, as Apple's tools write it, but for the spaces before each line. */
function toPropertyList(value: unknown): string {
  if (typeof value === 'number') return `<integer>${value}</integer>`;
  if (typeof value === 'string') return `<string>${value.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</string>`;
  if (Array.isArray(value)) return ['<array>', ...value.map(toPropertyList), '</array>'].join('\n');
  const entries = Object.entries(value as object).map(([key, each]) => `<key>${key}</key>\n${toPropertyList(each)}`);
  return ['<dict>', ...entries, '</dict>'].join('\n');
}

test('the script for Jamf installs the program, and writes what install prints', async () => {
  const expected = await printSettings(onPosix('darwin', '/usr/local'));
  const npm = join(folder, 'npm');
  writeFileSync(npm, `#!/bin/sh\nprintf '%s\\n' "$@" > '${folder}/installed'\n`, { mode: 0o755 });
  // It writes to the disk of a Mac. Here that is a folder, and npm a script.
  const script = read('jamf.sh')
    .replace(MAC_FOLDER, join(folder, 'managed'))
    .replace('PATH=/usr/local/bin:', `PATH=${folder}:`);
  execFileSync('/bin/sh', ['-c', script]);
  expect(readFileSync(join(folder, 'installed'), 'utf8').trim().split('\n')).toEqual([
    'install',
    '--global',
    '--ignore-scripts',
    '--prefix',
    '/usr/local',
    `cc-langfuse@${version}`,
  ]);
  const file = join(folder, 'managed', '50-cc-langfuse.json');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(expected);
  expect(statSync(file).mode & 0o777).toBe(0o644);
  expect(read('jamf.sh')).toContain(`folder='${MAC_FOLDER}'\n`);
});

test('the property list for a configuration profile is the same', async () => {
  const [, list = ''] = /<plist version="1.0">\n(.*)<\/plist>\n$/s.exec(read('com.anthropic.claudecode.plist')) ?? [];
  const expected = toPropertyList(await printSettings(onPosix('darwin', '/usr/local')));
  expect(list.trim().replace(/^ +/gm, '')).toBe(expected);
});

test('the script for Intune has what install prints, in the form for Windows', async () => {
  const script = read('intune.ps1');
  const [, json = ''] = /^\$json = @'\n(.*?)\n'@$/ms.exec(script) ?? [];
  const nodejs = 'C:\\Program Files\\nodejs';
  const program = `${nodejs}\\node_modules\\cc-langfuse\\dist\\cli.cjs`;
  const start = {
    node: `${nodejs}\\node.exe`,
    program,
    launcher: '',
    platform: 'win32',
    claudeVersion: '2.1.139',
  } as const;
  expect(JSON.parse(json)).toEqual(await printSettings((event) => buildCommand(event, start)));
  expect(script).toContain("$folder = 'C:\\Program Files\\ClaudeCode\\managed-settings.d'\n");
  expect(script).toContain('"$folder\\50-cc-langfuse.json"');
  expect(script).toContain(`$version = '${version}'\n`);
  expect(script).toContain(`--prefix '${nodejs}' "cc-langfuse@$version"\n`);
});

test('the playbook for Ansible has what install prints', async () => {
  const [{ vars, tasks }] = parse(read('ansible.yml'));
  expect(vars).toEqual({ version });
  const [program, made, copied] = tasks;
  expect(program['community.general.npm']).toMatchObject({ name: 'cc-langfuse', global: true, ignore_scripts: true });
  expect(program.environment).toEqual({ npm_config_prefix: '/usr' });
  const path = '/etc/claude-code/managed-settings.d';
  expect(made['ansible.builtin.file']).toMatchObject({ path, state: 'directory' });
  const { content, ...file } = copied['ansible.builtin.copy'];
  expect(file).toEqual({ dest: `${path}/50-cc-langfuse.json`, mode: '0644' });
  expect(JSON.parse(content)).toEqual(await printSettings(onPosix('linux', '/usr')));
});
