import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { stateFolder } from '../../src/config/claude-folder.js';
import { readSettings as read } from '../../src/config/settings.js';
import { RedactionError } from '../../src/observations/redaction/redact.js';

const KEYS = { LANGFUSE_PUBLIC_KEY: 'pk', LANGFUSE_SECRET_KEY: 'sk' };

/** What is wrong is given in words. */
async function readSettings(env: NodeJS.ProcessEnv) {
  const { problems, hold, ...settings } = await read(env);
  return { ...settings, problems: problems.map(({ text }) => text), hold: hold?.text };
}

describe('readSettings', () => {
  test('returns the defaults for everything but the keys', async () => {
    expect(await readSettings(KEYS)).toEqual({
      destination: {
        kind: 'langfuse',
        baseUrl: new URL('https://cloud.langfuse.com'),
        publicKey: 'pk',
        secretKey: 'sk',
        headers: {},
        transport: 'auto',
      },
      userId: undefined,
      gitIdentity: undefined,
      tags: [],
      autoTags: ['claude-code', 'skill', 'agent', 'mcp', 'repo', 'branch', 'pr', 'resource'],
      metadata: {},
      environment: undefined,
      release: undefined,
      traceName: '{repository}',
      timeoutMs: 10_000,
      maxChars: 200_000,
      redact: expect.any(Function),
      capture: 'full',
      scores: false,
      media: true,
      input: 'answered',
      caller: {},
      live: false,
      budget: undefined,
      mute: false,
      debug: false,
      problems: [],
    });
  });

  test('reads every setting from the environment', async () => {
    const settings = await readSettings({
      LANGFUSE_PUBLIC_KEY: ' pk ',
      LANGFUSE_SECRET_KEY: 'sk\n',
      LANGFUSE_BASE_URL: 'http://localhost:3000/langfuse',
      LANGFUSE_USER_ID: 'me',
      LANGFUSE_TAGS: 'a, b,,c',
      CC_LANGFUSE_AUTO_TAGS: 'skill, MCP',
      LANGFUSE_METADATA: '{"team":"x"}',
      LANGFUSE_TRACING_ENVIRONMENT: 'ci',
      LANGFUSE_RELEASE: 'v1',
      CC_LANGFUSE_TRACE_NAME: 'Turn {n}',
      CC_LANGFUSE_TIMEOUT: '2500',
      CC_LANGFUSE_MAX_CHARS: '1000',
      CC_LANGFUSE_DEBUG: 'TRUE',
      CC_LANGFUSE_REDACT: 'false',
      CC_LANGFUSE_CAPTURE: 'full',
      CC_LANGFUSE_SCORES: 'true',
      CC_LANGFUSE_MEDIA: 'False',
      CC_LANGFUSE_INPUT: 'Request',
      CC_LANGFUSE_TRACEPARENT: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
      CC_LANGFUSE_TRACE_SEED: 'a seed',
      CC_LANGFUSE_EXPERIMENT: '{"id":"e","item.id":"i","name":"n"}',
      CC_LANGFUSE_TRANSPORT: 'Ingestion',
      CC_LANGFUSE_LIVE: 'true',
      CC_LANGFUSE_BUDGET: 'turn=5 day=50',
      CC_LANGFUSE_MUTE: 'True',
    });
    expect(settings).toEqual({
      destination: {
        kind: 'langfuse',
        baseUrl: new URL('http://localhost:3000/langfuse'),
        publicKey: 'pk',
        secretKey: 'sk',
        headers: {},
        transport: 'ingestion',
      },
      userId: 'me',
      gitIdentity: undefined,
      tags: ['a', 'b', 'c'],
      autoTags: ['skill', 'mcp'],
      metadata: { team: 'x' },
      environment: 'ci',
      release: 'v1',
      traceName: 'Turn {n}',
      timeoutMs: 2_500,
      maxChars: 1_000,
      redact: undefined,
      capture: 'full',
      scores: true,
      media: false,
      input: 'request',
      caller: {
        parent: { trace: 'a'.repeat(32), span: 'b'.repeat(16) },
        seed: 'a seed',
        experiment: { id: 'e', 'item.id': 'i', name: 'n' },
      },
      live: true,
      budget: { turn: 5, day: 50 },
      mute: true,
      debug: true,
      problems: [],
    });
  });

  test.each([
    ['true', true],
    ['1', true],
    ['no', true],
    ['False', false],
    [' ', false],
  ])('CC_LANGFUSE_MUTE=%j counts as %j', async (value, mute) => {
    expect(await readSettings({ ...KEYS, CC_LANGFUSE_MUTE: value })).toMatchObject({ mute, problems: [] });
  });

  test('prefers CC_LANGFUSE_X to LANGFUSE_X, unless it is empty', async () => {
    const env = { ...KEYS, CC_LANGFUSE_PUBLIC_KEY: 'ours', LANGFUSE_USER_ID: 'me', CC_LANGFUSE_USER_ID: '' };
    expect(await readSettings(env)).toMatchObject({
      destination: { publicKey: 'ours', secretKey: 'sk' },
      userId: 'me',
    });
  });

  test('LANGFUSE_USER_ID=git identifies the user by git', async () => {
    const env = { ...KEYS, CC_LANGFUSE_USER_ID: 'git', HOME: '/home/me', GIT_AUTHOR_EMAIL: 'me@example.com' };
    expect(await readSettings(env)).toMatchObject({
      userId: undefined,
      gitIdentity: {
        authorEmail: 'me@example.com',
        configs: [join('/home/me/.gitconfig'), join('/home/me/.config/git/config')],
      },
    });
  });

  test.each(['full', 'no_tool_io', 'metadata'])(
    'CC_LANGFUSE_INPUT=turn applies with CC_LANGFUSE_CAPTURE=%s',
    async (capture) => {
      const settings = await readSettings({ ...KEYS, CC_LANGFUSE_CAPTURE: capture, CC_LANGFUSE_INPUT: 'turn' });
      expect(settings).toMatchObject({ input: 'turn', problems: [] });
    },
  );

  test.each(['no_tool_io', 'metadata'])(
    'CC_LANGFUSE_CAPTURE=%s excludes CC_LANGFUSE_INPUT=request',
    async (capture) => {
      expect(await readSettings({ ...KEYS, CC_LANGFUSE_CAPTURE: capture, CC_LANGFUSE_INPUT: 'request' })).toMatchObject(
        {
          input: 'answered',
          problems: ['CC_LANGFUSE_INPUT: request requires CC_LANGFUSE_CAPTURE=full'],
        },
      );
    },
  );

  test('CC_LANGFUSE_AUTO_TAGS=none adds no tags', async () => {
    expect(await readSettings({ ...KEYS, CC_LANGFUSE_AUTO_TAGS: 'none' })).toMatchObject({
      autoTags: [],
      problems: [],
    });
  });

  test.each(['LANGFUSE_BASE_URL', 'LANGFUSE_BASEURL', 'LANGFUSE_HOST', 'CC_LANGFUSE_HOST'])(
    '%s sets the server',
    async (name) => {
      expect(await readSettings({ ...KEYS, [name]: 'https://example.com' })).toMatchObject({
        destination: { baseUrl: new URL('https://example.com') },
      });
    },
  );

  test.each([
    ['https://cloud.langfuse.com/project/cm1', 'https://cloud.langfuse.com/'],
    [
      'https://us.cloud.langfuse.com/project/cm1/traces?peek=t1&filter=a/project/b#top',
      'https://us.cloud.langfuse.com/',
    ],
    ['http://localhost:3000/project/cm1/settings/api-keys', 'http://localhost:3000/'],
    ['https://tools.example.com/langfuse/project/cm1/', 'https://tools.example.com/langfuse'],
    ['https://tools.example.com/project/', 'https://tools.example.com/'],
    ['https://project.example.com/projects', 'https://project.example.com/projects'],
  ])('%s, as pasted from a browser, is the server %s', async (pasted, baseUrl) => {
    expect(await readSettings({ ...KEYS, LANGFUSE_BASE_URL: pasted })).toMatchObject({
      destination: { baseUrl: new URL(baseUrl) },
      problems: [],
    });
  });

  test('ignores TRACEPARENT and LANGFUSE_TRACEPARENT, which belong to other tools', async () => {
    const parent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    expect(await readSettings({ ...KEYS, TRACEPARENT: parent, LANGFUSE_TRACEPARENT: parent })).toMatchObject({
      caller: { parent: undefined },
      problems: [],
    });
  });

  test('ignores LANGFUSE_TIMEOUT, which the SDKs count in seconds', async () => {
    expect((await readSettings({ ...KEYS, LANGFUSE_TIMEOUT: '5' })).timeoutMs).toBe(10_000);
  });

  test.each([
    ['CC_LANGFUSE_TIMEOUT', 'soon', 'timeoutMs', 10_000],
    ['CC_LANGFUSE_TIMEOUT', '-1', 'timeoutMs', 10_000],
    ['CC_LANGFUSE_MAX_CHARS', '0', 'maxChars', 200_000],
    ['CC_LANGFUSE_DEBUG', 'yes', 'debug', false],
    ['CC_LANGFUSE_SCORES', 'all', 'scores', false],
    ['CC_LANGFUSE_MEDIA', 'no', 'media', false],
    ['CC_LANGFUSE_MEDIA', 'constructor', 'media', false],
    ['CC_LANGFUSE_INPUT', 'all', 'input', 'answered'],
    ['CC_LANGFUSE_CAPTURE', 'some', 'capture', 'metadata'],
    [
      'CC_LANGFUSE_AUTO_TAGS',
      'skill,all',
      'autoTags',
      ['claude-code', 'skill', 'agent', 'mcp', 'repo', 'branch', 'pr', 'resource'],
    ],
    ['CC_LANGFUSE_TRACEPARENT', `00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`, 'caller', {}],
    ['CC_LANGFUSE_TRACEPARENT', `00-${'a'.repeat(32)}-${'0'.repeat(16)}-01`, 'caller', {}],
    ['CC_LANGFUSE_TRACEPARENT', `ff-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, 'caller', {}],
    ['CC_LANGFUSE_TRACEPARENT', `00-${'A'.repeat(32)}-${'b'.repeat(16)}-01`, 'caller', {}],
    ['CC_LANGFUSE_TRACEPARENT', `00-${'a'.repeat(32)}-${'b'.repeat(16)}`, 'caller', {}],
    ['CC_LANGFUSE_TRACEPARENT', 'a'.repeat(32), 'caller', {}],
    ['CC_LANGFUSE_TRACE_NAME', '{prompt} {cwd}', 'traceName', '{repository}'],
    ['CC_LANGFUSE_TRACE_NAME', '{}', 'traceName', '{repository}'],
    ...['much', 'turn', 'turn=-5', 'week=5', 'turn=0', '5 6', 'turn=5 turn=6', 'turn = 5', '5€'].map(
      (value) => ['CC_LANGFUSE_BUDGET', value, 'budget', undefined] as const,
    ),
    ['LANGFUSE_METADATA', '[1]', 'metadata', {}],
    ['LANGFUSE_METADATA', '{', 'metadata', {}],
    ['LANGFUSE_TRACING_ENVIRONMENT', 'Not Allowed!', 'environment', undefined],
  ] as const)(
    '%s=%s is a problem, and the default or something more restrictive is used',
    async (name, value, setting, fallback) => {
      const settings = await readSettings({ ...KEYS, [name]: value });
      expect(settings[setting]).toEqual(fallback);
      expect(settings.problems).toEqual([expect.stringMatching(new RegExp(`^${name}: expected `))]);
      expect(settings.destination).toMatchObject({ kind: 'langfuse', publicKey: 'pk' });
    },
  );

  test.each([
    ['50', { day: 50 }],
    ['$50', { day: 50 }],
    ['turn=2.50', { turn: 2.5 }],
    ['day=50,turn=5', { turn: 5, day: 50 }],
    ['turn=$5,  $50', { turn: 5, day: 50 }],
  ])('reads %j as limits', async (value, budget) => {
    expect(await readSettings({ ...KEYS, CC_LANGFUSE_BUDGET: value })).toMatchObject({ budget, problems: [] });
  });

  test('leaves out keys of LANGFUSE_METADATA that the traces have themselves, and names them', async () => {
    const mine = JSON.stringify({ team: 'x', summary: 'secret', cwd: 'secret', scope: 'secret', constructor: 1 });
    for (const variable of ['LANGFUSE_METADATA', 'CC_LANGFUSE_METADATA']) {
      expect(await readSettings({ ...KEYS, [variable]: mine })).toMatchObject({
        metadata: { team: 'x', constructor: 1 },
        problems: [`${variable}: the traces have these keys already, yours are left out: summary, cwd, scope`],
      });
    }
  });

  test.each([
    ['missing', 'LANGFUSE_SECRET_KEY', { LANGFUSE_PUBLIC_KEY: 'pk' }],
    ['bad value', 'LANGFUSE_HOST', { ...KEYS, LANGFUSE_HOST: 'nowhere' }],
    ['bad rule', 'CC_LANGFUSE_REDACT_EXTRA', { ...KEYS, CC_LANGFUSE_REDACT_EXTRA: '[' }],
    ['no effect', 'CC_LANGFUSE_SECRET_KEY_COMMAND', { ...KEYS, CC_LANGFUSE_SECRET_KEY_COMMAND: 'key' }],
  ])('says of a problem that it is of the kind %s, and about %s', async (kind, variable, env) => {
    expect((await read(env)).problems).toMatchObject([{ kind, variable }]);
  });

  test.each(['a/b', 'https://langfuse.example/project/a'])(
    'CC_LANGFUSE_PROJECT_ID=%s is a problem, and is not used',
    async (value) => {
      const { destination, problems } = await readSettings({ ...KEYS, CC_LANGFUSE_PROJECT_ID: value });
      expect(destination).toMatchObject({ projectId: undefined });
      expect(problems).toEqual([
        'CC_LANGFUSE_PROJECT_ID: expected the id of a project, as in the address of its page, …/project/<id>',
      ]);
    },
  );

  test.each(['http', 'otlp,ingestion'])('CC_LANGFUSE_TRANSPORT=%s is a problem, and auto is used', async (value) => {
    expect(await readSettings({ ...KEYS, CC_LANGFUSE_TRANSPORT: value })).toMatchObject({
      destination: { transport: 'auto' },
      problems: ['CC_LANGFUSE_TRANSPORT: expected auto, otlp or ingestion'],
    });
  });

  describe('CC_LANGFUSE_REDACT_EXTRA', () => {
    const readRules = (rules: unknown, env: NodeJS.ProcessEnv = {}) =>
      readSettings({
        ...KEYS,
        ...env,
        CC_LANGFUSE_REDACT_EXTRA: typeof rules === 'string' ? rules : JSON.stringify(rules),
      });

    test('adds rules', async () => {
      const { redact, hold, problems } = await readRules([
        { pattern: 'CUST-(\\d)\\d*', replace: 'C$1' },
        { pattern: 'x{3}' },
        { pattern: '^name: .*$', flags: 'im' },
      ]);
      expect(redact?.('CUST-12 xxx DB_PASSWORD=hunter2\nNAME: me')).toBe(
        'C1 [redacted] DB_PASSWORD=[redacted]\n[redacted]',
      );
      expect({ hold, problems }).toEqual({ hold: undefined, problems: [] });
    });

    test.each([
      ['is not a valid regular expression', { pattern: '(' }],
      ['is not a valid regular expression', { pattern: '\\p{x}', flags: 'u' }],
      ['matches empty text', { pattern: 'x*' }],
      ['is not {"pattern", "replace", "flags"}, with flags of i, m, s and u', { pattern: 'a', flags: 'y' }],
      ['is not {"pattern", "replace", "flags"}, with flags of i, m, s and u', { pattern: 'a', flags: 'ii' }],
      ['is not {"pattern", "replace", "flags"}, with flags of i, m, s and u', { pattern: 'a', replacement: 'b' }],
      ['is not {"pattern", "replace", "flags"}, with flags of i, m, s and u', 'a'],
      ['takes too long', { pattern: '(a+)+$' }],
      ['takes too long', { pattern: '(\\w|\\d)+@acme\\.com' }],
      ['takes too long', { pattern: '(a|b|ab)*c' }],
      ['takes too long', { pattern: '\\w*\\w*\\w*\\w*x@' }],
      ['takes too long', { pattern: '(?:[öä]|[öü])+$' }],
    ])('holds everything back if a rule %s: %j', async (fault, rule) => {
      const { redact, hold, problems, destination } = await readRules([{ pattern: 'good' }, rule]);
      const problem = `CC_LANGFUSE_REDACT_EXTRA: rule 2 ${fault}`;
      expect({ hold, problems }).toEqual({ hold: problem, problems: [problem] });
      expect(destination).toBeDefined();
      expect(() => redact?.('a text without a secret')).toThrow(new RedactionError(problem));
    });

    test.each(['{"pattern":"a"}', 'a', '[', '"a"'])('holds everything back if it is %s', async (value) => {
      const problem = 'CC_LANGFUSE_REDACT_EXTRA: expected a JSON array of {"pattern", "replace", "flags"}';
      expect(await readRules(value)).toMatchObject({ hold: problem, problems: [problem] });
    });

    test('reports each rule that is bad', async () => {
      const { hold, problems } = await readRules([{ pattern: '(' }, {}, { pattern: 'a*' }]);
      expect(problems.map((problem) => problem.slice(0, 36))).toEqual([
        'CC_LANGFUSE_REDACT_EXTRA: rule 1 is ',
        'CC_LANGFUSE_REDACT_EXTRA: rule 2 is ',
        'CC_LANGFUSE_REDACT_EXTRA: rule 3 mat',
      ]);
      expect(hold).toBe(problems[0]);
    });

    test('holds nothing back if redaction is off', async () => {
      const { redact, hold, problems } = await readRules('[', { CC_LANGFUSE_REDACT: 'false' });
      expect([redact, hold, problems.length]).toEqual([undefined, undefined, 1]);
    });

    test.each([
      ['takes too long', '(?:\\x76|[t-w])+!', 'v'.repeat(50)],
      // V8's stack for backtracking overflows.
      ['fails on a text', '(?:a|b)*c', 'a'.repeat(30_000_000)],
    ])('holds everything back after the first text on which a rule %s', async (fault, pattern, text) => {
      const { redact, hold } = await readRules([{ pattern: 'never' }, { pattern }]);
      const problem = new RedactionError(`CC_LANGFUSE_REDACT_EXTRA: rule 2 ${fault}`);
      expect(hold).toBeUndefined();
      expect(redact?.('vv! ac')).toContain('[redacted]');
      expect(() => redact?.(text)).toThrow(problem);
      expect(() => redact?.('a short text')).toThrow(problem);
    });
  });

  test.each(['cloud.langfuse.com', 'ftp://x', 'https://', 'http://a b'])(
    'with LANGFUSE_BASE_URL=%j nothing is sent, since the default is another server',
    async (url) => {
      const { destination, problems } = await readSettings({ ...KEYS, LANGFUSE_BASE_URL: url });
      expect(destination).toBeUndefined();
      expect(problems).toEqual(['LANGFUSE_BASE_URL: expected an http or https URL']);
    },
  );

  describe('for a Collector', () => {
    const URL_NAME = 'CC_LANGFUSE_OTLP_URL';
    const HEADERS_NAME = 'CC_LANGFUSE_OTLP_HEADERS';
    const at = (url: string, headers = {}) => ({ kind: 'collector', url: new URL(url), headers, semconv: 'none' });

    test('needs no keys, and prefers it to Langfuse if there are some', async () => {
      for (const keys of [{}, KEYS]) {
        expect(await readSettings({ ...keys, [URL_NAME]: 'http://collector:4318/v1/traces' })).toMatchObject({
          destination: at('http://collector:4318/v1/traces'),
          problems: [],
        });
      }
    });

    test.each([
      ['https://host/otlp/v1/traces?tenant=a', 'https://host/otlp/v1/traces?tenant=a'],
      ['https://host/otlp', 'https://host/otlp'],
      ['http://collector:4318', 'http://collector:4318/v1/traces'],
      ['http://collector:4318/', 'http://collector:4318/v1/traces'],
    ])('takes the URL %s as %s', async (configured, url) => {
      expect((await readSettings({ [URL_NAME]: configured })).destination).toEqual(at(url));
    });

    test("reads headers in the format of OpenTelemetry's variable", async () => {
      const headers = 'Authorization=Basic%20cGs6c2s=, x-tenant = a%2Cb ,,x-empty=';
      const { destination, problems } = await readSettings({
        [URL_NAME]: 'http://c:4318',
        [HEADERS_NAME]: headers,
      });
      expect(destination).toEqual(
        at('http://c:4318/v1/traces', { authorization: 'Basic cGs6c2s=', 'x-tenant': 'a,b', 'x-empty': '' }),
      );
      expect(problems).toEqual([]);
    });

    test.each(['collector:4318', 'ftp://collector', 'v1/traces'])(
      'with the URL %j returns no destination, not even Langfuse',
      async (url) => {
        const { destination, problems } = await readSettings({ ...KEYS, [URL_NAME]: url });
        expect(destination).toBeUndefined();
        expect(problems).toEqual([`${URL_NAME}: expected an http or https URL`]);
      },
    );

    test.each(['secret', '=secret', 'a b=secret', 'a=%zz-secret', 'a=secret%0d%0ahost:%20x', 'a=%E2%82%AC-secret'])(
      'with the headers %j returns no destination, and does not repeat them',
      async (headers) => {
        const env = { ...KEYS, [URL_NAME]: 'http://c:4318', [HEADERS_NAME]: headers };
        const { destination, problems } = await readSettings(env);
        expect(destination).toBeUndefined();
        expect(problems).toEqual([`${HEADERS_NAME}: expected name=value,name=value with percent-encoded values`]);
      },
    );

    test('follows other conventions, too, only if it is asked for', async () => {
      const env = { [URL_NAME]: 'http://c:4318', CC_LANGFUSE_OTLP_SEMCONV: 'GEN_AI' };
      expect(await readSettings(env)).toMatchObject({ destination: { semconv: 'gen_ai' }, problems: [] });
      expect(await readSettings({ ...env, CC_LANGFUSE_OTLP_SEMCONV: 'openinference' })).toMatchObject({
        destination: { semconv: 'none' },
        problems: ['CC_LANGFUSE_OTLP_SEMCONV: expected none or gen_ai'],
      });
      const { problems } = await readSettings({ ...KEYS, CC_LANGFUSE_OTLP_SEMCONV: 'gen_ai' });
      expect(problems).toEqual(['CC_LANGFUSE_OTLP_SEMCONV: has no effect without CC_LANGFUSE_OTLP_URL']);
    });

    test('reports that it does not accept the ingestion API', async () => {
      const env = { [URL_NAME]: 'http://c:4318', CC_LANGFUSE_TRANSPORT: 'ingestion' };
      expect(await readSettings(env)).toMatchObject({
        destination: { kind: 'collector' },
        problems: ['CC_LANGFUSE_TRANSPORT: a Collector only accepts OTLP'],
      });
    });

    test('reports headers without a URL', async () => {
      expect(await readSettings({ ...KEYS, [HEADERS_NAME]: 'a=b' })).toMatchObject({
        destination: { kind: 'langfuse' },
        problems: [`${HEADERS_NAME}: has no effect without ${URL_NAME}`],
      });
    });
  });

  test('reports missing keys', async () => {
    expect(await readSettings({})).toMatchObject({
      destination: undefined,
      problems: ['LANGFUSE_PUBLIC_KEY is not set', 'LANGFUSE_SECRET_KEY is not set'],
    });
  });
});

test("the state folder is next to Claude Code's own files", () => {
  expect(stateFolder({ CLAUDE_CONFIG_DIR: '/elsewhere' })).toBe('/elsewhere/state');
  expect(stateFolder({})).toMatch(/\/\.claude\/state$/);
});
