#!/usr/bin/env node
// Runs `claude -p` for each item of a Langfuse dataset, and links what it did to the item.
//
//   node examples/dataset-run.mjs <dataset> <run name> [--dataset-run | --experiment]
//
// Langfuse 4 and Langfuse Cloud have experiments, older servers have dataset runs. Unless you choose, the server's version
// decides. Langfuse 4 answers 200 to a dataset run and stores nothing.
//
// It needs the hooks of cc-langfuse in Claude Code's settings, and LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY and
// LANGFUSE_BASE_URL in the environment. Copy it and adapt it: it needs only Node.
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';

const { LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL = 'https://cloud.langfuse.com' } = process.env;
const [dataset, runName, mode] = process.argv.slice(2);
if (!dataset || !runName || ![undefined, '--dataset-run', '--experiment'].includes(mode)) {
  console.error('usage: dataset-run.mjs <dataset> <run name> [--dataset-run | --experiment]');
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
  const isExperiment = mode === undefined ? (await readMajorVersion()) >= 4 : mode === '--experiment';
  for await (const item of listItems(dataset)) {
    try {
      const traceId = await (isExperiment ? runBelowSpan(item) : runWithSeed(item));
      console.log(`${item.id} ${traceId}`);
    } catch (error) {
      process.exitCode = 1;
      console.error(`${item.id}: ${error.message}`);
    }
  }
}

/** A seed makes the trace's id predictable: that of the first turn comes from `seed:1`, that of the second from `seed:2`. */
async function runWithSeed(item) {
  // A seed is for one session: if an item runs again, it needs another one.
  const seed = `${runName}/${item.id}/${randomBytes(4).toString('hex')}`;
  await runClaude(item.input, { CC_LANGFUSE_TRACE_SEED: seed });
  // The same as createTraceId of @langfuse/tracing returns.
  const traceId = createHash('sha256').update(`${seed}:1`).digest('hex').slice(0, 32);
  await callLangfuse('POST', '/api/public/dataset-run-items', { runName, datasetItemId: item.id, traceId });
  return traceId;
}

/**
 * Langfuse 4 reads an experiment's items from spans: this script sends one, and the turns become its children. The cost of an item
 * is the sum over the spans that have the attributes themselves, so the hook sets them on what has a cost. The seed is the name of the trace.
 */
async function runBelowSpan(item) {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  const startedAt = Date.now();
  const experiment = {
    id: createHash('sha256').update(`${dataset}/${runName}`).digest('hex').slice(0, 16),
    name: runName,
    'dataset.id': item.datasetId,
    'item.id': item.id,
    'item.root_observation_id': spanId,
    // An empty value is none. JSON leaves undefined out.
    'item.expected_output': toText(item.expectedOutput ?? undefined) || undefined,
  };
  const answer = await runClaude(item.input, {
    CC_LANGFUSE_TRACEPARENT: `00-${traceId}-${spanId}-01`,
    CC_LANGFUSE_TRACE_SEED: runName,
    CC_LANGFUSE_EXPERIMENT: JSON.stringify(experiment),
  });
  const attributes = {
    'langfuse.trace.name': runName,
    'langfuse.observation.input': toText(item.input),
    'langfuse.observation.output': answer,
    ...Object.fromEntries(Object.entries(experiment).map(([name, value]) => [`langfuse.experiment.${name}`, value])),
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
  // Without a scope that begins like this, Langfuse repeats the span's attributes in its metadata.
  const scopeSpans = [{ scope: { name: 'langfuse-sdk-dataset-run' }, spans: [span] }];
  await callLangfuse('POST', '/api/public/otel/v1/traces', { resourceSpans: [{ scopeSpans }] });
  return traceId;
}

/** Returns the answer once Claude Code has ended. By then its hook has sent the turn. */
function runClaude(input, env) {
  return new Promise((resolve, reject) => {
    const variables = { ...process.env, TRACE_TO_LANGFUSE: 'true', ...env };
    const child = spawn('claude', ['-p', toText(input)], { env: variables, stdio: ['ignore', 'pipe', 'inherit'] });
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

async function readMajorVersion() {
  const { version } = await callLangfuse('GET', '/api/public/health');
  const major = Number.parseInt(version, 10);
  if (Number.isNaN(major)) throw new Error('the server does not say its version: use --dataset-run or --experiment');
  return major;
}

async function* listItems(name) {
  for (let page = 1, totalPages = 1; page <= totalPages; page += 1) {
    const query = new URLSearchParams({ datasetName: name, page: String(page) });
    const { data, meta } = await callLangfuse('GET', `/api/public/dataset-items?${query}`);
    yield* data;
    totalPages = meta.totalPages;
  }
}

async function callLangfuse(method, path, body) {
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
  const advice = path.endsWith('run-items') ? ' (use --experiment if it has no dataset runs)' : '';
  throw new Error(`${path.split('?')[0]} answers ${response.status}${advice}`);
}

function toText(value) {
  return typeof value === 'string' || value === undefined ? value : JSON.stringify(value);
}
