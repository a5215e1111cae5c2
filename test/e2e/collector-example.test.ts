import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { otlpEndpoint } from '../../src/langfuse/endpoint.js';
import { type CollectorConfig, ConfiguredCollector, collectorConfig } from '../support/configured-collector.js';
import { langfuseAt, PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { Workplace } from '../support/program.js';
import { recording, transcriptsOf } from '../support/recording.js';
import { describeTraces } from '../support/traces.js';

const EXAMPLE = new URL('../../examples/collector.yaml', import.meta.url).pathname;

let workplace: Workplace;
let config: CollectorConfig;

beforeEach(async () => {
  workplace = await Workplace.open();
  config = collectorConfig(EXAMPLE, {
    LANGFUSE_BASE_URL: workplace.server.url,
    LANGFUSE_AUTH: Buffer.from(`${PUBLIC_KEY}:${SECRET_KEY}`).toString('base64'),
  });
});

afterEach(() => workplace.close());

test('the example forwards to the endpoint that the hook itself would use, with the same headers', async () => {
  const { url, headers } = await otlpEndpoint(langfuseAt(workplace.server.url), { deadline: Date.now() });
  const [exporter, ...more] = Object.values(config.exporters);
  const sent = Object.entries(exporter?.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]);
  expect(more).toEqual([]);
  expect(`${exporter?.endpoint}/v1/traces`).toBe(url.href);
  expect(sent).not.toEqual([]);
  expect(headers).toMatchObject(Object.fromEntries(sent));
});

test('the example defines every component that it uses, and keeps its queue on disk', () => {
  const { extensions, receivers, exporters, service } = config;
  const { traces } = service.pipelines;
  expect(Object.keys(receivers)).toEqual(traces.receivers);
  expect(Object.keys(exporters)).toEqual(traces.exporters);
  expect(Object.keys(extensions)).toEqual(service.extensions);
  expect(Object.values(exporters).map(({ sending_queue: { storage } }) => storage)).toEqual(['file_storage']);
  expect(extensions).toMatchObject({ file_storage: { directory: expect.stringMatching(/^\//) } });
});

test('what the hook sends to a Collector that follows the example arrives in Langfuse', async () => {
  const collector = await ConfiguredCollector.start(config);
  try {
    const { folder, ...named } = recording('p-agentfg');
    const [source = ''] = transcriptsOf({ folder, ...named });
    cpSync(join(folder, 'projects'), workplace.projects, { recursive: true });
    workplace.env = { HOME: workplace.home, TRACE_TO_LANGFUSE: 'true', CC_LANGFUSE_OTLP_URL: collector.url };
    const path = source.replace(join(folder, 'projects'), workplace.projects);
    const session = source.replace(/^.*\/|\.jsonl$/g, '');
    await workplace.hook({ session_id: session, transcript_path: path, hook_event_name: 'SessionEnd' });
    expect(describeTraces(workplace.server.observations)).toBe(readFileSync(join(folder, 'expected.json'), 'utf8'));
  } finally {
    await collector.stop();
  }
});
