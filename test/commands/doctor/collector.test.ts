import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Collector } from '../../support/collector.js';
import { DoctorHome } from '../../support/doctor.js';

let home: DoctorHome;
let collector: Collector;

beforeEach(async () => {
  home = await DoctorHome.open();
  collector = await Collector.start();
  home.env = {
    HOME: home.home,
    TRACE_TO_LANGFUSE: 'true',
    CC_LANGFUSE_OTLP_URL: `${collector.url}/v1/traces`,
    CC_LANGFUSE_OTLP_HEADERS: 'authorization=Bearer%20hunter2hunter2,x-tenant=one',
  };
});

afterEach(async () => {
  await collector.stop();
  await home.close();
});

const url = () => `${collector.url}/v1/traces`;

test('a Collector is asked once, without keys and without observations', async () => {
  const found = await home.check();
  expect(found.lines(/^(?:otlp.*|.*-key|base-url|destination|keys|clock|endpoint)$/)).toEqual([
    `ok otlp-url: CC_LANGFUSE_OTLP_URL is ${url()} (from the shell)`,
    'ok otlp-headers: CC_LANGFUSE_OTLP_HEADERS sets authorization, x-tenant (from the shell)',
    `ok endpoint: the Collector at ${url()} accepts OpenTelemetry (200)`,
  ]);
  expect(found.all.filter(({ status }) => status === 'broken').map(({ name }) => name)).toEqual(['hooks']);
  expect(collector.requests.map(({ path, headers }) => [path, headers.authorization])).toEqual([
    ['/v1/traces', 'Bearer hunter2hunter2'],
  ]);
  expect(collector.observations).toEqual([]);
});

test('with a Collector the keys are not used', async () => {
  const found = await home.check({ LANGFUSE_PUBLIC_KEY: 'pk-lf-…', LANGFUSE_BASE_URL: 'no URL' });
  expect(found.of('public-key')).toEqual([
    { status: 'none', message: 'LANGFUSE_PUBLIC_KEY is not used, because CC_LANGFUSE_OTLP_URL is set' },
  ]);
  expect(found.of('base-url')).toMatchObject([{ status: 'warning' }]);
  expect(home.server.requests).toEqual([]);
});

describe('a Collector is broken', () => {
  test.each([
    [401, 'the Collector refuses CC_LANGFUSE_OTLP_HEADERS (401)', 'fix CC_LANGFUSE_OTLP_HEADERS'],
    [503, 'it answers 503', 'wait, or ask whoever runs it'],
    [307, 'it answers 307', 'fix CC_LANGFUSE_OTLP_URL'],
  ])('if it answers %i', async (status, problem, fix) => {
    collector.answer = () => ({ status });
    expect((await home.check()).of('endpoint')).toEqual([
      { status: 'broken', message: `the Collector at ${url()}: ${problem}`, fix },
    ]);
  });

  test('if the path of its URL is wrong', async () => {
    const env = { CC_LANGFUSE_OTLP_URL: `${collector.url}/v1/metrics?token=hunter2` };
    expect((await home.check(env)).of('endpoint')).toEqual([
      {
        status: 'broken',
        message: `the Collector at ${collector.url}/v1/metrics: there is no OTLP endpoint at CC_LANGFUSE_OTLP_URL (404); a Collector's URL ends with /v1/traces`,
        fix: 'fix CC_LANGFUSE_OTLP_URL',
      },
    ]);
  });

  test('if nothing listens there', async () => {
    const gone = 'http://127.0.0.1:1/v1/traces';
    expect((await home.check({ CC_LANGFUSE_OTLP_URL: gone })).of('endpoint')).toEqual([
      {
        status: 'broken',
        message: `nothing listens at ${gone} (ECONNREFUSED)`,
        fix: 'start the server, or fix CC_LANGFUSE_OTLP_URL',
      },
    ]);
  });
});

describe('a Collector is not asked', () => {
  test('if its URL is malformed', async () => {
    expect((await home.check({ CC_LANGFUSE_OTLP_URL: 'collector:4318' })).of('otlp-url')).toEqual([
      {
        status: 'broken',
        message: 'CC_LANGFUSE_OTLP_URL: expected an http or https URL (from the shell)',
        fix: 'correct CC_LANGFUSE_OTLP_URL in the shell, or remove it',
      },
    ]);
    expect(collector.requests).toEqual([]);
  });

  test('if its headers are malformed', async () => {
    expect((await home.check({ CC_LANGFUSE_OTLP_HEADERS: 'hunter2' })).of('otlp-headers')).toMatchObject([
      { status: 'broken', fix: 'correct CC_LANGFUSE_OTLP_HEADERS in the shell, or remove it' },
    ]);
    expect(collector.requests).toEqual([]);
  });

  test('if a project names it', async () => {
    const { HOME, ...env } = home.env;
    home.env = { HOME, TRACE_TO_LANGFUSE: 'true', CC_LANGFUSE_OTLP_URL: 'http://127.0.0.1:9' };
    home.writeSettings({ env }, 'local');
    expect((await home.check()).lines(/^ignored$/)).toEqual([
      'warning ignored: CC_LANGFUSE_OTLP_URL: is ignored, because ~/project/.claude/settings.local.json names another destination, which you have not installed there (cc-langfuse install --scope local)',
    ]);
    expect(collector.requests).toEqual([]);
  });
});

test('scores for a Collector are a warning', async () => {
  expect((await home.check({ CC_LANGFUSE_SCORES: 'true' })).of('setting')).toEqual([
    {
      status: 'warning',
      message: 'CC_LANGFUSE_SCORES: a Collector cannot take scores, only Langfuse can (from the shell)',
      fix: 'correct CC_LANGFUSE_SCORES in the shell, or remove it',
    },
  ]);
});
