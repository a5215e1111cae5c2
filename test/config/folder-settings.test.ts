import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { readCommandSettings, readHookSettings } from '../../src/config/folder-settings.js';
import { saveInstalledDestination } from '../../src/config/installed-destinations.js';
import type * as SettingsPaths from '../../src/config/settings-paths.js';
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

const DESTINATION = {
  LANGFUSE_PUBLIC_KEY: 'pk',
  LANGFUSE_SECRET_KEY: 'sk',
  LANGFUSE_BASE_URL: 'https://theirs.example',
};
const file = (folder: string, name = 'settings.json') => join(folder, '.claude', name);

test('settings that are there and cannot be read stop everything, since they may forbid something', async () => {
  mkdirSync(join(project, '.claude'), { recursive: true });
  symlinkSync('settings.json', file(project));
  const message = `nothing is sent, because ${file(project)} cannot be read (ELOOP)`;
  await expect(readHookSettings(user, project)).rejects.toThrow(message);
  await expect(readCommandSettings(user, project)).rejects.toThrow(message);
});

describe('the settings of a hook', () => {
  test('are those of its environment, with the strictest restrictions of all files', async () => {
    writeFolderSettings(home, { CC_LANGFUSE_CAPTURE: 'no_tool_io', LANGFUSE_TAGS: 'of the user' });
    writeFolderSettings(project, { CC_LANGFUSE_CAPTURE: 'full', CC_LANGFUSE_MEDIA: 'false' });
    writeFolderSettings(project, { CC_LANGFUSE_MAX_CHARS: '7' }, 'settings.local.json');
    const env = { ...user, CC_LANGFUSE_CAPTURE: 'full', CC_LANGFUSE_MAX_CHARS: '9', LANGFUSE_TAGS: 'of the shell' };
    expect(await readHookSettings(env, project)).toEqual({
      env: { ...env, CC_LANGFUSE_CAPTURE: 'no_tool_io', CC_LANGFUSE_MEDIA: 'false', CC_LANGFUSE_MAX_CHARS: '7' },
      mayOptOut: true,
      optOut: undefined,
      ownDestination: undefined,
    });
  });

  test('put the rules of the user before those of a project, also those that the user has added since the run', async () => {
    const list = (...names: string[]) => JSON.stringify(names.map((pattern) => ({ pattern })));
    writeFolderSettings(home, { CC_LANGFUSE_REDACT_EXTRA: list('mine', 'mine too') });
    writeFolderSettings(project, { CC_LANGFUSE_REDACT_EXTRA: list('theirs') });
    const { env } = await readHookSettings({ ...user, CC_LANGFUSE_REDACT_EXTRA: list('mine', 'theirs') }, project);
    expect(env).toEqual({ ...user, CC_LANGFUSE_REDACT_EXTRA: list('mine', 'mine too', 'theirs') });
  });

  test.each([
    ['CC_LANGFUSE_MAX_CHARS', '-5'],
    ['CC_LANGFUSE_REDACT', 'no'],
    ['CC_LANGFUSE_INPUT', 'all'],
  ])('name a value of a project that cannot be read, and do not use it: %s=%s', async (name, value) => {
    writeFolderSettings(project, { [name]: value });
    expect(await readHookSettings(user, project)).toEqual({
      env: user,
      mayOptOut: true,
      optOut: undefined,
      problems: [
        { kind: 'ignored', variable: name, text: `${name}: is ignored, because its value in ${file(project)} is bad` },
      ],
      ownDestination: undefined,
    });
  });

  test.each([
    ['CC_LANGFUSE_CAPTURE', 'some'],
    ['CC_LANGFUSE_MEDIA', 'no'],
    ['CC_LANGFUSE_REDACT_EXTRA', '['],
  ])('keep a value of a project that is bad and stricter than any other: %s=%s', async (name, value) => {
    writeFolderSettings(project, { [name]: value });
    expect((await readHookSettings(user, project)).env).toEqual({ ...user, [name]: value });
  });

  test.each(['settings.json', 'settings.local.json'])('say which file turns tracing off: %s', async (name) => {
    writeFolderSettings(project, { TRACE_TO_LANGFUSE: 'false' }, name);
    const { optOut } = await readHookSettings({ ...user, TRACE_TO_LANGFUSE: 'true' }, project);
    expect(optOut).toBe(`TRACE_TO_LANGFUSE is off in ${file(project, name)}`);
  });

  test('take the stronger name of the variable in a file', async () => {
    writeFolderSettings(project, { TRACE_TO_LANGFUSE: 'false', CC_TRACE_TO_LANGFUSE: 'true' });
    expect((await readHookSettings(user, project)).optOut).toBeUndefined();
    writeFolderSettings(project, { TRACE_TO_LANGFUSE: 'true', CC_TRACE_TO_LANGFUSE: 'no' });
    expect((await readHookSettings(user, project)).optOut).toBe(`CC_TRACE_TO_LANGFUSE is off in ${file(project)}`);
  });

  test.each([
    ['a comment', '{"env": {"TRACE_TO_LANGFUSE": "false"} // no\n}'],
    ['a value that is no text', '{"env": {"TRACE_TO_LANGFUSE": null, "CC_LANGFUSE_CAPTURE": ["metadata"]}}'],
    ['no block of variables', '{"env": []}'],
    ['nothing', ''],
  ])('do not come from a file that Claude Code would not take them from, with %s', async (_, text) => {
    writeFolderSettings(project, {});
    writeFileSync(file(project), text);
    expect(await readHookSettings(user, project)).toEqual({
      env: user,
      mayOptOut: true,
      optOut: undefined,
      ownDestination: undefined,
    });
  });

  test('take the mark at the beginning of a file, and a folder in its place, for nothing', async () => {
    writeFolderSettings(project, {});
    writeFileSync(file(project), '\uFEFF{"env": {"CC_LANGFUSE_CAPTURE": "metadata"}}');
    mkdirSync(file(project, 'settings.local.json'));
    expect((await readHookSettings(user, project)).env.CC_LANGFUSE_CAPTURE).toBe('metadata');
  });

  test('name the destination that the folder has of its own, if it is complete', async () => {
    writeFolderSettings(project, { LANGFUSE_PUBLIC_KEY: 'pk', LANGFUSE_BASE_URL: 'https://theirs.example' });
    expect((await readHookSettings(user, project)).ownDestination).toBeUndefined();
    writeFolderSettings(project, { LANGFUSE_SECRET_KEY: 'sk' }, 'settings.local.json');
    expect((await readHookSettings(user, project)).ownDestination).toEqual(DESTINATION);
  });
});

describe('the settings of a command for a folder', () => {
  test('are those of the shell, and what is unset there is that of the files, the last of which wins', async () => {
    writeFolderSettings(home, { ...DESTINATION, LANGFUSE_TAGS: 'of the user', LANGFUSE_USER_ID: 'of the user' });
    writeFolderSettings(project, { LANGFUSE_TAGS: 'of the project', LANGFUSE_RELEASE: 'of the project' });
    const shell = { ...user, LANGFUSE_PUBLIC_KEY: 'of the shell', LANGFUSE_USER_ID: '' };
    expect((await readCommandSettings(shell, project)).env).toEqual({
      ...user,
      ...DESTINATION,
      LANGFUSE_PUBLIC_KEY: 'of the shell',
      LANGFUSE_USER_ID: 'of the user',
      LANGFUSE_TAGS: 'of the project',
      LANGFUSE_RELEASE: 'of the project',
    });
  });

  test("never have a project's destination, keys, caller or command line", async () => {
    const more = { CC_LANGFUSE_TRACEPARENT: 'x', CC_LANGFUSE_DEBUG: 'true', NODE_OPTIONS: '--inspect' };
    writeFolderSettings(project, { ...DESTINATION, CC_LANGFUSE_OTLP_URL: 'https://theirs.example', ...more });
    const { env, ownDestination } = await readCommandSettings(user, project);
    expect(env).toEqual(user);
    expect(ownDestination).toMatchObject(DESTINATION);
  });

  test('have the destination that the user has installed there, until somebody changes it', async () => {
    writeFolderSettings(project, DESTINATION);
    saveInstalledDestination(join(home, '.claude', 'state'), file(project), DESTINATION);
    expect((await readCommandSettings(user, project)).env).toMatchObject(DESTINATION);
    writeFolderSettings(project, { ...DESTINATION, LANGFUSE_BASE_URL: 'https://evil.example' });
    expect((await readCommandSettings(user, project)).env).toEqual(user);
  });

  test('are restricted by the shell, and by the files that it would override', async () => {
    writeFolderSettings(home, { CC_LANGFUSE_CAPTURE: 'metadata' });
    const shell = { ...user, CC_LANGFUSE_CAPTURE: 'full', TRACE_TO_LANGFUSE: 'false' };
    expect(await readCommandSettings(shell, project)).toMatchObject({
      env: { CC_LANGFUSE_CAPTURE: 'metadata' },
      optOut: 'TRACE_TO_LANGFUSE is off in the shell',
    });
  });

  test('say which files exclude it', async () => {
    writeFolderSettings(home, { CC_LANGFUSE_EXCLUDE: `/other,${home}/proj*` });
    expect((await readCommandSettings(user, join(project, 'deep', 'down'))).optOut).toBe(
      `CC_LANGFUSE_EXCLUDE in ${file(home)} excludes ${home}/proj*`,
    );
    expect((await readCommandSettings(user, join(home, 'other'))).optOut).toBeUndefined();
  });
});

describe('managed settings', () => {
  /** The real ones are in a folder that only root can write to. */
  const withManaged = async (env: object) => {
    writeFolderSettings(join(home, 'managed'), env);
    vi.resetModules();
    vi.doMock('../../src/config/settings-paths.js', async (importActual) => {
      const actual = await importActual<typeof SettingsPaths>();
      const managed = { scope: 'managed' as const, path: file(join(home, 'managed')) };
      return {
        ...actual,
        listSettingsPaths: (...args: Parameters<typeof actual.listSettingsPaths>) => [
          ...actual.listSettingsPaths(...args),
          managed,
        ],
      };
    });
    return import('../../src/config/folder-settings.js');
  };

  afterEach(() => {
    vi.doUnmock('../../src/config/settings-paths.js');
    vi.resetModules();
  });

  test('give a command its destination, and restrict what a project widens', async () => {
    writeFolderSettings(project, { CC_LANGFUSE_CAPTURE: 'full', LANGFUSE_BASE_URL: 'https://evil.example' });
    const settings = await withManaged({ ...DESTINATION, CC_LANGFUSE_CAPTURE: 'metadata' });
    expect((await settings.readCommandSettings(user, project)).env).toMatchObject({
      ...DESTINATION,
      CC_LANGFUSE_CAPTURE: 'metadata',
    });
    const { env } = await settings.readHookSettings({ ...user, CC_LANGFUSE_CAPTURE: 'full' }, project);
    expect(env.CC_LANGFUSE_CAPTURE).toBe('metadata');
  });

  test('with CC_LANGFUSE_ALLOW_OPT_OUT=false keep others from turning tracing off and from excluding folders', async () => {
    writeFolderSettings(project, { TRACE_TO_LANGFUSE: 'false', CC_LANGFUSE_EXCLUDE: '**' });
    const env = { ...user, CC_LANGFUSE_EXCLUDE: '**' };
    const settings = await withManaged({ CC_LANGFUSE_ALLOW_OPT_OUT: 'false' });
    expect((await settings.readHookSettings(env, project)).optOut).toBeUndefined();
    expect((await settings.readCommandSettings(env, project)).optOut).toBeUndefined();
  });

  test('with CC_LANGFUSE_ALLOW_OPT_OUT=false are the only ones that mute', async () => {
    writeFolderSettings(project, { CC_LANGFUSE_MUTE: true });
    const env = { ...user, CC_LANGFUSE_MUTE: 'true' };
    for (const [theirs, mute] of [
      [{}, 'true'],
      [{ CC_LANGFUSE_ALLOW_OPT_OUT: false }, undefined],
      [{ CC_LANGFUSE_ALLOW_OPT_OUT: 'false', CC_LANGFUSE_MUTE: 'true' }, 'true'],
    ] as const) {
      const settings = await withManaged(theirs);
      expect((await settings.readHookSettings(env, project)).env.CC_LANGFUSE_MUTE).toBe(mute);
      expect((await settings.readCommandSettings(env, project)).env.CC_LANGFUSE_MUTE).toBe(mute);
    }
  });

  test('may turn tracing off themselves, and nobody else may forbid others to', async () => {
    writeFolderSettings(project, { CC_LANGFUSE_ALLOW_OPT_OUT: 'false' });
    const settings = await withManaged({ CC_LANGFUSE_ALLOW_OPT_OUT: 'false', CC_LANGFUSE_EXCLUDE: '**/project' });
    const managed = file(join(home, 'managed'));
    expect((await settings.readHookSettings(user, project)).optOut).toBe(
      `CC_LANGFUSE_EXCLUDE in ${managed} excludes **/project`,
    );
    writeFolderSettings(project, { CC_LANGFUSE_ALLOW_OPT_OUT: 'false', TRACE_TO_LANGFUSE: 'false' });
    const unmanaged = await withManaged({});
    expect((await unmanaged.readHookSettings(user, project)).optOut).toBe(
      `TRACE_TO_LANGFUSE is off in ${file(project)}`,
    );
  });
});
