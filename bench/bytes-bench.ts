import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { environment, PROGRAM } from './hook-bench.js';
import { time } from './measure.js';

const RECORDED = new URL('../fixtures/recorded/', import.meta.url).pathname;
const BASELINE = new URL('baselines/bytes.json', import.meta.url).pathname;

interface Bytes {
  readonly plain: number;
  readonly gzipped: number;
}

interface Baseline extends Bytes {
  /** What was measured. */
  readonly commit: string;
  /** A recording that is newer has no part in the comparison. */
  readonly recordings: readonly string[];
  readonly turns: number;
}

/** Compares how many bytes a backfill of the recordings sends with how many it sent before. Nothing of it depends on time. */
export async function benchBytes() {
  const baseline: Baseline = JSON.parse(readFileSync(BASELINE, 'utf8'));
  const { plain, gzipped } = await countBytes(baseline.recordings);
  const perTurn = (bytes: number) => Math.round(bytes / baseline.turns).toLocaleString('en');
  return {
    plain: plain / baseline.plain,
    gzipped: gzipped / baseline.gzipped,
    before: { plain: perTurn(baseline.plain), gzipped: perTurn(baseline.gzipped) },
  };
}

/** Each recording is sent alone: which sessions share a request depends on time. */
async function countBytes(recordings: readonly string[]): Promise<Bytes> {
  const sent = { plain: 0, gzipped: 0 };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      if (request.url?.endsWith('/v1/traces')) {
        sent.plain += gunzipSync(body).length;
        sent.gzipped += body.length;
      }
      response.setHeader('content-type', 'application/json');
      response.end(request.method === 'GET' ? '{"data":[{"id":"bench"}]}' : '{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    for (const name of recordings) await sendRecording(name, url);
  } finally {
    server.close();
  }
  return sent;
}

async function sendRecording(name: string, url: string): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'cc-langfuse-bench-'));
  try {
    const projects = join(home, '.claude', 'projects');
    cpSync(join(RECORDED, name, 'projects'), projects, { recursive: true });
    // Its last turn goes on as long as the file is new.
    const before = new Date(Date.now() - 3_600_000);
    for (const file of readdirSync(projects, { recursive: true, encoding: 'utf8' }))
      utimesSync(join(projects, file), before, before);
    const args = [PROGRAM, 'backfill', '--all', '--yes', '--quiet', '--concurrency', '1'];
    await time({ name: 'backfill', args, env: environment(home, url) });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
