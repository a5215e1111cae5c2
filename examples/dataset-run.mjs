#!/usr/bin/env node
// Runs `claude -p` for each item of a Langfuse dataset, and links what it did to the item.
//
//   node examples/dataset-run.mjs <dataset> <run name>                 Langfuse 2 and 3: a dataset run
//   node examples/dataset-run.mjs <dataset> <run name> --experiment    Langfuse 4, Langfuse Cloud: an experiment
//
// With the hooks of cc-langfuse in Claude Code's settings, and LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY and
// LANGFUSE_BASE_URL in the environment. Copy it and make it yours: it needs nothing but Node.
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';

const { LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL = 'https://cloud.langfuse.com' } = process.env;
const [dataset, runName, mode] = process.argv.slice(2);
if (!dataset || !runName || (mode !== undefined && mode !== '--experiment')) {
  console.error('usage: dataset-run.mjs <dataset> <run name> [--experiment]');
  process.exit(2);
}
if (!LANGFUSE_PUBLIC_KEY || !LANGFUSE_SECRET_KEY) {
  console.error('dataset-run: LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY are not set');
  process.exit(2);
}

await main().catch((error) => {
  console.error(`dataset-run: ${error.message}`);
  process.exitCode = 1;
});

async function main() {
  for await (const item of itemsOf(dataset)) {
    try {
      const traceId = await (mode === '--experiment' ? runBelowSpan(item) : runWithSeed(item));
      console.log(`${item.id} ${traceId}`);
    } catch (error) {
      process.exitCode = 1;
      console.error(`${item.id}: ${error.message}`);
    }
  }
}

/** A seed makes the trace's id known beforehand: it is that of `seed:1` for the first turn, `seed:2` for the second. */
async function runWithSeed(item) {
  // One session, one seed: an item that is run once more needs another.
  const seed = `${runName}/${item.id}/${randomBytes(4).toString('hex')}`;
  await claude(item.input, { CC_LANGFUSE_TRACE_SEED: seed });
  // What createTraceId of @langfuse/tracing gives.
  const traceId = createHash('sha256').update(`${seed}:1`).digest('hex').slice(0, 32);
  await langfuse('POST', '/api/public/dataset-run-items', { runName, datasetItemId: item.id, traceId });
  return traceId;
}

/** Langfuse 4 takes an experiment's items as spans: the turns hang below one that this script sends. */
async function runBelowSpan(item) {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  const startedAt = Date.now();
  const answer = await claude(item.input, { CC_LANGFUSE_TRACEPARENT: `00-${traceId}-${spanId}-01` });
  const attributes = {
    'langfuse.trace.name': runName,
    'langfuse.observation.input': textOf(item.input),
    'langfuse.observation.output': answer,
    'langfuse.experiment.id': createHash('sha256').update(`${dataset}/${runName}`).digest('hex').slice(0, 16),
    'langfuse.experiment.name': runName,
    'langfuse.experiment.dataset.id': item.datasetId,
    'langfuse.experiment.item.id': item.id,
    'langfuse.experiment.item.root_observation_id': spanId,
    'langfuse.experiment.item.expected_output': textOf(item.expectedOutput),
  };
  const span = {
    traceId,
    spanId,
    name: `item ${item.id}`,
    startTimeUnixNano: `${startedAt}000000`,
    endTimeUnixNano: `${Date.now()}000000`,
    attributes: Object.entries(attributes).flatMap(([key, value]) =>
      value === undefined ? [] : [{ key, value: { stringValue: value } }],
    ),
  };
  await langfuse('POST', '/api/public/otel/v1/traces', { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] });
  return traceId;
}

/** Its answer, once it has ended: by then its hook has sent the turn. */
function claude(input, env) {
  return new Promise((resolve, reject) => {
    const variables = { ...process.env, TRACE_TO_LANGFUSE: 'true', ...env };
    const child = spawn('claude', ['-p', textOf(input)], { env: variables, stdio: ['ignore', 'pipe', 'inherit'] });
    let answer = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      answer += text;
    });
    child.on('error', reject);
    child.on('close', (code) =>
      code === 0 ? resolve(answer.trim()) : reject(new Error(`claude exited with ${code}`)),
    );
  });
}

async function* itemsOf(name) {
  for (let page = 1, totalPages = 1; page <= totalPages; page += 1) {
    const query = new URLSearchParams({ datasetName: name, page: String(page) });
    const { data, meta } = await langfuse('GET', `/api/public/dataset-items?${query}`);
    yield* data;
    totalPages = meta.totalPages;
  }
}

async function langfuse(method, path, body) {
  const response = await fetch(`${LANGFUSE_BASE_URL.replace(/\/+$/, '')}${path}`, {
    method,
    headers: {
      authorization: `Basic ${btoa(`${LANGFUSE_PUBLIC_KEY}:${LANGFUSE_SECRET_KEY}`)}`,
      'content-type': 'application/json',
      'x-langfuse-ingestion-version': '4',
    },
    body: body && JSON.stringify(body),
  });
  if (response.ok) return response.json();
  const advice = path.endsWith('run-items') ? ' (Langfuse 4 has no dataset runs: --experiment)' : '';
  throw new Error(`${path.split('?')[0]} answers ${response.status}${advice}`);
}

function textOf(value) {
  return typeof value === 'string' || value === undefined ? value : JSON.stringify(value);
}
