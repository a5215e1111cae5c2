import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DoctorHome } from '../../support/doctor.js';
import { PUBLIC_KEY, SECRET_KEY } from '../../support/langfuse-server.js';

const FILE = '~/.claude/settings.json';
const LOCAL_FILE = '~/project/.claude/settings.local.json';
let home: DoctorHome;

beforeEach(async () => {
  home = await DoctorHome.open();
});

afterEach(() => home.close());

describe('tracing', () => {
  test('is broken if TRACE_TO_LANGFUSE is not set', async () => {
    expect((await home.check({ TRACE_TO_LANGFUSE: undefined })).of('tracing')).toEqual([
      {
        status: 'broken',
        message: 'off: TRACE_TO_LANGFUSE is not set',
        fix: `cc-langfuse install, or set "TRACE_TO_LANGFUSE": "true" in the env block of ${FILE}`,
      },
    ]);
  });

  test('is broken if its value in the settings, which override the shell, is not "true"', async () => {
    home.writeSettings({ env: { TRACE_TO_LANGFUSE: '1' } });
    expect((await home.check({ TRACE_TO_LANGFUSE: 'true' })).of('tracing')).toEqual([
      {
        status: 'broken',
        message: `off: TRACE_TO_LANGFUSE is "1" (from ${FILE})`,
        fix: `set "TRACE_TO_LANGFUSE": "true" in ${FILE}`,
      },
    ]);
  });

  test('is a warning if someone turned it off on purpose', async () => {
    home.setUp();
    home.writeSettings({ env: { TRACE_TO_LANGFUSE: 'false' } }, 'local');
    expect((await home.check()).of('tracing')).toEqual([
      {
        status: 'warning',
        message: `off: TRACE_TO_LANGFUSE is "false" (from ${LOCAL_FILE})`,
        fix: `set "TRACE_TO_LANGFUSE": "true" in ${LOCAL_FILE}`,
      },
    ]);
  });
});

describe('transcripts', () => {
  const NAME = 'CLAUDE_CODE_SKIP_PROMPT_HISTORY';
  const message = (place: string) =>
    `off: with ${NAME} (from ${place}) Claude Code writes no transcripts, so there is nothing to send`;

  test('are broken if they are switched off in the shell', async () => {
    expect((await home.check({ [NAME]: '1' })).of('transcripts')).toEqual([
      { status: 'broken', message: message('the shell'), fix: `unset ${NAME}` },
    ]);
  });

  test('are broken if they are switched off in a settings file', async () => {
    home.writeSettings({ env: { [NAME]: 'true' } });
    expect((await home.check()).of('transcripts')).toEqual([
      { status: 'broken', message: message(FILE), fix: `remove "${NAME}" from ${FILE}` },
    ]);
  });

  test.each([undefined, '', '0', 'false'])('are not mentioned if the variable is %j', async (value) => {
    expect((await home.check({ [NAME]: value })).of('transcripts')).toEqual([]);
  });
});

test('the plugin’s settings count, and it traces unless tracing is turned off', async () => {
  const plugin = 'cc-langfuse@cc-langfuse';
  const options = { public_key: PUBLIC_KEY, base_url: home.server.url };
  home.writeSettings({ enabledPlugins: { [plugin]: true }, pluginConfigs: { [plugin]: { options } } });
  home.env = { HOME: home.home };
  const found = await home.check();
  const names = /^(?:tracing|.*-key|base-url|hooks|endpoint)$/;
  expect(found.lines(names)).toEqual([
    `ok hooks: registered in plugin ${plugin} (${FILE})`,
    `ok tracing: on (from the plugin ${plugin})`,
    `none secret-key: Claude Code keeps it for the plugin ${plugin}; commands that you run yourself need the keys in the shell`,
    `ok public-key: CC_LANGFUSE_PUBLIC_KEY is ${PUBLIC_KEY.slice(0, 8)}… (from the plugin ${plugin})`,
    `ok base-url: CC_LANGFUSE_BASE_URL is ${home.server.url} (from the plugin ${plugin})`,
    'none endpoint: not asked: Claude Code keeps the secret key to itself; set the keys in the shell to try them',
  ]);
  expect(found.all.map(({ status }) => status)).not.toContain('broken');
  expect((await home.check({ TRACE_TO_LANGFUSE: 'false' })).of('tracing')).toMatchObject([{ status: 'warning' }]);
  const withEmpty = await home.check({ TRACE_TO_LANGFUSE: '', CC_LANGFUSE_PUBLIC_KEY: '' });
  expect(withEmpty.lines(names)).toEqual(found.lines(names));
});

test('the plugin’s keys go with the plugin’s server, unless the project has both keys: then nothing is sent', async () => {
  const plugin = 'cc-langfuse@cc-langfuse';
  const { HOME, ...env } = home.env;
  home.env = { HOME };
  home.writeSettings({
    enabledPlugins: { [plugin]: true },
    pluginConfigs: { [plugin]: { options: { public_key: 'pk-lf-form', base_url: 'https://form.test' } } },
  });
  const { port } = home.server;
  home.writeSettings({ env: { LANGFUSE_HOST: `http://localhost:${port}` } }, 'project');
  const names = /^(?:.*-key|base-url)$/;
  expect((await home.check()).lines(names)).toEqual([
    `none secret-key: Claude Code keeps it for the plugin ${plugin}; commands that you run yourself need the keys in the shell`,
    `ok public-key: CC_LANGFUSE_PUBLIC_KEY is pk-lf-fo… (from the plugin ${plugin})`,
    `ok base-url: CC_LANGFUSE_BASE_URL is https://form.test (from the plugin ${plugin})`,
  ]);
  home.writeSettings({ env: { ...env, LANGFUSE_BASE_URL: `http://localhost:${port}` } }, 'project');
  expect((await home.check()).lines(/^(?:.*-key|ignored)$/)).toEqual([
    'warning ignored: LANGFUSE_SECRET_KEY: is ignored, because ~/project/.claude/settings.json names another destination, which you have not installed there (cc-langfuse install --scope local)',
    'broken public-key: LANGFUSE_PUBLIC_KEY is not set',
    `none secret-key: Claude Code keeps it for the plugin ${plugin}; commands that you run yourself need the keys in the shell`,
  ]);
});

describe('a key', () => {
  const again = "copy the key again from the project's settings in Langfuse to the shell";

  test('is broken if it is not set', async () => {
    expect((await home.check({ LANGFUSE_SECRET_KEY: '' })).of('secret-key')).toEqual([
      {
        status: 'broken',
        message: 'LANGFUSE_SECRET_KEY is not set',
        fix: `cc-langfuse install, or set "LANGFUSE_SECRET_KEY" in the env block of ${FILE}`,
      },
    ]);
  });

  test.each([
    ['public-key', 'LANGFUSE_PUBLIC_KEY', 'pk-lf-…', "is the example's placeholder"],
    ['public-key', 'LANGFUSE_PUBLIC_KEY', 'pk-lf-a b', 'has a character that no key has, such as a space or a quote'],
    [
      'secret-key',
      'CC_LANGFUSE_SECRET_KEY',
      `"${SECRET_KEY}"`,
      'has a character that no key has, such as a space or a quote',
    ],
  ])('is broken (%s) if it cannot be one: %s=%s', async (name, variable, value, problem) => {
    expect((await home.check({ [variable]: value })).of(name)).toEqual([
      { status: 'broken', message: `${variable} ${problem} (from the shell)`, fix: again },
    ]);
  });

  test('is broken if the two are swapped, and then not even the public one is shown', async () => {
    const env = { LANGFUSE_PUBLIC_KEY: SECRET_KEY, LANGFUSE_SECRET_KEY: PUBLIC_KEY };
    expect((await home.check(env)).of('public-key')).toEqual([
      {
        status: 'broken',
        message: 'LANGFUSE_PUBLIC_KEY begins with sk-, like the other key (from the shell)',
        fix: 'swap the two keys',
      },
    ]);
  });
});

describe('the server’s URL', () => {
  test.each(['langfuse', 'ftp://x'])('is broken if it is %s', async (value) => {
    expect((await home.check({ LANGFUSE_BASE_URL: value })).of('base-url')).toEqual([
      {
        status: 'broken',
        message: 'LANGFUSE_BASE_URL: expected an http or https URL (from the shell)',
        fix: 'set "LANGFUSE_BASE_URL": "https://cloud.langfuse.com", or your own server\'s URL',
      },
    ]);
  });

  test('is a warning if it contains a password', async () => {
    const { port } = home.server;
    const shown = `http://127.0.0.1:${port}`;
    const env = { LANGFUSE_HOST: `http://me:hunter2@127.0.0.1:${port}`, LANGFUSE_BASE_URL: '' };
    expect((await home.check(env)).of('base-url')).toEqual([
      {
        status: 'warning',
        message: `LANGFUSE_HOST is ${shown} (from the shell); the user name and password in it are not used`,
        fix: `set "LANGFUSE_HOST": "${shown}"`,
      },
    ]);
  });

  test('is a warning if it is neither encrypted nor on this machine', async () => {
    expect((await home.check({ LANGFUSE_BASE_URL: 'http://langfuse.invalid' })).of('base-url')).toEqual([
      {
        status: 'warning',
        message: 'LANGFUSE_BASE_URL is http://langfuse.invalid (from the shell): keys and content are sent unencrypted',
        fix: 'set "LANGFUSE_BASE_URL": "https://langfuse.invalid"',
      },
    ]);
  });

  test('is the cloud’s by default', async () => {
    const proxy = { HTTPS_PROXY: 'http://127.0.0.1:1' };
    expect((await home.check({ LANGFUSE_BASE_URL: undefined, ...proxy })).of('base-url')).toEqual([
      { status: 'ok', message: 'https://cloud.langfuse.com (the default)' },
    ]);
  });
});

test('a bad setting is named once, without its value', async () => {
  const env = { CC_LANGFUSE_TIMEOUT: 'x'.repeat(10), LANGFUSE_METADATA: '[]', LANGFUSE_USER_ID: `me ${SECRET_KEY}` };
  expect((await home.check(env)).of('setting')).toEqual([
    {
      status: 'warning',
      message: 'LANGFUSE_METADATA: expected a JSON object (from the shell)',
      fix: 'correct LANGFUSE_METADATA in the shell, or remove it',
    },
    {
      status: 'warning',
      message: 'CC_LANGFUSE_TIMEOUT: expected a whole number above 0 (from the shell)',
      fix: 'correct CC_LANGFUSE_TIMEOUT in the shell, or remove it',
    },
    { status: 'ok', message: 'LANGFUSE_USER_ID is me [redacted] (from the shell)' },
  ]);
});

describe('a project’s settings', () => {
  test('override those of the user and the shell, but a destination that nobody installed there holds all back', async () => {
    const { LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY } = home.env;
    home.setUp();
    const { port } = home.server;
    // Without keys of its own, a project's server gets none.
    const theirs = { LANGFUSE_BASE_URL: `http://localhost:${port}`, LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY };
    home.writeSettings({ env: { ...theirs, LANGFUSE_TAGS: 'theirs' } }, 'project');
    home.writeSettings({ env: { LANGFUSE_TAGS: 'mine' } }, 'local');
    const found = await home.check({ LANGFUSE_TAGS: 'shell' });
    expect(found.of('setting')).toEqual([{ status: 'ok', message: `LANGFUSE_TAGS is mine (from ${LOCAL_FILE})` }]);
    expect(found.lines(/^(?:ignored|.*-key)$/)).toEqual([
      'warning ignored: LANGFUSE_SECRET_KEY: is ignored, because ~/project/.claude/settings.json names another destination, which you have not installed there (cc-langfuse install --scope local)',
      'broken public-key: LANGFUSE_PUBLIC_KEY is not set',
      'broken secret-key: LANGFUSE_SECRET_KEY is not set',
    ]);
    const hosts = home.server.requests.map(({ headers }) => headers.host);
    expect(new Set(hosts)).toEqual(new Set([`127.0.0.1:${port}`]));
  });

  test('that count for nothing, or hide what the shell says, are named', async () => {
    home.setUp();
    const theirs = {
      HTTPS_PROXY: 'http://theirs.test',
      NODE_OPTIONS: '--inspect',
      TRACE_TO_LANGFUSE: 'true',
      CC_LANGFUSE_CAPTURE: 'full',
      CC_LANGFUSE_MAX_CHARS: '-5',
      CC_LANGFUSE_REDACT: 'false',
      CC_LANGFUSE_MEDIA: 'false',
      LANGFUSE_TAGS: 'theirs',
      FOO: 'theirs',
    };
    home.writeSettings({ env: theirs }, 'project');
    const shell = {
      HTTPS_PROXY: 'http://mine.test',
      CC_LANGFUSE_CAPTURE: 'metadata',
      CC_LANGFUSE_MAX_CHARS: '7',
      CC_LANGFUSE_MEDIA: 'true',
      LANGFUSE_TAGS: 'mine',
      FOO: 'mine',
    };
    const file = '~/project/.claude/settings.json';
    expect((await home.check(shell)).lines(/^(?:ignored|hidden)$/)).toEqual([
      `warning ignored: HTTPS_PROXY: is ignored, because ${file} cannot set it`,
      `warning ignored: NODE_OPTIONS: is ignored, because ${file} cannot set it`,
      `warning ignored: CC_LANGFUSE_REDACT: is ignored, because ${file} can only make it stricter`,
      `warning ignored: CC_LANGFUSE_MAX_CHARS: is ignored, because its value in ${file} is bad`,
      ...['HTTPS_PROXY', 'CC_LANGFUSE_CAPTURE', 'CC_LANGFUSE_MAX_CHARS'].map(
        (name) => `warning hidden: ${name}: hooks do not see the shell's value, because ${file} sets it, too`,
      ),
    ]);
  });

  test('that are the only ones do not make doctor ask their server', async () => {
    const { HOME, ...env } = home.env;
    home.env = { HOME };
    home.writeSettings({ env }, 'project');
    expect((await home.check()).of('endpoint')).toEqual([
      {
        status: 'none',
        message: 'not asked: the keys or the URL are missing',
      },
    ]);
    expect(home.server.requests).toEqual([]);
  });
});

test('keys in a file that others can read, or that may be committed, are a warning each', async () => {
  const { HOME: _, ...env } = home.env;
  home.writeSettings({ env }, 'local');
  execFileSync('git', ['init', '-q', home.project]);
  expect((await home.check()).of('keys-exposed')).toEqual([
    {
      status: 'warning',
      message: `${LOCAL_FILE} contains the secret key, and others on this machine can read it`,
      fix: `chmod 600 ${LOCAL_FILE}`,
    },
    {
      status: 'warning',
      message: `${LOCAL_FILE} contains the secret key, and git does not ignore it`,
      fix: 'add settings.local.json* to ~/project/.claude/.gitignore',
    },
  ]);
});
