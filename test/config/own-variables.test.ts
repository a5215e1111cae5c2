import { mkdtempSync, readFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { saveInstalledDestination } from '../../src/config/installed-destinations.js';
import { dropForeignVariables } from '../../src/config/own-variables.lazy.js';
import { LAUNCHER_VARIABLES, NODE_START_VARIABLES, STATE_PLACES } from '../../src/config/platform.js';
import { SETTING_NAMES, whenOfProject } from '../../src/config/settings-table.js';
import { writeFolderSettings } from '../support/claude-session.js';
import { removeFolder } from '../support/remove-folder.js';

let home: string;
let project: string;
let user: NodeJS.ProcessEnv;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'cc-langfuse-'));
  project = join(home, 'project');
  user = { CLAUDE_CONFIG_DIR: join(home, '.claude') };
});

afterEach(() => removeFolder(home));

const file = () => join(project, '.claude', 'settings.json');
const cannotSet = (name: string) => `${name}: is ignored, because ${file()} cannot set it`;

/** What is left of a hook's environment in which Claude Code has laid a project's variables over the shell's. */
function drop(theirs: NodeJS.ProcessEnv, shell: NodeJS.ProcessEnv = {}) {
  writeFolderSettings(project, theirs);
  const { env, ignored } = dropForeignVariables({ ...user, ...shell, ...theirs }, [project]);
  const set = Object.entries(env).filter(([, value]) => value !== undefined);
  const { CLAUDE_CONFIG_DIR: _, ...left } = Object.fromEntries(set);
  return { left, ignored: ignored.map(({ text }) => text) };
}

describe('what a project sets', () => {
  const DESTINATION = {
    LANGFUSE_PUBLIC_KEY: 'pk',
    LANGFUSE_SECRET_KEY: 'sk',
    LANGFUSE_BASE_URL: 'https://theirs.test',
  };
  const allowed = SETTING_NAMES.filter((name) => whenOfProject(name) === 'always');

  test('counts if it describes or restricts, or turns tracing or live turns on or off', () => {
    expect(allowed).toEqual([
      'TRACE_TO_LANGFUSE',
      'CC_LANGFUSE_CAPTURE',
      'CC_LANGFUSE_REDACT',
      'CC_LANGFUSE_REDACT_EXTRA',
      'CC_LANGFUSE_MEDIA',
      'CC_LANGFUSE_MAX_CHARS',
      'CC_LANGFUSE_INPUT',
      'CC_LANGFUSE_EXCLUDE',
      'CC_LANGFUSE_MUTE',
      'LANGFUSE_USER_ID',
      'LANGFUSE_TAGS',
      'CC_LANGFUSE_AUTO_TAGS',
      'OTEL_RESOURCE_ATTRIBUTES',
      'LANGFUSE_METADATA',
      'LANGFUSE_TRACING_ENVIRONMENT',
      'LANGFUSE_RELEASE',
      'CC_LANGFUSE_TRACE_NAME',
      'CC_LANGFUSE_SCORES',
      'CC_LANGFUSE_LIVE',
    ]);
    const theirs = {
      TRACE_TO_LANGFUSE: 'true',
      CC_LANGFUSE_CAPTURE: 'metadata',
      CC_LANGFUSE_REDACT_EXTRA: '[{"pattern":"a"}]',
      CC_LANGFUSE_MEDIA: 'false',
      CC_LANGFUSE_MAX_CHARS: '7',
      CC_LANGFUSE_EXCLUDE: '/a',
      CC_LANGFUSE_MUTE: 'true',
      CC_LANGFUSE_TAGS: 'a',
      LANGFUSE_RELEASE: 'v1',
      CC_LANGFUSE_LIVE: 'true',
    };
    expect(drop(theirs)).toEqual({ left: theirs, ignored: [] });
  });

  const others = [
    ...SETTING_NAMES.filter((name) => whenOfProject(name) !== 'always' && name !== 'CC_LANGFUSE_OTLP_URL'),
    ...['CC_LANGFUSE_OF_A_LATER_VERSION', 'LANGFUSE_OTEL_HOST', 'CLAUDE_PLUGIN_OPTION_BASE_URL', 'CLAUDE_PLUGIN_ROOT'],
    ...['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy', 'NO_PROXY', 'no_proxy'],
    ...['NODE_TLS_REJECT_UNAUTHORIZED', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'CLAUDE_CODE_CERT_STORE'],
    ...['RES_OPTIONS', 'LOCALDOMAIN', 'HOSTALIASES', 'BASH_ENV', 'ENV', 'TMPDIR', 'NODE_REPL_EXTERNAL_MODULE'],
    ...['OTEL_EXPORTER_OTLP_ENDPOINT', 'GIT_AUTHOR_EMAIL', 'GIT_CONFIG_GLOBAL', 'XDG_CONFIG_HOME', 'GITHUB_ACTIONS'],
    ...['CLAUDE_CODE_SKIP_PROMPT_HISTORY', 'CLAUDE_CODE_ENTRYPOINT', 'ANYTHING_ELSE'],
    ...NODE_START_VARIABLES,
    ...LAUNCHER_VARIABLES.filter((name) => !['PATH', 'HOME', 'CLAUDE_CONFIG_DIR'].includes(name)),
  ];

  test.each([...new Set(others)])('counts for nothing otherwise, and what the user has set counts: %s', (name) => {
    expect(drop({ [name]: 'theirs' }).left).toEqual({});
    writeFolderSettings(home, { [name]: 'mine' });
    expect(drop({ [name]: 'theirs' }).left).toEqual({ [name]: 'mine' });
    expect(drop({ [name]: 'mine' })).toEqual({ left: { [name]: 'mine' }, ignored: [] });
  });

  test('is named if something acts on it', () => {
    expect(drop({ https_proxy: 'http://theirs.test', NODE_OPTIONS: '--inspect', FOO: '1', CI: '' }).ignored).toEqual([
      cannotSet('https_proxy'),
      cannotSet('NODE_OPTIONS'),
    ]);
  });

  test('does not matter for a variable that only the shell has', () => {
    const shell = {
      HTTPS_PROXY: 'http://mine.test',
      NODE_OPTIONS: '--use-system-ca',
      NODE_EXTRA_CA_CERTS: '/mine.pem',
    };
    expect(drop({ FOO: '1' }, shell)).toEqual({ left: shell, ignored: [] });
  });

  test('cannot be a path or a home', () => {
    const { left, ignored } = drop({ PATH: '/theirs', HOME: '/theirs' }, { PATH: '/mine' });
    expect(left).toEqual({ HOME: homedir(), PATH: expect.stringMatching(/^\/usr/) });
    expect(ignored).toEqual([cannotSet('HOME'), cannotSet('PATH')]);
  });

  test('does not become the user’s if the project says that the user’s settings are its own', () => {
    const theirs = { CLAUDE_CONFIG_DIR: join(project, '.claude'), HTTPS_PROXY: 'http://theirs.test' };
    const { left, ignored } = drop(theirs);
    expect(left).toEqual({});
    expect(ignored).toEqual([cannotSet('CLAUDE_CONFIG_DIR'), cannotSet('HTTPS_PROXY')]);
  });

  test('does not hide where the project is, which Claude Code says', () => {
    expect(drop({ CLAUDE_PROJECT_DIR: project }).left).toEqual({ CLAUDE_PROJECT_DIR: project });
  });

  test('may be a destination that the user has installed, and with any other nothing is sent', () => {
    expect(drop(DESTINATION, { LANGFUSE_BASE_URL: 'https://mine.test' }).left).toEqual({});
    const { LANGFUSE_SECRET_KEY: _, ...part } = DESTINATION;
    expect(drop(part).left).toEqual({});
    saveInstalledDestination(join(home, '.claude', 'state'), file(), part);
    expect(drop(part)).toEqual({ left: part, ignored: [] });
  });

  test('does not choose the server for keys of the user, whose own server gets them, if it is known', () => {
    const keys = { LANGFUSE_PUBLIC_KEY: 'pk-mine', LANGFUSE_SECRET_KEY: 'sk-mine' };
    const theirs = { LANGFUSE_BASE_URL: 'https://theirs.test' };
    expect(drop(theirs, keys)).toEqual({
      left: { LANGFUSE_PUBLIC_KEY: 'pk-mine' },
      ignored: [`LANGFUSE_SECRET_KEY: is ignored, because ${file()} chooses the server`],
    });
    const host = { LANGFUSE_HOST: 'https://mine.test' };
    expect(drop(theirs, { ...keys, ...host })).toEqual({
      left: { ...keys, ...host },
      ignored: [cannotSet('LANGFUSE_BASE_URL')],
    });
    writeFolderSettings(home, { LANGFUSE_BASE_URL: 'https://mine.test' });
    expect(drop(theirs, keys)).toEqual({
      left: { ...keys, LANGFUSE_BASE_URL: 'https://mine.test' },
      ignored: [cannotSet('LANGFUSE_BASE_URL')],
    });
  });
});

test('an empty value of a project, which hides the server of the shell, does not make the default one', () => {
  const keys = { LANGFUSE_PUBLIC_KEY: 'pk-mine', LANGFUSE_SECRET_KEY: 'sk-mine' };
  expect(drop({ LANGFUSE_BASE_URL: '' }, { ...keys, LANGFUSE_BASE_URL: 'https://mine.test' })).toEqual({
    left: { LANGFUSE_PUBLIC_KEY: 'pk-mine' },
    ignored: [`LANGFUSE_SECRET_KEY: is ignored, because ${file()} chooses the server`],
  });
  writeFolderSettings(home, { LANGFUSE_BASE_URL: 'https://mine.test', HTTPS_PROXY: 'http://mine.test' });
  expect(drop({ LANGFUSE_BASE_URL: '', HTTPS_PROXY: '' }, keys)).toEqual({
    left: { ...keys, LANGFUSE_BASE_URL: 'https://mine.test', HTTPS_PROXY: 'http://mine.test' },
    ignored: [],
  });
});

test('a destination that the user has installed in the local settings counts, whatever the committed ones name', () => {
  const mine = { LANGFUSE_PUBLIC_KEY: 'pk', LANGFUSE_BASE_URL: 'https://mine.test' };
  writeFolderSettings(project, mine, 'settings.local.json');
  saveInstalledDestination(join(home, '.claude', 'state'), join(project, '.claude', 'settings.local.json'), mine);
  writeFolderSettings(project, { LANGFUSE_BASE_URL: 'https://theirs.test' });
  expect(dropForeignVariables({ ...user, ...mine }, [project])).toEqual({
    env: { ...user, ...mine },
    ignored: [],
    isHeld: false,
  });
});

describe('tracing that the user turns off for one run', () => {
  const name = 'CC_TRACE_TO_LANGFUSE';

  test("stays off if a project turns it on under the same name, which hides the shell's value", () => {
    expect(drop({ [name]: 'true', TRACE_TO_LANGFUSE: 'true' }, { [name]: 'false' })).toEqual({
      left: { [name]: 'false', TRACE_TO_LANGFUSE: 'true' },
      ignored: [`${name}: counts as false, because ${file()} hides the shell's value`],
    });
    expect(drop({ [name]: 'no' }, { [name]: 'true' })).toEqual({ left: { [name]: 'no' }, ignored: [] });
  });

  test('is on if the settings of the user say so', () => {
    writeFolderSettings(home, { [name]: 'true' });
    expect(drop({ [name]: 'true' })).toEqual({ left: { [name]: 'true' }, ignored: [] });
  });
});

describe('a restriction of a project', () => {
  test.each([
    ['CC_LANGFUSE_REDACT', 'false'],
    ['CC_LANGFUSE_MAX_CHARS', '900000'],
    ['CC_LANGFUSE_INPUT', 'request'],
  ])('does not lift a default: %s=%s', (name, value) => {
    expect(drop({ [name]: value })).toEqual({
      left: {},
      ignored: [`${name}: is ignored, because ${file()} can only make it stricter`],
    });
  });

  test.each([
    ['CC_LANGFUSE_MAX_CHARS', '-5', '100'],
    ['CC_LANGFUSE_MAX_CHARS', '0.5', '100'],
    ['CC_LANGFUSE_MAX_CHARS', '101', '100'],
    ['CC_LANGFUSE_REDACT', 'false', 'true'],
    ['CC_LANGFUSE_REDACT', 'no', 'true'],
    ['CC_LANGFUSE_CAPTURE', 'full', 'no_tool_io'],
    ['CC_LANGFUSE_INPUT', 'all', 'answered'],
    ['CC_LANGFUSE_MEDIA', 'true', 'false'],
    ['CC_LANGFUSE_MUTE', 'false', 'true'],
  ])('does not lift what the user has set: %s=%s is no more than %s', (name, theirs, mine) => {
    writeFolderSettings(home, { [name]: mine });
    expect(drop({ [name]: theirs })).toEqual({ left: { [name]: mine }, ignored: [] });
  });

  test('comes after the rules of the user', () => {
    writeFolderSettings(home, { CC_LANGFUSE_REDACT_EXTRA: '[{"pattern":"mine"}]' });
    expect(drop({ CC_LANGFUSE_REDACT_EXTRA: '[{"pattern":"theirs"},{"pattern":"mine"}]' }).left).toEqual({
      CC_LANGFUSE_REDACT_EXTRA: '[{"pattern":"mine"},{"pattern":"theirs"}]',
    });
  });
});

describe('the launcher', () => {
  const launcher = readFileSync(fileURLToPath(new URL('../../src/commands/hook/hook.sh', import.meta.url)), 'utf8');

  test('has the same list as Node of what acts before Node can look', () => {
    const [, list = ''] = /for name in ([A-Z0-9_\s\\]+);/.exec(launcher) ?? [];
    expect(list.split(/[\s\\]+/)).toEqual([...NODE_START_VARIABLES, ...LAUNCHER_VARIABLES]);
  });

  test('holds back each variable that says where the state is, and knows that it has', () => {
    const places = STATE_PLACES.map(({ variable }) => (variable === 'USERPROFILE' ? 'HOME' : variable));
    expect(LAUNCHER_VARIABLES).toEqual(expect.arrayContaining(places));
    const [, check = ''] = /^is_held_folder\(\) \{(.*?)^\}/ms.exec(launcher) ?? [];
    const held = Array.from(check.matchAll(/HOOK_SH_HELD_(\w+)/g), ([, name]) => name);
    expect(held.toSorted()).toEqual(places.toSorted());
  });
});
