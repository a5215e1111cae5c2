import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { langfuseOtlp } from '../../src/langfuse/endpoint.js';
import type { CollectorConfig } from '../support/collector-schema.js';
import { ConfiguredCollector, exporterHeaders, parseCollectorConfig } from '../support/configured-collector.js';
import { langfuseAt, PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { Workplace } from '../support/program.js';
import { recording, transcriptsOf } from '../support/recording.js';
import { describeTraces } from '../support/traces.js';

const EXAMPLE = readFileSync(new URL('../../examples/collector.yaml', import.meta.url), 'utf8');
const parseExample = (url: string, text = EXAMPLE) =>
  parseCollectorConfig(text, {
    LANGFUSE_BASE_URL: url,
    LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
    LANGFUSE_SECRET_KEY: SECRET_KEY,
  });

let workplace: Workplace;
let config: CollectorConfig;

beforeEach(async () => {
  workplace = await Workplace.open();
  config = parseExample(workplace.server.url);
});

afterEach(() => workplace.close());

test('the example forwards to the endpoint that the hook itself would use, with the same headers', async () => {
  const { url, readHeaders } = langfuseOtlp(langfuseAt(workplace.server.url));
  const [exporter, ...more] = Object.values(config.exporters);
  if (!exporter) throw new Error('the example has no exporter');
  expect(more).toEqual([]);
  expect(`${exporter.endpoint}/v1/traces`).toBe(url.href);
  expect(await readHeaders({ deadline: Date.now() })).toMatchObject(exporterHeaders(config, exporter));
});

test('the example defines every component that it uses, and uses every one that it defines', () => {
  const { extensions, receivers, processors, exporters, service } = config;
  const { traces } = service.pipelines;
  expect(Object.keys(receivers)).toEqual(traces.receivers);
  expect(Object.keys(processors)).toEqual(traces.processors);
  expect(Object.keys(exporters)).toEqual(traces.exporters);
  expect(Object.keys(extensions)).toEqual(service.extensions);
  const used = Object.values(exporters).flatMap(({ auth, sending_queue }) => [
    auth.authenticator,
    sending_queue.storage,
  ]);
  expect(service.extensions).toEqual(expect.arrayContaining(used));
});

test('the example keeps its keys in the environment', () => {
  const { client_auth } = config.extensions['basicauth/langfuse'];
  expect(client_auth).toEqual({ username: PUBLIC_KEY, password: SECRET_KEY });
  expect(EXAMPLE).not.toMatch(/authorization/i);
});

test('the example loses nothing of what it has acknowledged: it is on disk, and repeated until Langfuse takes it', () => {
  const [{ sending_queue, retry_on_failure } = {}] = Object.values(config.exporters);
  expect(config.extensions[sending_queue?.storage as 'file_storage']).toMatchObject({ fsync: true });
  expect(retry_on_failure?.max_elapsed_time).toBe('0s');
  // The Collector drops an observation that is larger than the largest batch.
  expect(sending_queue?.batch).not.toHaveProperty('max_size');
  // What comes before the queue must not acknowledge.
  expect(config.service.pipelines.traces.processors).toEqual(['memory_limiter']);
});

describe('the schema of the Collector', () => {
  test.each([
    ['a key that no component has', 'queue_size: 10000000000', 'queue_length: 10000000000'],
    ['a duration without a unit', 'check_interval: 1s', 'check_interval: 1'],
    ['a number as text', 'num_consumers: 4', 'num_consumers: "4"'],
    ['a batch that is measured in requests', '        sizer: bytes', '        sizer: requests'],
    ['a batch that is larger than the queue', 'queue_size: 10000000000', 'queue_size: 1000'],
    ['a queue that waits for results although it is on disk', 'num_consumers: 4', 'wait_for_result: true'],
    ['a memory limiter without a limit', 'limit_mib: 512', 'limit_mib: 0'],
    ['a memory limiter that allows itself more than its limit', 'spike_limit_mib: 128', 'spike_limit_mib: 512'],
    ['a component that has another name', 'memory_limiter:\n', 'memory_limit:\n'],
    ['a level that is wrong', 'retry_on_failure:', '  retry_on_failure:'],
  ])('refuses %s', (_, right, wrong) => {
    expect(EXAMPLE).toContain(right);
    expect(() => parseExample('http://localhost:3000', EXAMPLE.replace(right, wrong))).toThrow();
  });
});

test.each(['none', 'gen_ai'])(
  'what the hook sends to a Collector that follows the example arrives in Langfuse, with the conventions %s',
  async (CC_LANGFUSE_OTLP_SEMCONV) => {
    const collector = await ConfiguredCollector.start(config);
    try {
      const { folder, ...named } = recording('p-agentfg');
      const [source = ''] = transcriptsOf({ folder, ...named });
      cpSync(join(folder, 'projects'), workplace.projects, { recursive: true });
      workplace.env = {
        HOME: workplace.home,
        TRACE_TO_LANGFUSE: 'true',
        CC_LANGFUSE_OTLP_URL: collector.url,
        CC_LANGFUSE_OTLP_SEMCONV,
      };
      const path = source.replace(join(folder, 'projects'), workplace.projects);
      const session = source.replace(/^.*\/|\.jsonl$/g, '');
      await workplace.hook({ session_id: session, transcript_path: path, hook_event_name: 'SessionEnd' });
      expect(describeTraces(workplace.server.observations)).toBe(readFileSync(join(folder, 'expected.json'), 'utf8'));
    } finally {
      await collector.stop();
    }
  },
);
