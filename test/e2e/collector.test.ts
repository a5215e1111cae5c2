import { cpSync, readdirSync, readFileSync, rmSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Collector } from '../support/collector.js';
import { findViolations } from '../support/gen-ai-conventions.js';
import { PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { type Ended, run, Workplace } from '../support/program.js';
import { type Recording, recording, transcriptsOf } from '../support/recording.js';
import { describeTraces } from '../support/traces.js';

const RECORDING = recording('p-agentfg');
const SECRET = 'c2VjcmV0OnNlY3JldA==';

let workplace: Workplace;
let collector: Collector;

beforeEach(async () => {
  workplace = await Workplace.open();
  collector = await Collector.start();
  workplace.env = {
    HOME: workplace.home,
    TRACE_TO_LANGFUSE: 'true',
    CC_LANGFUSE_OTLP_URL: `${collector.url}/v1/traces`,
    CC_LANGFUSE_OTLP_HEADERS: `authorization=Basic%20${SECRET},x-tenant=one`,
  };
  layOut(RECORDING);
});

/** Makes the transcripts of a recording the only ones, as they are long after the session. */
function layOut({ folder }: Recording): void {
  rmSync(workplace.projects, { recursive: true, force: true });
  cpSync(join(folder, 'projects'), workplace.projects, { recursive: true });
  const before = new Date(Date.now() - 3_600_000);
  for (const name of readdirSync(workplace.projects, { recursive: true, encoding: 'utf8' })) {
    utimesSync(join(workplace.projects, name), before, before);
  }
}

afterEach(async () => {
  await collector.stop();
  await workplace.close();
});

const [source = ''] = transcriptsOf(RECORDING);
const path = () => source.replace(join(RECORDING.folder, 'projects'), workplace.projects);
const sessionId = source.replace(/^.*\/|\.jsonl$/g, '');
const hook = (): Promise<Ended> =>
  workplace.hook({ session_id: sessionId, transcript_path: path(), hook_event_name: 'SessionEnd' });
const messages = () => workplace.log.map(({ msg }) => msg);
const expected = () => readFileSync(join(RECORDING.folder, 'expected.json'), 'utf8');

describe('a Collector gets what Langfuse would', () => {
  test('with the configured headers, and without the keys of Langfuse', async () => {
    workplace.env = {
      ...workplace.env,
      LANGFUSE_PUBLIC_KEY: 'pk-lf-mine',
      LANGFUSE_SECRET_KEY: 'sk-lf-mine',
      LANGFUSE_BASE_URL: workplace.server.url,
    };
    expect(await hook()).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    expect(describeTraces(collector.observations)).toBe(expected());
    const [{ headers } = { headers: {} }] = collector.requests;
    expect(headers).toMatchObject({ authorization: `Basic ${SECRET}`, 'x-tenant': 'one' });
    expect(JSON.stringify(headers)).not.toMatch(/langfuse-(?:sdk|ingestion)|lf-mine/);
    expect(workplace.server.requests).toEqual([]);
    expect(workplace.log).toEqual([]);
  });

  test('at a URL without a path', async () => {
    workplace.env = { ...workplace.env, CC_LANGFUSE_OTLP_URL: collector.url };
    await hook();
    expect(describeTraces(collector.observations)).toBe(expected());
  });

  test('once, even if the body of its answer never ends', async () => {
    collector.answer = () => ({ status: 200, neverEnds: true });
    await hook();
    await hook();
    expect(collector.requests).toHaveLength(1);
    expect(messages()).toEqual([]);
  });

  test('and is a destination of its own, which only its URL identifies', async () => {
    await hook();
    const states = async () => JSON.parse((await run(['sessions', '--json'], workplace.env)).stdout)[0].state;
    expect(await states()).toBe('exported');
    workplace.env = { ...workplace.env, CC_LANGFUSE_OTLP_HEADERS: 'authorization=changed' };
    expect(await states()).toBe('exported');
    workplace.env = { ...workplace.env, CC_LANGFUSE_OTLP_URL: 'http://another:4318' };
    expect(await states()).toBe('elsewhere');
  });

  test('from a backfill, which does not ask for a project and prints no page', async () => {
    const { exitCode, stdout, stderr } = await run(['backfill', '--yes', '--all', '--json'], workplace.env);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(JSON.parse(stdout)).not.toHaveProperty('page');
    expect(describeTraces(collector.observations)).toBe(expected());
    expect(new Set(collector.requests.map((request) => request.path))).toEqual(new Set(['/v1/traces']));
  });
});

describe('with CC_LANGFUSE_OTLP_SEMCONV=gen_ai a Collector gets what other backends read, too', () => {
  test.each(['p-agentfg', 'p-agentfgnest', 'p-denied', 'p-e400', 'p-emid', 'p-wf', 'q-compact', 'q-hooks', 'q-team'])(
    'of %s, and Langfuse behind it reads the same as without',
    async (name) => {
      layOut(recording(name));
      workplace.env = { ...workplace.env, CC_LANGFUSE_OTLP_SEMCONV: 'gen_ai' };
      expect(await run(['backfill', '--yes', '--all'], workplace.env)).toMatchObject({ exitCode: 0 });
      expect(collector.spans.flatMap(findViolations)).toEqual([]);
      expect(describeTraces(collector.observations)).toBe(
        readFileSync(join(recording(name).folder, 'expected.json'), 'utf8'),
      );
      const operations = collector.spans.map(({ attributes }) =>
        attributes.find(({ key }) => key === 'gen_ai.operation.name'),
      );
      const ofConventions = collector.observations.filter(({ type }) => type !== 'event');
      expect(operations.filter((operation) => operation !== undefined)).toHaveLength(ofConventions.length);
    },
  );
});

describe('a partial success', () => {
  test('is logged as a warning with its counts, and nothing is sent again', async () => {
    workplace.env = { ...workplace.env, CC_LANGFUSE_DEBUG: 'true' };
    collector.answer = (_, spans) => ({
      status: 200,
      body: JSON.stringify({
        partialSuccess: { rejectedSpans: '2', errorMessage: `${spans.length - 2} fit; ${SECRET} was said` },
      }),
    });
    expect(await hook()).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    const { length: sent } = collector.observations;
    expect(workplace.log).toMatchObject([
      {
        level: 'warn',
        msg: 'the Collector rejected part of a request',
        rejected: 2,
        sent,
        reason: `${sent - 2} fit; … was said`,
      },
      { level: 'debug', msg: 'exported', observations: sent - 2 },
    ]);
    expect(workplace.state[sessionId]).not.toHaveProperty('pending');
    await hook();
    expect(collector.requests).toHaveLength(1);
  });

  test.each([
    ['{"partialSuccess":{"rejectedSpans":0,"errorMessage":"slow down"}}', [{ rejected: 0, reason: 'slow down' }]],
    ['{"partialSuccess":{"rejectedSpans":"999999"}}', [{ rejected: 10, sent: 10, reason: '' }]],
    ['{"partialSuccess":{"rejectedSpans":"-1"}}', []],
    ['{"partialSuccess":{}}', []],
    ['{"partialSuccess":null}', []],
    ['not JSON', []],
    ['', []],
  ])('is read tolerantly: %j', async (body, warnings) => {
    collector.answer = () => ({ status: 200, body });
    await hook();
    expect(workplace.log).toMatchObject(warnings);
    expect(workplace.state[sessionId]).not.toHaveProperty('pending');
  });
});

describe('a Collector', () => {
  test('that refuses the headers is reported with their name, but never their value', async () => {
    collector.answer = () => ({ status: 401, body: JSON.stringify({ code: 16, message: `bad ${SECRET}` }) });
    await hook();
    const reason = 'the Collector refuses CC_LANGFUSE_OTLP_HEADERS (401): "bad …"';
    expect(workplace.state[sessionId]).toMatchObject({ pending: { reason } });
    expect(messages()).toEqual([reason]);
    workplace.env = { ...workplace.env, CLAUDE_CODE_ENTRYPOINT: 'cli' };
    const { host } = new URL(collector.url);
    const { stdout } = await hook();
    expect(JSON.parse(stdout).systemMessage).toBe(
      `cc-langfuse: ${host} refused CC_LANGFUSE_OTLP_HEADERS (401): "bad …". Nothing is exported. Run: cc-langfuse doctor`,
    );
    const files = readdirSync(workplace.stateFolder, { withFileTypes: true }).filter((entry) => entry.isFile());
    const written = files.map(({ name }) => readFileSync(join(workplace.stateFolder, name), 'utf8')).join('');
    expect(written).toContain('refused CC_LANGFUSE_OTLP_HEADERS (401): "bad …"');
    expect(written).not.toContain(SECRET);
  });

  test('that is unavailable is asked again after Retry-After', async () => {
    collector.answer = (number) => (number < 2 ? { status: 503, headers: { 'retry-after': '0' } } : undefined);
    await hook();
    expect(collector.requests).toHaveLength(3);
    expect(describeTraces(collector.observations)).toBe(expected());
  });

  test.each([
    [{ status: 307, headers: { location: 'http://127.0.0.1:1/v1/traces' } }, 'the server redirects elsewhere (307)'],
    [
      { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>' },
      'this is not a Collector: it answered 200 with a web page',
    ],
  ])('that answers %j is not asked again, and the turn stays pending', async (answer, reason) => {
    collector.answer = () => answer;
    await hook();
    expect(collector.requests).toHaveLength(1);
    expect(messages()).toEqual([expect.stringContaining(reason)]);
    expect(workplace.state[sessionId]).toHaveProperty('pending');
  });

  test('whose URL has a wrong path is reported', async () => {
    workplace.env = { ...workplace.env, CC_LANGFUSE_OTLP_URL: `${collector.url}/v1/metrics` };
    await hook();
    expect(messages()).toEqual([
      "there is no OTLP endpoint at CC_LANGFUSE_OTLP_URL (404); a Collector's URL ends with /v1/traces",
    ]);
  });
});

test('a Collector gets no scores, and the turns are sent without them', async () => {
  workplace.env = { ...workplace.env, CC_LANGFUSE_SCORES: 'true' };
  await hook();
  expect(describeTraces(collector.observations)).toBe(expected());
  const message = 'CC_LANGFUSE_SCORES: a Collector cannot take scores, only Langfuse can';
  expect(messages()).toEqual([message, message]);
  expect(workplace.state[sessionId]).not.toHaveProperty('pending');
  expect(workplace.state[sessionId]).not.toHaveProperty('scores');
});

test('scores that Langfuse refused do not keep a session pending once a Collector is configured', async () => {
  const { CC_LANGFUSE_OTLP_URL: _, ...env } = workplace.env;
  const { server } = workplace;
  const keys = { LANGFUSE_PUBLIC_KEY: PUBLIC_KEY, LANGFUSE_SECRET_KEY: SECRET_KEY, LANGFUSE_BASE_URL: server.url };
  server.misbehave = ({ url }) => (/\/(?:scores|ingestion)$/.test(url ?? '') ? { status: 503 } : undefined);
  const { env: toCollector } = workplace;
  workplace.env = { ...env, ...keys, CC_LANGFUSE_SCORES: 'true' };
  await hook();
  expect(workplace.state[sessionId]).toHaveProperty('pending');
  workplace.env = toCollector;
  await hook();
  expect(workplace.state[sessionId]).not.toHaveProperty('pending');
});

test('no message asks for keys if a Collector is configured', async () => {
  workplace.env = { ...workplace.env, CLAUDE_CODE_ENTRYPOINT: 'cli' };
  expect(await hook()).toMatchObject({ exitCode: 0, stdout: '' });
});

test('a backfill without a destination says what can be set', async () => {
  const env = { HOME: workplace.home, CC_LANGFUSE_OTLP_URL: 'collector:4318' };
  expect(await run(['backfill', '--yes', '--all'], env)).toMatchObject({
    exitCode: 2,
    stderr:
      'cc-langfuse: CC_LANGFUSE_OTLP_URL: expected an http or https URL\n' +
      'cc-langfuse: there is nowhere to send to: run cc-langfuse install, or set keys, or CC_LANGFUSE_OTLP_URL, in the shell or in your settings\n',
  });
});
