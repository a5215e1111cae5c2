import { describe, expect, test } from 'vitest';
import { buildTurn } from '../../../src/observations/build/turn.js';
import { createRedactor } from '../../../src/observations/redaction/redact.js';
import type { Turn } from '../../../src/transcript/turns/turn.js';
import { HOSTILE_UNITS, repeatUnit } from '../../support/hostile-texts.js';
import { assistant, groupTurns, SESSION, text, toolResult, toolUse, user } from '../../support/lines.js';
import { OPTIONS } from '../../support/traces.js';

const redact = createRedactor([]);
const letters = (count: number) => 'aB3dE6gH9jK2mN5pQ8sT'.repeat(20).slice(0, count);
const hex = (count: number) => '0123456789abcdef'.repeat(20).slice(0, count);

describe('a token with a known form is redacted', () => {
  test.each([
    ['Anthropic', `sk-ant-api03-${letters(95)}`],
    ['OpenAI (old)', `sk-${letters(48)}`],
    ['OpenAI (project)', `sk-proj-${letters(74)}_${letters(74)}`],
    ['Langfuse', `sk-lf-${hex(8)}-${hex(4)}-${hex(4)}-${hex(4)}-${hex(12)}`],
    ['GitHub', `ghp_${letters(36)}`],
    ['GitHub (fine-grained)', `github_pat_${letters(22)}_${letters(59)}`],
    ['GitLab', `glpat-${letters(20)}`],
    ['AWS', `AKIA${'IOSFODNN7EXAMPLE'}`],
    ['Google', `AIza${letters(35)}`],
    ['Google OAuth', `ya29.${letters(60)}`],
    ['Slack', `xoxb-${'123456789012'}-${letters(24)}`],
    ['Stripe', `sk_live_${letters(24)}`],
    ['npm', `npm_${letters(36)}`],
    ['PyPI', `pypi-AgEIcHlwaS5vcmc${letters(60)}`],
    ['Hugging Face', `hf_${letters(34)}`],
    ['SendGrid', `SG.${letters(22)}.${letters(43)}`],
    ['DigitalOcean', `dop_v1_${hex(64)}`],
    ['Shopify', `shpat_${hex(32)}`],
    ['Databricks', `dapi${hex(32)}`],
    ['Linear', `lin_api_${letters(40)}`],
    ['OpenRouter', `sk-or-v1-${hex(64)}`],
    ['Groq', `gsk_${letters(52)}`],
    ['xAI', `xai-${letters(80)}`],
    ['LangSmith', `lsv2_pt_${hex(32)}_${hex(10)}`],
    ['GitLab (routable)', `glpat-${letters(27)}.01.${letters(9)}`],
    ['Google (OAuth client)', `GOCSPX-${letters(28)}`],
    ['Azure (app)', `abc8Q~${letters(34)}`],
    ['Docker', `dckr_pat_${letters(27)}`],
    ['RubyGems', `rubygems_${hex(48)}`],
    ['Twilio', `SK${hex(32)}`],
    ['Vault', `hvs.${letters(90)}`],
    ['Doppler', `dp.pt.${letters(43)}`],
    ['Grafana', `glsa_${letters(32)}_${hex(8)}`],
    ['Figma', `figd_${letters(40)}`],
    ['Atlassian', `ATATT3xFfGF0${letters(180)}`],
    ['Sentry', `sntrys_${letters(80)}`],
    ['Supabase', `sbp_${hex(40)}`],
    ['Pulumi', `pul-${hex(40)}`],
    ['Terraform', `${letters(14)}.atlasv1.${letters(67)}`],
    ['Telegram', `110201543:AA${letters(33)}`],
    ['Anthropic (any length)', `sk-ant-${letters(400)}`],
    ['JSON web token', `eyJ${letters(20)}.eyJ${letters(60)}.${letters(43)}`],
  ])('%s', (_, secret) => {
    for (const around of [
      (s: string) => s,
      (s: string) => `key: ${s}, ok`,
      (s: string) => `"${s}"`,
      (s: string) => `(${s})`,
    ]) {
      expect(redact(around(secret))).toBe(around('[redacted]'));
    }
  });
});

describe('a secret is redacted because of the text before it', () => {
  test.each([
    ['DB_PASSWORD=hunter2hunter2', 'DB_PASSWORD=[redacted]'],
    ["export API_KEY='abc def'", "export API_KEY='[redacted]'"],
    ['export API_KEY="abcdefgh" && run', 'export API_KEY="[redacted]" && run'],
    ['AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', 'AWS_SECRET_ACCESS_KEY=[redacted]'],
    ['{"apiKey": "abcdef123456", "n": 1}', '{"apiKey": "[redacted]", "n": 1}'],
    ["'client_secret': 'abcdef123456'", "'client_secret': '[redacted]'"],
    ['Authorization: Bearer abcdef123456', 'Authorization: Bearer [redacted]'],
    ['-H "authorization: basic dXNlcjpwYXNz"', '-H "authorization: basic [redacted]"'],
    ['x-api-key: abcdef123456', 'x-api-key: [redacted]'],
    ['postgres://me:hunter2@db:5432/x', 'postgres://me:[redacted]@db:5432/x'],
    ['https://user:p%40ss@example.com/', 'https://user:[redacted]@example.com/'],
    ['redis://:hunter2@cache:6379/0', 'redis://:[redacted]@cache:6379/0'],
    ['postgres://u:p@ss@db/x', 'postgres://u:[redacted]@db/x'],
    ['https://x/?a=1&access_token=abcdefgh&b=2', 'https://x/?a=1&access_token=[redacted]&b=2'],
    ['jdbc:x://h/db?user=u&password=hunterpw', 'jdbc:x://h/db?user=u&password=[redacted]'],
    ['Server=x;User Id=sa;Password=Hunter2pw;', 'Server=x;User Id=sa;Password=[redacted];'],
    ['AccountName=x;AccountKey=abcdefgh==;Y=z', 'AccountName=x;AccountKey=[redacted];Y=z'],
    ['aws_secret_access_key = wJalrXUtnFEMI/K7MDENG', 'aws_secret_access_key = [redacted]'],
    ['mysqldump --password=hunter2pw db', 'mysqldump --password=[redacted] db'],
    ['//npm.example/:_authToken=6f1b2c3d-1111', '//npm.example/:_authToken=[redacted]'],
    ['"auth": "dXNlcjpwYXNzd29yZA=="', '"auth": "[redacted]"'],
    ['DB_PASSWORD="correct horse battery"', 'DB_PASSWORD="[redacted]"'],
    ['SECRET_KEY_BASE=abcdefgh', 'SECRET_KEY_BASE=[redacted]'],
    ['CC_LANGFUSE_OTLP_HEADERS=x-tenant=a%20b', 'CC_LANGFUSE_OTLP_HEADERS=[redacted]'],
    ['OTEL_EXPORTER_OTLP_TRACES_HEADERS="x=hunter2"', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS="[redacted]"'],
    ['api_key = "abc"', 'api_key = "[redacted]"'],
    ["const apiKey = 'abcdef';", "const apiKey = '[redacted]';"],
    ["{ password: 'x' }", "{ password: '[redacted]' }"],
    ['{"password":"abc\\"def"}', '{"password":"[redacted]"}'],
    ['-d "{\\"password\\":\\"hunter2\\"}"', '-d "{\\"password\\":\\"[redacted]\\"}"'],
    ['user:\n  password: hunter2pw\n', 'user:\n  password: [redacted]\n'],
    ['- POSTGRES_PASSWORD: mysecret', '- POSTGRES_PASSWORD: [redacted]'],
    ['{"name": "DB_PASSWORD", "value": "hunter2"}', '{"name": "DB_PASSWORD", "value": "[redacted]"}'],
    ['A=1\\nDB_PASSWORD=hunter2\\nB=2', 'A=1\\nDB_PASSWORD=[redacted]\\nB=2'],
    [`see\\nghp_${letters(36)}`, 'see\\n[redacted]'],
    [`\u001b[32mghp_${letters(36)}\u001b[0m`, '\u001b[32m[redacted]\u001b[0m'],
    ['Authorization: 0123456789abcdef0123', 'Authorization: [redacted]'],
    ['PRIVATE-TOKEN: abcdef123456', 'PRIVATE-TOKEN: [redacted]'],
    [`hooks.slack.com/services/T0000/B0000/${letters(24)}`, 'hooks.slack.com/services/[redacted]'],
  ])('%s', (before, after) => {
    expect(redact(before)).toBe(after);
  });
});

describe('a private key', () => {
  test('is redacted, even if it is cut off, numbered or in JSON', () => {
    const key = `-----BEGIN RSA PRIVATE KEY-----\n${letters(64)}\n${letters(64)}\n-----END RSA PRIVATE KEY-----`;
    expect(redact(`before\n${key}\nafter ${key}.`)).toBe(
      'before\n[redacted private key]\nafter [redacted private key].',
    );
    expect(redact(`before\n${key.slice(0, 80)}`)).toBe('before\n[redacted private key]');
    const numbered = key
      .split('\n')
      .map((line, place) => `     ${place + 1}→${line}`)
      .join('\n');
    expect(redact(`${numbered}\n     5→end`)).toBe('     1→[redacted private key]\n     5→end');
    expect(redact(JSON.stringify({ key, more: 1 }))).toBe('{"key":"[redacted private key]","more":1}');
  });
});

describe('a text without secrets is not changed', () => {
  test.each([
    'const token = getToken();',
    'password: string;',
    'The token count is 12,345 and max_tokens=8192',
    'input_tokens: 100, "cache_read_input_tokens": 20',
    'see https://example.com:8080/path@v2',
    'git@github.com:a/b.git',
    'task-notification sk-1 skip-this pk-lf',
    '"jsonwebtoken": "^9.0.2", "js-tokens": "^3.0.0"',
    '"tokenizer_class": "LlamaTokenizer", "token_type": "bearer", "credentials": "include"',
    '"forgotPassword": "Forgot your password?"',
    'MAX_TOKENS=200000 TOKEN=12345678',
    'GOOGLE_APPLICATION_CREDENTIALS=/home/me/key.json API_KEY=$API_KEY TOKEN=%X_TOKEN%',
    'if(TOKEN===undefined) return token=getToken(1);',
    'connect(password=password, token=self.token)',
    'API_KEY=process.env.API_KEY',
    'token: string | undefined',
    "if (text.startsWith('-----BEGIN PRIVATE KEY-----')) { parse(text); }",
    '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
    'c70abd2e-358d-49fa-af14-d8bce8876803',
    `sha256 ${hex(64)}`,
  ])('%s', (words) => {
    expect(redact(words)).toBe(words);
  });
});

describe("the user's own rules", () => {
  test('are applied in addition to the built-in ones', () => {
    const own = createRedactor([(text) => text.replace(/CUST-(\d{2})\d+/g, 'CUST-$1…')]);
    expect(own(`CUST-123456 and ghp_${letters(36)}`)).toBe('CUST-12… and [redacted]');
  });
});

describe('10 MB in which every pattern almost matches', () => {
  /** A pattern that takes quadratic time would need hours, and the test would time out. */
  const chars = 10_000_000;

  test.each([
    ['a', 'a'],
    ['A_', 'A_'],
    ['sk-', 'sk-'],
    ['://a:', '://a:'],
    ['"TOKEN', '"TOKEN'],
    ['eyJ', 'eyJ'],
    ['the first line of private keys', '-----BEGIN PRIVATE KEY-----'],
    ['"bearer "', 'bearer '],
    ['"authorization: "', 'authorization: '],
    ['eyJ and 4,000 letters', `eyJ${letters(4_000)}`],
    ['the start of a URL with 250 letters and a colon', `://${letters(250)}:`],
    ['spaces', ' '],
    ['quotes', '"'],
  ])('are not changed if they repeat %s', (_, unit) => {
    const text = repeatUnit(unit, chars);
    expect(redact(text) === text).toBe(true);
  });

  test.each(['eyJaaaaaaaa.', 'TOKEN='])('are redacted if they repeat %s', (unit) => {
    expect(redact(repeatUnit(unit, chars)).slice(0, 100)).toContain('[redacted]');
  });
});

test('a megabyte of any hostile text begins like its first tenth, redacted', () => {
  const chars = 1_000_000;
  const beginning = (text: string) => text.slice(0, 12);
  const differing = HOSTILE_UNITS.filter(
    (unit) => beginning(redact(repeatUnit(unit, chars))) !== beginning(redact(repeatUnit(unit, chars / 10))),
  );
  expect(differing.map((unit) => unit.slice(0, 20))).toEqual([]);
});

describe('redaction of observations', () => {
  const secret = `ghp_${letters(36)}`;
  const lines = [
    user(`use ${secret}`, { uuid: 'u', cwd: `/${secret}` }),
    { type: 'custom-title', customTitle: `about ${secret}` },
    assistant('m1', [
      { type: 'thinking', thinking: `hm ${secret}` },
      text(`I use ${secret}`),
      toolUse('t1', 'Bash', { command: `curl -H ${secret}`, password: 'hunter2', description: secret }),
    ]),
    user([toolResult('t1', `failed with ${secret}\nmore ${secret}`, { is_error: true })], {
      toolUseResult: { persistedOutputPath: `/tmp/${secret}` },
    }),
    { type: 'attachment', attachment: { type: 'queued_command', prompt: `and ${secret}` } },
    { type: 'system', subtype: 'api_error', error: { formatted: `500 ${secret}` } },
    assistant('m2', `API Error: ${secret}`, { isApiErrorMessage: true }),
  ];
  const built = (options: object = {}) =>
    groupTurns(lines).all.flatMap((turn) => {
      const { children, root } = buildTurn(turn, { ...OPTIONS, redact, sessionId: SESSION, ...options });
      return [root, ...children];
    });

  test('removes secrets from inputs, outputs, file names, status messages and metadata', () => {
    const observations = built({ metadata: { note: secret } });
    expect(JSON.stringify(observations)).toContain('[redacted]');
    expect(JSON.stringify(observations)).not.toContain(secret);
    expect(JSON.stringify(observations)).not.toContain('hunter2');
  });

  test('comes before the limit, so that no part of a secret is left', () => {
    const [root, generation] = groupTurns([user(`${'x'.repeat(1_980)} ${secret}`), assistant('m1', 'ok')]).all.flatMap(
      (turn) => {
        const { children, root } = buildTurn(turn, { ...OPTIONS, maxChars: 1_995, redact, sessionId: SESSION });
        return [root, ...children];
      },
    );
    const cut = expect.stringMatching(/^x+… \[11 more characters\]$/);
    expect([root?.input, generation?.input]).toEqual(Array(2).fill([{ role: 'user', content: cut }]));
  });

  test.each([
    ['', ''],
    ['token%3D', '%26b%3Dc'],
    ['{\\u0022token\\u0022:\\u0022', '\\u0022}'],
    ['{&quot;token&quot;:&quot;', '&quot;}'],
    ['https%3A%2F%2Fx-access-token%3A', '%40example.org'],
  ])('leaves no part of a token at any cut, between %s and %s', (before, after) => {
    const prompt = `${'x'.repeat(1_980)} ${before}${secret}${after} ${'y'.repeat(80)}`;
    const parts = Array.from({ length: secret.length - 3 }, (_, start) => secret.slice(start, start + 4));
    const cuts = Array.from({ length: 130 }, (_, cut) => 1_975 + cut);
    const sent = cuts.map((maxChars) => {
      const [turn] = groupTurns([user(prompt), assistant('m1', 'ok')]).all;
      return JSON.stringify(buildTurn(turn as Turn, { ...OPTIONS, maxChars, redact, sessionId: SESSION }));
    });
    expect(sent.flatMap((text) => parts.filter((part) => text.includes(part)))).toEqual([]);
  });

  test('removes the value of a record that names a secret', () => {
    const input = {
      env: [
        { name: 'API_TOKEN', value: 'swordfish' },
        { key: 'THEME', value: 'dark' },
        { key: 'STRIPE_KEY', value: 'f8Kq2Lm9Zx4vB7nM4kQ2' },
      ],
      mapsKey: 'f8Kq2Lm9Zx4vB7nM4kQ2',
      cacheKey: 'f8Kq2Lm9Zx4vB7nM4kQ2',
      key: 'README.md',
      auth: 'dXNlcjpwYXNzd29yZA==',
    };
    const [turn] = groupTurns([user('q'), assistant('m1', [toolUse('t1', 'mcp__x__set', input)])]).all;
    const [, call] = buildTurn(turn as Turn, { ...OPTIONS, redact, sessionId: SESSION }).children;
    expect(call?.input).toEqual({
      env: [
        { name: 'API_TOKEN', value: '[redacted]' },
        { key: 'THEME', value: 'dark' },
        { key: 'STRIPE_KEY', value: '[redacted]' },
      ],
      mapsKey: '[redacted]',
      cacheKey: 'f8Kq2Lm9Zx4vB7nM4kQ2',
      key: 'README.md',
      auth: 'dXNlcjpwYXNzd29yZA==',
    });
  });

  test('removes secrets from names, tags and model parameters', () => {
    const turn = [
      user(`/x`, { uuid: 'u' }),
      assistant('m1', [toolUse('t1', `mcp ${secret}`)], {
        requestRef: 'r',
        effort: secret,
        message: { id: 'm1', model: secret, usage: { input_tokens: 1 }, content: [toolUse('t1', `mcp ${secret}`)] },
      }),
    ];
    const options = { ...OPTIONS, tags: [secret], userId: secret, release: secret, metadata: { password: 'hunter2' } };
    const sent = groupTurns(turn).all.map((each) => {
      const { children, root } = buildTurn(each, { ...options, redact, sessionId: SESSION });
      return [root, ...children];
    });
    expect(JSON.stringify(sent)).toContain('[redacted]');
    expect(JSON.stringify(sent)).not.toContain(secret);
    expect(JSON.stringify(sent)).not.toContain('hunter2');
  });

  test.each([
    'curl -H "Authorization: Bearer abcdef123456" https://x',
    'curl -H "x-api-key: abcdef123456"',
    'echo "MY_TOKEN=abcdef1"',
    'export MY_TOKEN=abcdef\nfoo "X"',
    '{"password": "a\\"b"}',
  ])('leaves the arguments of a call valid JSON: %s', (command) => {
    const [turn] = groupTurns([user('q'), assistant('m1', [toolUse('t1', 'Bash', { command })])]).all;
    const [generation] = buildTurn(turn as Turn, { ...OPTIONS, redact, sessionId: SESSION }).children;
    const output = generation?.output as { tool_calls: { function: { arguments: string } }[] };
    expect(JSON.parse(output.tool_calls[0]?.function.arguments ?? '')).toEqual({ command: redact(command) });
  });

  test('can be turned off', () => {
    expect(JSON.stringify(built({ redact: undefined }))).toContain(secret);
  });
});
