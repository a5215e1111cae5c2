import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import {
  describingVariables,
  givenSettings,
  isSetting,
  readSettings,
  variableFor,
  withGivenVariables,
} from '../../src/config/settings.js';
import {
  SETTING_NAMES,
  SETTINGS,
  type SettingDefinition,
  type SettingKind,
  type SettingName,
  variableNames,
} from '../../src/config/settings-table.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const KEYS = { LANGFUSE_PUBLIC_KEY: 'pk', LANGFUSE_SECRET_KEY: 'sk' };

/** Read before anything is loaded, or together with the settings of a folder (folder-settings.test.ts). */
const READ_ELSEWHERE = [
  'TRACE_TO_LANGFUSE',
  'CC_LANGFUSE_WAIT',
  'CC_LANGFUSE_STATE_DIR',
  'CC_LANGFUSE_EXCLUDE',
  'CC_LANGFUSE_ALLOW_OPT_OUT',
] as const;

/** For each setting that readSettings reads, an environment without it, and a value that must make a difference there. */
const EFFECTS: {
  readonly [name in Exclude<SettingName, (typeof READ_ELSEWHERE)[number]>]: readonly [NodeJS.ProcessEnv, string];
} = {
  LANGFUSE_PUBLIC_KEY: [{ LANGFUSE_SECRET_KEY: 'sk' }, 'pk'],
  LANGFUSE_SECRET_KEY: [{ LANGFUSE_PUBLIC_KEY: 'pk' }, 'sk'],
  CC_LANGFUSE_PROJECT_KEYS: [KEYS, `pk-first,${KEYS.LANGFUSE_PUBLIC_KEY}`],
  CC_LANGFUSE_SECRET_KEY_COMMAND: [{ LANGFUSE_PUBLIC_KEY: 'pk' }, 'cat key'],
  CC_LANGFUSE_HEADERS: [KEYS, 'x-gateway=hunter2'],
  LANGFUSE_BASE_URL: [KEYS, 'https://langfuse.example.com'],
  CC_LANGFUSE_PROJECT_ID: [KEYS, 'cm1abc-2_x'],
  CC_LANGFUSE_TRANSPORT: [KEYS, 'otlp'],
  CC_LANGFUSE_OTLP_URL: [KEYS, 'http://collector:4318'],
  CC_LANGFUSE_OTLP_HEADERS: [{ CC_LANGFUSE_OTLP_URL: 'http://collector:4318' }, 'a=b'],
  CC_LANGFUSE_OTLP_SEMCONV: [{ CC_LANGFUSE_OTLP_URL: 'http://collector:4318' }, 'gen_ai'],
  CC_LANGFUSE_CAPTURE: [KEYS, 'no_tool_io'],
  CC_LANGFUSE_REDACT: [KEYS, 'false'],
  CC_LANGFUSE_REDACT_EXTRA: [KEYS, '[{"pattern":"CUST"}]'],
  CC_LANGFUSE_MEDIA: [KEYS, 'false'],
  CC_LANGFUSE_MAX_CHARS: [KEYS, '1'],
  CC_LANGFUSE_INPUT: [KEYS, 'request'],
  CC_LANGFUSE_MUTE: [KEYS, 'true'],
  LANGFUSE_USER_ID: [KEYS, 'me'],
  LANGFUSE_TAGS: [KEYS, 'a'],
  CC_LANGFUSE_AUTO_TAGS: [KEYS, 'none'],
  OTEL_RESOURCE_ATTRIBUTES: [KEYS, 'team=a'],
  LANGFUSE_METADATA: [KEYS, '{"a":1}'],
  LANGFUSE_TRACING_ENVIRONMENT: [KEYS, 'ci'],
  LANGFUSE_RELEASE: [KEYS, 'v1'],
  CC_LANGFUSE_TRACE_NAME: [KEYS, 'Turn {n}'],
  CC_LANGFUSE_SCORES: [KEYS, 'true'],
  CC_LANGFUSE_TRACEPARENT: [KEYS, `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`],
  CC_LANGFUSE_TRACE_SEED: [KEYS, 'seed'],
  CC_LANGFUSE_EXPERIMENT: [KEYS, '{"id":"e","item.id":"i"}'],
  CC_LANGFUSE_TIMEOUT: [KEYS, '1'],
  CC_LANGFUSE_LIVE: [KEYS, 'true'],
  CC_LANGFUSE_BUDGET: [KEYS, 'turn=5 day=50'],
  CC_LANGFUSE_DEBUG: [KEYS, 'true'],
};

/** The settings as something to compare: of the redactor, what it does. */
async function read(env: NodeJS.ProcessEnv): Promise<unknown> {
  const { redact, ...settings } = await readSettings(env);
  return { ...settings, redacted: redact?.('CUST DB_PASSWORD=hunter2') };
}

describe('the table of settings', () => {
  test.each(Object.entries(EFFECTS))('%s has an effect under each of its names', async (name, [env, value]) => {
    const without = await read(env);
    for (const variable of variableNames(name as SettingName)) {
      const settings = await read({ ...env, [variable]: value });
      expect(settings).not.toEqual(without);
      expect(settings).toMatchObject({ problems: [] });
    }
  });

  test.each([
    ['cli.ts', 'TRACE_TO_LANGFUSE'],
    ['config/platform.ts', 'CC_LANGFUSE_WAIT'],
    ['config/platform.ts', 'CC_LANGFUSE_STATE_DIR'],
  ])('%s reads %s', (file, name) => {
    expect(readFileSync(join(ROOT, 'src', file), 'utf8')).toContain(name);
  });

  const preset = SETTING_NAMES.flatMap((name) => {
    const { schema, default: usual, fallback }: SettingDefinition = SETTINGS[name];
    return [usual, fallback].flatMap((value) => (value === undefined ? [] : [{ name, value, schema }]));
  });

  test.each(preset)('$value, the default or the fallback of $name, is a valid value', ({ schema, value }) => {
    expect(schema.safeParse(value)).toMatchObject({ success: true });
  });

  test('every variable that the source mentions is a name of a setting', () => {
    const known = SETTING_NAMES.flatMap(variableNames);
    const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
    const mentioned = files
      .filter((file) => file.endsWith('.ts'))
      .flatMap(
        (file) => readFileSync(join(ROOT, 'src', file), 'utf8').match(/(?:CC_)?LANGFUSE_[A-Z][A-Z_]*[A-Z]/g) ?? [],
      );
    expect(mentioned.length).toBeGreaterThan(SETTING_NAMES.length);
    // The doctor looks for some names by their ends.
    expect(mentioned.filter((name) => !known.some((variable) => variable.endsWith(name)))).toEqual([]);
  });

  test('each name of a setting belongs to this program, and no similar one does', () => {
    for (const name of SETTING_NAMES) {
      for (const variable of variableNames(name)) {
        expect(isSetting(variable)).toBe(true);
        expect(variableFor(name, { [variable]: 'x' })).toBe(variable);
        expect(givenSettings({ [variable]: ' x ' })).toEqual([{ name, variable, value: 'x' }]);
      }
    }
    expect(isSetting('CC_LANGFUSE_OF_A_LATER_VERSION')).toBe(true);
    expect(['LANGFUSE_TIMEOUT', 'LANGFUSE_DEBUG', 'HTTPS_PROXY', 'TRACEPARENT'].filter(isSetting)).toEqual([]);
  });
});

describe('the settings that stay with a run', () => {
  const all = Object.fromEntries(SETTING_NAMES.map((name) => [name, name]));

  test('are those that restrict what is sent or describe the turn', () => {
    expect(Object.keys(describingVariables(all)).toSorted()).toEqual([
      'CC_LANGFUSE_AUTO_TAGS',
      'CC_LANGFUSE_CAPTURE',
      'CC_LANGFUSE_EXCLUDE',
      'CC_LANGFUSE_INPUT',
      'CC_LANGFUSE_MAX_CHARS',
      'CC_LANGFUSE_MEDIA',
      'CC_LANGFUSE_MUTE',
      'CC_LANGFUSE_REDACT',
      'CC_LANGFUSE_REDACT_EXTRA',
      'CC_LANGFUSE_SCORES',
      'CC_LANGFUSE_TRACE_NAME',
      'LANGFUSE_METADATA',
      'LANGFUSE_RELEASE',
      'LANGFUSE_TAGS',
      'LANGFUSE_TRACING_ENVIRONMENT',
      'LANGFUSE_USER_ID',
      'OTEL_RESOURCE_ATTRIBUTES',
    ]);
  });

  test('include what git knows of the user, if it says who that is', () => {
    const git = { GIT_AUTHOR_EMAIL: 'me@example.com', XDG_CONFIG_HOME: '' };
    expect(describingVariables({ ...git, LANGFUSE_USER_ID: ' git ' })).toEqual({
      LANGFUSE_USER_ID: ' git ',
      GIT_AUTHOR_EMAIL: 'me@example.com',
    });
    expect(describingVariables({ ...git, LANGFUSE_USER_ID: 'me' })).toEqual({ LANGFUSE_USER_ID: 'me' });
  });

  test('replace those of the run that sends its turns, even if they are unset', async () => {
    const given = { CC_LANGFUSE_TAGS: 'theirs', CC_LANGFUSE_CAPTURE: 'metadata' };
    const env = { ...KEYS, LANGFUSE_TAGS: 'own', LANGFUSE_RELEASE: 'own', CC_LANGFUSE_TIMEOUT: '7' };
    expect(await readSettings(withGivenVariables(env, given))).toMatchObject({
      destination: { publicKey: 'pk' },
      tags: ['theirs'],
      capture: 'metadata',
      release: undefined,
      timeoutMs: 7,
    });
  });
});

describe('docs/settings.md', () => {
  const page = readFileSync(join(ROOT, 'docs/settings.md'), 'utf8');
  const sections = page.split(/^## /m);
  const code = (value: string) => (value === '' ? '' : ` \`${value}\``);

  function row(name: SettingName): string {
    const { help, default: usual = '', aliases = [] }: SettingDefinition = SETTINGS[name];
    const others = aliases.length === 0 ? '' : ` (or ${aliases.map((alias) => code(alias).trim()).join(', ')})`;
    return `| \`${name}\`${others} | ${help} |${code(usual)} |`;
  }

  test.each<[string, readonly SettingKind[]]>([
    ['Where the traces are sent', ['destination', 'secret']],
    ['What leaves your machine', ['restricts']],
    ['What the traces say', ['describes']],
    ['What started the run', ['caller']],
    ['How the program runs', ['run']],
  ])('"%s" lists the settings of that kind as the table defines them', (heading, kinds) => {
    const section = sections.find((text) => text.startsWith(`${heading}\n`)) ?? '';
    const rows = section.split('\n').filter((line) => line.startsWith('| `'));
    expect(rows).toEqual(SETTING_NAMES.filter((name) => kinds.includes(SETTINGS[name].kind)).map(row));
    expect(rows.length).toBeGreaterThan(1);
  });

  test('names each fallback of a bad value', () => {
    const named = SETTING_NAMES.filter((name) => {
      const { fallback }: SettingDefinition = SETTINGS[name];
      return new RegExp(`bad \`${name}\` (?:counts )?as \`${fallback}\``).test(page);
    });
    expect(named).toEqual(SETTING_NAMES.filter((name) => 'fallback' in SETTINGS[name]));
    expect(named).not.toEqual([]);
  });
});
