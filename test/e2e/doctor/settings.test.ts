import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Patient } from '../../support/doctor.js';
import { PUBLIC_KEY, SECRET_KEY } from '../../support/langfuse-server.js';

let patient: Patient;

beforeEach(async () => {
  patient = await Patient.open();
});

afterEach(() => patient.close());

describe('settings', () => {
  const FILE = '~/.claude/settings.json';

  test('that leave tracing off', async () => {
    const { TRACE_TO_LANGFUSE: _, ...env } = patient.workplace.env;
    patient.workplace.env = env;
    expect(await patient.told('tracing')).toEqual([
      {
        status: 'broken',
        message: 'off: TRACE_TO_LANGFUSE is not set',
        fix: `cc-langfuse install, or "TRACE_TO_LANGFUSE": "true" in the env block of ${FILE}`,
      },
    ]);
    patient.writeSettings({ env: { TRACE_TO_LANGFUSE: '1' } });
    expect(await patient.told('tracing', { TRACE_TO_LANGFUSE: 'true' })).toEqual([
      {
        status: 'broken',
        message: `off: TRACE_TO_LANGFUSE is "1", by ${FILE}`,
        fix: `make it "TRACE_TO_LANGFUSE": "true" in ${FILE}`,
      },
    ]);
  });

  test('that turn tracing off in a project, which somebody has meant', async () => {
    patient.setUp();
    patient.writeSettings({ env: { TRACE_TO_LANGFUSE: 'false' } }, 'local');
    expect(await patient.told('tracing')).toEqual([
      {
        status: 'warning',
        message: 'off: TRACE_TO_LANGFUSE is "false", by ~/project/.claude/settings.local.json',
        fix: 'make it "TRACE_TO_LANGFUSE": "true" in ~/project/.claude/settings.local.json',
      },
    ]);
  });

  test('that were entered for the plugin, which traces unless it is told not to', async () => {
    const plugin = 'cc-langfuse@cc-langfuse';
    const options = { public_key: PUBLIC_KEY, base_url: patient.workplace.server.url };
    patient.writeSettings({ enabledPlugins: { [plugin]: true }, pluginConfigs: { [plugin]: { options } } });
    patient.workplace.env = { HOME: patient.workplace.home };
    const { checks, ok } = await patient.checked();
    expect(ok).toBe(true);
    const told = checks.filter(({ name }) => /^(?:tracing|.*-key|base-url|hooks|endpoint)$/.test(name));
    expect(told.map(({ name, status, message }) => `${status} ${name}: ${message}`)).toEqual([
      `ok hooks: registered in plugin ${plugin} (${patient.workplace.home}/.claude/settings.json)`,
      `ok tracing: on, by the plugin ${plugin}`,
      `none secret-key: Claude Code keeps it for the plugin ${plugin}; commands by hand want the keys in the shell`,
      `ok public-key: CC_LANGFUSE_PUBLIC_KEY is ${PUBLIC_KEY.slice(0, 8)}…, by the plugin ${plugin}`,
      `ok base-url: CC_LANGFUSE_BASE_URL is ${patient.workplace.server.url}, by the plugin ${plugin}`,
      'none endpoint: not asked: the secret key is not at hand; with the keys in the shell it would be',
    ]);
    expect(await patient.told('tracing', { TRACE_TO_LANGFUSE: 'false' })).toMatchObject([{ status: 'warning' }]);
    const empty = { TRACE_TO_LANGFUSE: '', CC_LANGFUSE_PUBLIC_KEY: '' };
    expect((await patient.checked(empty)).checks.filter(({ name }) => /^(?:tracing|public-key)$/.test(name))).toEqual(
      checks.filter(({ name }) => /^(?:tracing|public-key)$/.test(name)),
    );
  });

  test('without keys', async () => {
    expect(await patient.told('secret-key', { LANGFUSE_SECRET_KEY: '' })).toEqual([
      {
        status: 'broken',
        message: 'LANGFUSE_SECRET_KEY is not set',
        fix: `cc-langfuse install, or "LANGFUSE_SECRET_KEY" in the env block of ${FILE}`,
      },
    ]);
  });

  test.each([
    ['public-key', 'LANGFUSE_PUBLIC_KEY', 'pk-lf-…', "is the example's"],
    ['public-key', 'LANGFUSE_PUBLIC_KEY', 'pk-lf-a b', 'holds a space or a quote'],
    ['secret-key', 'CC_LANGFUSE_SECRET_KEY', `"${SECRET_KEY}"`, 'holds a space or a quote'],
  ])('whose %s is no key: %s=%s', async (name, variable, value, wrong) => {
    expect(await patient.told(name, { [variable]: value })).toEqual([
      {
        status: 'broken',
        message: `${variable} ${wrong}, by the shell`,
        fix: "copy it once more from the project's settings in Langfuse into the shell",
      },
    ]);
  });

  test('whose keys are exchanged: not even the public one is shown', async () => {
    const env = { LANGFUSE_PUBLIC_KEY: SECRET_KEY, LANGFUSE_SECRET_KEY: PUBLIC_KEY };
    expect(await patient.told('public-key', env)).toEqual([
      {
        status: 'broken',
        message: 'LANGFUSE_PUBLIC_KEY begins with sk-, as the other key does, by the shell',
        fix: 'exchange the two',
      },
    ]);
  });

  test.each([
    [
      'langfuse',
      'broken',
      'expected an http or https URL (by the shell)',
      '"https://cloud.langfuse.com", or your own server\'s',
    ],
    [
      'ftp://x',
      'broken',
      'expected an http or https URL (by the shell)',
      '"https://cloud.langfuse.com", or your own server\'s',
    ],
  ])('whose URL is none: %s', async (value, status, wrong, right) => {
    expect(await patient.told('base-url', { LANGFUSE_BASE_URL: value })).toEqual([
      { status, message: `LANGFUSE_BASE_URL: ${wrong}`, fix: `write "LANGFUSE_BASE_URL": ${right}` },
    ]);
  });

  test('whose URL holds a password, or goes unencrypted', async () => {
    const { port } = patient.workplace.server;
    const shown = `http://127.0.0.1:${port}`;
    expect(
      await patient.told('base-url', { LANGFUSE_HOST: `http://me:hunter2@127.0.0.1:${port}`, LANGFUSE_BASE_URL: '' }),
    ).toEqual([
      {
        status: 'warning',
        message: `LANGFUSE_HOST is ${shown}, by the shell, with a name and a password, which are not used`,
        fix: `write "LANGFUSE_HOST": "${shown}"`,
      },
    ]);
    expect(await patient.told('base-url', { LANGFUSE_BASE_URL: 'http://langfuse.invalid' })).toEqual([
      {
        status: 'warning',
        message: 'LANGFUSE_BASE_URL is http://langfuse.invalid, by the shell: keys and content go there unencrypted',
        fix: 'write "LANGFUSE_BASE_URL": "https://langfuse.invalid"',
      },
    ]);
  });

  test('that are bad are named once, without their values', async () => {
    const env = { CC_LANGFUSE_TIMEOUT: 'x'.repeat(10), LANGFUSE_METADATA: '[]', LANGFUSE_USER_ID: `me ${SECRET_KEY}` };
    expect(await patient.told('setting', env)).toEqual([
      {
        status: 'warning',
        message: 'LANGFUSE_METADATA: expected a JSON object (by the shell)',
        fix: 'correct LANGFUSE_METADATA in the shell, or take it out',
      },
      {
        status: 'warning',
        message: 'CC_LANGFUSE_TIMEOUT: expected a whole number above 0 (by the shell)',
        fix: 'correct CC_LANGFUSE_TIMEOUT in the shell, or take it out',
      },
      { status: 'ok', message: 'LANGFUSE_USER_ID is me [redacted], by the shell' },
    ]);
  });

  test("of a project come before the user's and the shell's, and their server is not asked", async () => {
    patient.setUp();
    const elsewhere = `http://localhost:${patient.workplace.server.port}`;
    patient.writeSettings({ env: { LANGFUSE_BASE_URL: elsewhere, LANGFUSE_TAGS: 'theirs' } }, 'project');
    patient.writeSettings({ env: { LANGFUSE_TAGS: 'mine' } }, 'local');
    const env = { LANGFUSE_TAGS: 'shell' };
    expect(await patient.told('setting', env)).toEqual([
      { status: 'ok', message: 'LANGFUSE_TAGS is mine, by ~/project/.claude/settings.local.json' },
    ]);
    const { port } = patient.workplace.server;
    expect(await patient.told('destination', env)).toEqual([
      {
        status: 'warning',
        message: `hooks here send to localhost:${port} (pk-lf-em…), commands by hand to 127.0.0.1:${port} (pk-lf-em…), which is what is asked below`,
        fix: `where that is not meant, make ${FILE} and ~/project/.claude/settings.json say the same as the shell and your own settings`,
      },
    ]);
    expect(new Set(patient.workplace.server.requests.map(({ headers }) => headers.host))).toEqual(
      new Set([`127.0.0.1:${port}`]),
    );
  });

  test('that only a project has: its server is asked nothing', async () => {
    const { HOME, ...env } = patient.workplace.env;
    patient.workplace.env = { HOME };
    patient.writeSettings({ env }, 'project');
    expect(await patient.told('endpoint')).toEqual([
      {
        status: 'none',
        message: "not asked: its address or its keys are a project's; in the shell they would be tried",
      },
    ]);
    expect(patient.workplace.server.requests).toEqual([]);
  });

  test('whose file with the keys others can read, or may be committed', async () => {
    const { HOME: _, ...env } = patient.workplace.env;
    patient.writeSettings({ env }, 'local');
    execFileSync('git', ['init', '-q', patient.project]);
    const file = '~/project/.claude/settings.local.json';
    expect(await patient.told('keys-exposed')).toEqual([
      {
        status: 'warning',
        message: `${file} holds the secret key, and others on this machine can read it`,
        fix: `chmod 600 ${file}`,
      },
      {
        status: 'warning',
        message: `${file} holds the secret key, and git does not ignore it`,
        fix: 'add settings.local.json* to ~/project/.claude/.gitignore',
      },
    ]);
  });
});
