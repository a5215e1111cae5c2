import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Collector } from '../../support/collector.js';
import { Patient } from '../../support/doctor.js';

let patient: Patient;
let collector: Collector;

beforeEach(async () => {
  patient = await Patient.open();
  collector = await Collector.start();
  patient.workplace.env = {
    HOME: patient.workplace.home,
    TRACE_TO_LANGFUSE: 'true',
    CC_LANGFUSE_OTLP_URL: `${collector.url}/v1/traces`,
    CC_LANGFUSE_OTLP_HEADERS: 'authorization=Bearer%20hunter2hunter2,x-tenant=one',
  };
});

afterEach(async () => {
  await collector.stop();
  await patient.close();
});

const url = () => `${collector.url}/v1/traces`;

describe('a Collector', () => {
  test('is named, and needs no keys', async () => {
    const { checks, ok } = await patient.checked();
    const told = checks.filter(({ name }) => /^(?:otlp.*|.*-key|base-url|destination|keys|clock|endpoint)$/.test(name));
    expect(told.map(({ name, status, message }) => `${status} ${name}: ${message}`)).toEqual([
      `ok otlp-url: CC_LANGFUSE_OTLP_URL is ${url()}, by the shell`,
      'ok otlp-headers: CC_LANGFUSE_OTLP_HEADERS sets authorization, x-tenant, by the shell',
      `ok endpoint: the Collector at ${url()} takes OpenTelemetry (200)`,
    ]);
    expect(ok).toBe(false);
    expect(checks.filter(({ status }) => status === 'broken').map(({ name }) => name)).toEqual(['hooks']);
    expect(collector.requests.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ['/v1/traces', 'Bearer hunter2hunter2'],
    ]);
    expect(collector.observations).toEqual([]);
  });

  test('comes before keys, which are not used then', async () => {
    const { HOME: _, ...env } = patient.workplace.env;
    const keys = { LANGFUSE_PUBLIC_KEY: 'pk-lf-…', LANGFUSE_BASE_URL: 'no URL' };
    expect(await patient.told('public-key', { ...env, ...keys })).toEqual([
      { status: 'none', message: 'LANGFUSE_PUBLIC_KEY is not used, CC_LANGFUSE_OTLP_URL is' },
    ]);
    expect(await patient.told('base-url', { ...env, ...keys })).toMatchObject([{ status: 'warning' }]);
    expect(patient.workplace.server.requests).toEqual([]);
  });

  test.each([
    [401, 'the Collector refuses CC_LANGFUSE_OTLP_HEADERS (401)', 'mend CC_LANGFUSE_OTLP_HEADERS'],
    [503, 'it answers 503', 'wait, or ask who runs it'],
    [307, 'it answers 307', 'mend CC_LANGFUSE_OTLP_URL'],
  ])('that answers %i', async (status, problem, fix) => {
    collector.answer = () => ({ status });
    expect(await patient.told('endpoint')).toEqual([
      { status: 'broken', message: `the Collector at ${url()}: ${problem}`, fix },
    ]);
  });

  test('that is elsewhere, or is not there', async () => {
    const elsewhere = { CC_LANGFUSE_OTLP_URL: `${collector.url}/v1/metrics?token=hunter2` };
    expect(await patient.told('endpoint', elsewhere)).toEqual([
      {
        status: 'broken',
        message: `the Collector at ${collector.url}/v1/metrics: there is no OTLP endpoint at CC_LANGFUSE_OTLP_URL (404); a Collector's URL ends with /v1/traces`,
        fix: 'mend CC_LANGFUSE_OTLP_URL',
      },
    ]);
    const gone = 'http://127.0.0.1:1/v1/traces';
    expect(await patient.told('endpoint', { CC_LANGFUSE_OTLP_URL: gone })).toEqual([
      {
        status: 'broken',
        message: `nothing listens at ${gone} (ECONNREFUSED)`,
        fix: 'start the server, or mend CC_LANGFUSE_OTLP_URL',
      },
    ]);
  });

  test('whose settings are malformed gets nothing', async () => {
    expect(await patient.told('otlp-url', { CC_LANGFUSE_OTLP_URL: 'collector:4318' })).toEqual([
      {
        status: 'broken',
        message: 'CC_LANGFUSE_OTLP_URL: expected an http or https URL (by the shell)',
        fix: 'correct CC_LANGFUSE_OTLP_URL in the shell, or take it out',
      },
    ]);
    expect(await patient.told('otlp-headers', { CC_LANGFUSE_OTLP_HEADERS: 'hunter2' })).toMatchObject([
      { status: 'broken', fix: 'correct CC_LANGFUSE_OTLP_HEADERS in the shell, or take it out' },
    ]);
    expect(collector.requests).toEqual([]);
  });

  test('takes no scores', async () => {
    expect(await patient.told('setting', { CC_LANGFUSE_SCORES: 'true' })).toEqual([
      {
        status: 'warning',
        message: 'CC_LANGFUSE_SCORES: a Collector cannot take scores, only Langfuse can (by the shell)',
        fix: 'correct CC_LANGFUSE_SCORES in the shell, or take it out',
      },
    ]);
  });

  test('that a project names is told of, and not asked', async () => {
    const { HOME, ...env } = patient.workplace.env;
    patient.workplace.env = { HOME, TRACE_TO_LANGFUSE: 'true', CC_LANGFUSE_OTLP_URL: 'http://127.0.0.1:9' };
    patient.writeSettings({ env }, 'local');
    expect(await patient.told('destination')).toMatchObject([
      {
        status: 'warning',
        message: `hooks here send to the Collector at ${new URL(url()).host}, commands by hand to the Collector at 127.0.0.1:9, which is what is asked below`,
      },
    ]);
    expect(collector.requests).toEqual([]);
  });
});
