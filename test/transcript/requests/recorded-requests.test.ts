import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { isRecord } from '../../../src/shared/json.js';
import { readLines } from '../../../src/transcript/file/lines.js';
import { RequestIndex } from '../../../src/transcript/requests/request-index.js';
import { type ApiMessage, hashOf, inBlocks } from '../../support/requests.js';

/**
 * A recorded session of the real Claude Code: parallel tools, a slow tool, an unknown tool, a subagent, a compaction,
 * resumed processes, and a fork. Long texts were shortened, and the hashes computed again.
 */
const FOLDER = fileURLToPath(new URL('../../../fixtures/requests/', import.meta.url));

interface RecordedRequest {
  readonly id: string;
  readonly params: object;
  readonly cacheControl: readonly { readonly path: readonly (string | number)[]; readonly value: object }[];
  readonly requestDigest: string;
}

const requests = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.jsonl'))
  .flatMap((file) => recordedIn(file).map((request) => ({ ...request, file })));

function recordedIn(file: string): RecordedRequest[] {
  const lines = readFileSync(join(FOLDER, file), 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'api-request');
}

test.each(requests)(
  'the request $id of $file is found as it was sent',
  ({ file, id, params, cacheControl, requestDigest }) => {
    const index = new RequestIndex(join(FOLDER, file));
    for (const line of readLines(join(FOLDER, file))) index.addLine(line);
    const { shape, messages = [] } = index.find(id) ?? {};
    const sent = [...messages].map((message) => (message.kind === 'stored' ? message.read() : undefined)).toReversed();
    const body = {
      ...params,
      ...shape?.read(),
      messages: sent.map((message) => message && inBlocks(message as ApiMessage)),
    };
    const cached = structuredClone(body);
    for (const { path, value } of cacheControl) Object.assign(at(cached, path), { cache_control: value });
    expect(hashOf(cached)).toBe(requestDigest);
    index.close();
  },
);

/** Returns the value at a path. */
function at(value: unknown, path: readonly (string | number)[]): object {
  let found = value;
  for (const key of path) found = isRecord(found) || Array.isArray(found) ? Reflect.get(found, key) : undefined;
  return Object(found);
}

test('the recorded session has 13 requests', () => {
  expect(requests).toHaveLength(13);
});
