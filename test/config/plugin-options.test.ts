import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { withPluginOptions } from '../../src/config/plugin-options.js';
import { readSettings } from '../../src/config/settings.js';
import { type SettingName, variableNames } from '../../src/config/settings-table.js';

const { userConfig } = JSON.parse(readFileSync(new URL('../../plugin/plugin.json', import.meta.url), 'utf8'));

/** The environment of a hook for whose plugin the user entered these options. */
const entered = (options: NodeJS.ProcessEnv, env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  CLAUDE_PLUGIN_ROOT: '/p',
  ...Object.fromEntries(Object.entries(options).map(([name, value]) => [`CLAUDE_PLUGIN_OPTION_${name}`, value])),
  ...env,
});
const settingsOf = (env: NodeJS.ProcessEnv) => readSettings(withPluginOptions(env));

const FORM = { PUBLIC_KEY: 'pk-lf-form', SECRET_KEY: 'sk-lf-form', BASE_URL: 'https://form.test' };
const FORM_DESTINATION = { publicKey: 'pk-lf-form', secretKey: 'sk-lf-form', baseUrl: new URL('https://form.test') };
const CLOUD = new URL('https://cloud.langfuse.com');

describe('the keys and the server that the user entered for the plugin', () => {
  test.each<[string, NodeJS.ProcessEnv]>([
    ['nothing', {}],
    ['empty variables', { CC_LANGFUSE_PUBLIC_KEY: '', LANGFUSE_PUBLIC_KEY: ' ', LANGFUSE_SECRET_KEY: '' }],
    ['a public key alone', { CC_LANGFUSE_PUBLIC_KEY: 'pk-lf-env' }],
    ['a secret key alone', { LANGFUSE_SECRET_KEY: 'sk-lf-env' }],
    ...['BASE_URL', 'BASEURL', 'HOST'].flatMap((name): [string, NodeJS.ProcessEnv][] => [
      [`LANGFUSE_${name}`, { [`LANGFUSE_${name}`]: 'https://env.test' }],
      [`CC_LANGFUSE_${name}`, { [`CC_LANGFUSE_${name}`]: 'https://env.test' }],
    ]),
  ])('are used together if the environment has %s', async (_, env) => {
    expect((await settingsOf(entered(FORM, env))).destination).toMatchObject(FORM_DESTINATION);
  });

  test.each(variableNames('LANGFUSE_BASE_URL'))('are never sent to the server that %s names', async (variable) => {
    const { BASE_URL: _, ...keys } = FORM;
    expect((await settingsOf(entered(keys, { [variable]: 'https://env.test' }))).destination).toMatchObject({
      ...FORM_DESTINATION,
      baseUrl: CLOUD,
    });
  });

  test.each<[string, NodeJS.ProcessEnv]>([
    ['LANGFUSE_', { LANGFUSE_PUBLIC_KEY: 'pk-lf-env', LANGFUSE_SECRET_KEY: 'sk-lf-env' }],
    ['CC_LANGFUSE_', { CC_LANGFUSE_PUBLIC_KEY: 'pk-lf-env', CC_LANGFUSE_SECRET_KEY: 'sk-lf-env' }],
    ['both', { CC_LANGFUSE_PUBLIC_KEY: 'pk-lf-env', LANGFUSE_SECRET_KEY: 'sk-lf-env' }],
  ])('are not used if the environment has both keys, named %s', async (_, env) => {
    const expected = { publicKey: 'pk-lf-env', secretKey: 'sk-lf-env', baseUrl: CLOUD };
    expect((await settingsOf(entered(FORM, env))).destination).toMatchObject(expected);
  });

  test.each(['http://collector.test', 'nonsense'])(
    'are not used if CC_LANGFUSE_OTLP_URL is %s',
    async (CC_LANGFUSE_OTLP_URL) => {
      const { destination } = await settingsOf(entered(FORM, { CC_LANGFUSE_OTLP_URL }));
      expect(destination?.kind).toBe(CC_LANGFUSE_OTLP_URL === 'nonsense' ? undefined : 'collector');
    },
  );

  test('do not complete those of the environment', async () => {
    const env = { LANGFUSE_SECRET_KEY: 'sk-lf-env' };
    expect((await settingsOf(entered({ PUBLIC_KEY: 'pk-lf-form' }, env))).destination).toBeUndefined();
    expect((await settingsOf(entered({ BASE_URL: 'https://form.test' }, env))).destination).toBeUndefined();
  });
});

describe('an option that the user entered for the plugin', () => {
  const others = Object.keys(userConfig)
    .map((option) => option.toUpperCase())
    .filter((option) => !(option in FORM));
  const nameOf = (option: string) =>
    option === 'CAPTURE' || option === 'LIVE' ? `CC_LANGFUSE_${option}` : `LANGFUSE_${option}`;

  test.each(others)('counts only if no variable of its setting has a value (%s)', (option) => {
    const variables = variableNames(nameOf(option) as SettingName);
    const valueIn = (env: NodeJS.ProcessEnv) => {
      const all = withPluginOptions(entered({ [option]: 'form' }, env));
      return variables.map((variable) => all[variable]).find((value = '') => value.trim() !== '');
    };
    expect(valueIn({})).toBe('form');
    for (const variable of variables) {
      expect(valueIn({ [variable]: ' ' })).toBe('form');
      expect(valueIn({ [variable]: 'env' })).toBe('env');
    }
  });

  test('never lets more be sent than the environment allows', async () => {
    const capture = async (form: string, env: NodeJS.ProcessEnv) =>
      (await settingsOf(entered({ CAPTURE: form }, env))).capture;
    expect(await capture('full', { CC_LANGFUSE_CAPTURE: 'no_tool_io' })).toBe('no_tool_io');
    // A typo counts as metadata.
    expect(await capture('full', { CC_LANGFUSE_CAPTURE: 'none' })).toBe('metadata');
    // This variable is no setting, so it does not turn off what the user entered.
    expect(await capture('metadata', { LANGFUSE_CAPTURE: 'full' })).toBe('metadata');
  });

  test('counts only if plugin.json asks for it', () => {
    const env = entered({ REDACT: 'false', TRACE_TO_LANGFUSE: 'true', OTLP_URL: 'https://form.test' });
    expect(withPluginOptions(env)).toEqual(env);
  });

  test('does not change the environment that was passed in', () => {
    const env = entered({ ...FORM, TAGS: 'a' }, { LANGFUSE_HOST: 'https://env.test' });
    const before = { ...env };
    withPluginOptions(env);
    expect(env).toEqual(before);
  });

  test('is ignored unless the plugin started the program', () => {
    const { CLAUDE_PLUGIN_ROOT: _, ...env } = entered({ ...FORM, TAGS: 'a' });
    expect(withPluginOptions(env)).toEqual(env);
  });
});
