import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { version } from '../../src/shared/version.js';
import { PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { KEYS, Newcomer } from '../support/newcomer.js';
import { PROGRAM } from '../support/program.js';

let newcomer: Newcomer;
const backup = () => `${newcomer.settingsFile}.cc-langfuse.bak`;

beforeEach(async () => {
  newcomer = await Newcomer.arrive();
});

afterEach(async () => expect(await newcomer.leave()).toEqual([]));

describe('uninstall', () => {
  test('restores the settings and says what is kept', async () => {
    newcomer.settings =
      '{\n  "env": { "EDITOR": "vi" },\n  "hooks": {\n    "Stop": [{ "hooks": [{ "type": "command", "command": "say done" }] }]\n  }\n}\n';
    const before = newcomer.settings;
    await newcomer.install();
    const { exitCode, stdout, stderr } = await newcomer.run(['uninstall', '--yes']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toBe(
      [
        `removed cc-langfuse from ${newcomer.settingsFile}`,
        ...['current', version].map((name) => `removed ${join(newcomer.program, name)}`),
        `removed ${backup()}`,
        `removed ${newcomer.home}/.claude/state/cc-langfuse_projects.json`,
        `State and log are kept. To remove them: rm -r ${newcomer.home}/.claude/state/cc-langfuse_*`,
        '',
      ].join('\n'),
    );
    expect(newcomer.settings).toBe(before);
    expect(readdirSync(join(newcomer.home, '.claude'), { recursive: true })).toEqual(['settings.json']);
  });

  test.each([
    undefined,
    '',
    '{}',
    '{ }\n',
    '{\n  "hooks": {},\n  "env": {}\n}\n',
    '{"env":{ },"hooks":{"Stop":[ ]}}',
    '{\n\t"env": {\n\t},\n\t"model": "opus"\n}',
    '{\r\n    "hooks": {\r\n    },\r\n    "env": { "A": "b" }\r\n}\r\n',
    '\uFEFF{\n  "env": {}\n}\n',
  ])('restores %j byte for byte, also after a second install', async (text) => {
    if (text !== undefined) newcomer.settings = text;
    await newcomer.install();
    newcomer.settings = newcomer.settings.replace(PUBLIC_KEY, 'pk-lf-before');
    await newcomer.install();
    expect((await newcomer.run(['uninstall', '--yes'])).exitCode).toBe(0);
    expect(existsSync(newcomer.settingsFile) ? newcomer.settings : undefined).toBe(text);
    expect(readdirSync(join(newcomer.home, '.claude'))).toEqual(text === undefined ? [] : ['settings.json']);
  });

  test('keeps a link to a file that install created, without what install wrote', async () => {
    await newcomer.install();
    const file = join(newcomer.home, 'dotfiles.json');
    renameSync(newcomer.settingsFile, file);
    symlinkSync(file, newcomer.settingsFile);
    await newcomer.run(['uninstall', '--yes']);
    expect(lstatSync(newcomer.settingsFile).isSymbolicLink()).toBe(true);
    expect(newcomer.settings).toBe('{}\n');
  });

  test('keeps the program as long as settings that it knows of start it, and then removes only its own', async () => {
    mkdirSync(join(newcomer.program, 'src'), { recursive: true });
    const project = join(newcomer.home, 'project');
    mkdirSync(project);
    await newcomer.install();
    await newcomer.run(
      ['install', '--scope', 'local', '--yes', ...KEYS, '--base-url', newcomer.server.url],
      SECRET_KEY,
      project,
    );
    const local = join(project, '.claude', 'settings.local.json');
    expect((await newcomer.run(['uninstall', '--yes'])).stdout).toContain(
      `kept the program in ${newcomer.program}, which ${local} still starts\n`,
    );
    expect(readdirSync(newcomer.program)).toEqual([version, 'current', 'src']);
    const { stdout } = await newcomer.run(['uninstall', '--scope', 'local', '--yes'], '', project);
    expect(stdout).toContain(`removed ${join(newcomer.program, version)}\n`);
    expect(existsSync(local)).toBe(false);
    expect(readdirSync(newcomer.program)).toEqual(['src']);
  });

  test('with --purge lists state, log and every backup, and removes them', async () => {
    newcomer.settings = '{"env":{"LANGFUSE_SECRET_KEY":"sk-lf-of-my-app"}}';
    await newcomer.install();
    const state = newcomer.stateFolder;
    mkdirSync(join(state, 'cc-langfuse_sessions'), { recursive: true });
    const names = ['cc-langfuse_hook.log', 'cc-langfuse_state.json'];
    for (const name of names) writeFileSync(join(state, name), '{}');
    writeFileSync(join(state, 'of-another'), '');
    const paths = [
      ...['current', version].map((name) => join(newcomer.program, name)),
      backup(),
      ...['hook.log', 'projects.json', 'sessions', 'state.json'].map((name) => join(state, `cc-langfuse_${name}`)),
    ];
    const { stdout: listed } = await newcomer.run(['uninstall', '--purge', '--dry-run']);
    expect(listed.split('\n').filter((line) => line.endsWith(' would be removed'))).toEqual(
      paths.map((path) => `${path} would be removed`),
    );
    expect(await newcomer.run(['uninstall', '--purge'])).toMatchObject({ exitCode: 2 });
    expect(existsSync(backup())).toBe(true);
    const { stdout } = await newcomer.run(['uninstall', '--purge', '--yes']);
    expect(stdout.split('\n')).toEqual([
      `removed cc-langfuse from ${newcomer.settingsFile}`,
      ...paths.map((path) => `removed ${path}`),
      '',
    ]);
    expect(readdirSync(join(newcomer.home, '.claude'), { recursive: true })).toEqual([
      'settings.json',
      'state',
      'state/of-another',
    ]);
    expect((await newcomer.run(['uninstall', '--purge', '--yes'])).stdout).toBe(
      `${newcomer.settingsFile} contains nothing of cc-langfuse; nothing was changed\n`,
    );
  });

  test('keeps what was edited since the installation, and removes the backup', async () => {
    newcomer.settings = '{"model":"opus"}';
    await newcomer.install();
    newcomer.settings = newcomer.settings.replace('opus', 'sonnet');
    await newcomer.run(['uninstall', '--yes']);
    expect(newcomer.settings).toBe('{"model":"sonnet"}');
    expect(existsSync(backup())).toBe(false);
  });

  test('keeps a backup that has the only copy of a secret key, and says so', async () => {
    newcomer.settings = '{"env":{"LANGFUSE_SECRET_KEY":"sk-lf-of-my-app"}}';
    await newcomer.install();
    const { stdout } = await newcomer.run(['uninstall', '--yes']);
    expect(stdout).toContain(
      `kept the backup ${backup()}, which has a secret key that install replaced. To remove it: rm ${backup()}\n`,
    );
    expect(readFileSync(backup(), 'utf8')).toContain('sk-lf-of-my-app');
  });

  test.each(['not settings', undefined])('keeps what it did not make at the place of the backup (%s)', async (text) => {
    await newcomer.install();
    if (text === undefined) symlinkSync(PROGRAM, backup());
    else writeFileSync(backup(), text);
    const { stdout } = await newcomer.run(['uninstall', '--yes']);
    if (text === undefined) expect(stdout).not.toContain('backup');
    else
      expect(stdout).toContain(
        `kept the backup ${backup()}, which install did not make. To remove it: rm ${backup()}\n`,
      );
    expect(lstatSync(backup()).isSymbolicLink()).toBe(text === undefined);
  });

  test('names a backup that is left over from an earlier installation', async () => {
    newcomer.settings = '{}';
    await newcomer.install();
    newcomer.settings = '{}';
    const { stdout } = await newcomer.run(['uninstall', '--yes']);
    expect(stdout).toContain('contains nothing of cc-langfuse; nothing was changed\n');
    expect(stdout).toContain(
      `kept the backup ${backup()}, which is left over from an earlier installation. To remove it: rm ${backup()}\n`,
    );
    expect(existsSync(backup())).toBe(true);
    expect((await newcomer.run(['uninstall', '--yes', '--scope', 'local'])).stdout).not.toContain('backup');
  });

  test('keeps the backup if the settings cannot be written', async () => {
    // With a name of this length no temporary file can be created next to it.
    const real = join(newcomer.home, `${'x'.repeat(250)}.json`);
    newcomer.settings = '{}';
    await newcomer.install();
    renameSync(newcomer.settingsFile, real);
    symlinkSync(real, newcomer.settingsFile);
    expect(await newcomer.run(['uninstall', '--yes'])).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: `cc-langfuse: ${newcomer.settingsFile} cannot be written (ENAMETOOLONG); nothing was changed\n`,
    });
    expect(readFileSync(backup(), 'utf8')).toBe('{}');
  });

  test.each(['lf', 'my tools'])(
    'removes hooks that were written by hand, for a clone in the folder "%s"',
    async (folder) => {
      const clone = join(newcomer.home, folder);
      cpSync(dirname(PROGRAM), join(clone, 'dist'), { recursive: true });
      writeFileSync(join(newcomer.home, 'cli.cjs'), 'another program');
      const hook = (path: string) => [{ hooks: [{ type: 'command', command: `node "${path}" hook` }] }];
      const other = hook(join(newcomer.home, 'cli.cjs'));
      const own = hook(join(clone, 'dist', 'cli.cjs'));
      newcomer.settings = JSON.stringify({ hooks: { Stop: [...other, ...own], SessionEnd: own } });
      expect((await newcomer.run(['uninstall', '--yes'])).exitCode).toBe(0);
      expect(JSON.parse(newcomer.settings)).toEqual({ hooks: { Stop: other } });
    },
  );

  test('quotes the command that removes the rest', async () => {
    newcomer.env = { ...newcomer.env, HOME: `${newcomer.home}/my home` };
    expect((await newcomer.run(['uninstall', '--yes'])).stdout).toContain(
      `To remove them: rm -r '${newcomer.home}/my home/.claude/state/cc-langfuse_'*\n`,
    );
  });

  test('removes the settings of a Collector, too', async () => {
    newcomer.settings =
      '{"env":{"CC_LANGFUSE_OTLP_URL":"http://collector:4318","CC_LANGFUSE_OTLP_HEADERS":"x-tenant=a","CC_LANGFUSE_TRANSPORT":"auto","EDITOR":"vi"}}';
    await newcomer.run(['install']);
    await newcomer.run(['uninstall', '--yes']);
    expect(JSON.parse(newcomer.settings)).toEqual({ env: { EDITOR: 'vi' } });
  });

  test('removes hooks and keys from settings with comments, too, which Claude Code ignores', async () => {
    await newcomer.install();
    newcomer.settings = newcomer.settings.replace('{', '{\n  // mine');
    expect((await newcomer.run(['uninstall', '--yes'])).exitCode).toBe(0);
    expect(newcomer.settings).toBe('{\n  // mine\n}\n');
  });

  test('changes nothing in settings that contain nothing of it', async () => {
    expect((await newcomer.run(['uninstall', '--yes'])).stdout).toMatch(
      /contains nothing of cc-langfuse; nothing was changed\n/,
    );
    expect(existsSync(newcomer.settingsFile)).toBe(false);
  });

  test('keeps keys that another exporter may use, and names where it is still registered', async () => {
    await newcomer.install();
    const settings = JSON.parse(newcomer.settings);
    settings.enabledPlugins = { 'langfuse-observability@claude-plugins-official': true };
    newcomer.settings = JSON.stringify(settings);
    await newcomer.run(['install', '--scope', 'local', '--yes']);
    const { stdout } = await newcomer.run(['uninstall', '--yes']);
    expect(stdout).toContain(
      `the keys are still in it, because another exporter in ${newcomer.settingsFile} may use them\n`,
    );
    expect(stdout).toContain('settings.local.json: cc-langfuse uninstall --scope local\n');
    expect(JSON.parse(newcomer.settings)).toEqual({ env: settings.env, enabledPlugins: settings.enabledPlugins });
  });

  test('shows the change with --dry-run, and needs --yes without a terminal', async () => {
    newcomer.settings = '{}';
    await newcomer.install();
    const before = newcomer.settings;
    const { stdout } = await newcomer.run(['uninstall', '--dry-run']);
    expect(stdout).toContain(`${backup()} would be removed\n`);
    expect(stdout).toContain('-    "LANGFUSE_SECRET_KEY": "[redacted]",\n');
    expect(await newcomer.run(['uninstall'])).toMatchObject({
      exitCode: 2,
      stderr: 'cc-langfuse: there is no terminal to ask in: use --yes\n',
    });
    expect(newcomer.settings).toBe(before);
  });
});
