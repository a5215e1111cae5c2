// The least work of a backfill: reading, parsing, redacting, stringifying and gzipping, without turns, state, ids or requests.
import { closeSync, openSync, readSync } from 'node:fs';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { createRedactor } from '../../src/observations/redaction/redact.js';

const [parseOnly, ...files] = process.argv.slice(2);
const redact = createRedactor([]);
const zipping: Promise<unknown>[] = [];
const context = { ...Array.from({ length: 14 }, (_, n) => ({ key: `trace.metadata.${n}`, value: 'x'.repeat(36) })) };
let spans: string[] = [];
let waiting = 0;
let bytes = 0;

function* linesOf(path: string) {
  const file = openSync(path, 'r');
  const chunk = Buffer.alloc(1 << 18);
  let rest = Buffer.alloc(0);
  for (let length = readSync(file, chunk); length > 0; length = readSync(file, chunk)) {
    const all = rest.length > 0 ? Buffer.concat([rest, chunk.subarray(0, length)]) : chunk.subarray(0, length);
    let from = 0;
    for (let to = all.indexOf(10); to >= 0; to = all.indexOf(10, from)) {
      yield all.subarray(from, to);
      from = to + 1;
    }
    rest = Buffer.from(all.subarray(from));
  }
  closeSync(file);
}

async function emit(input: string, output: string) {
  const value = JSON.stringify([{ role: 'tool', content: input.slice(0, 2_000) }]);
  const json = JSON.stringify({ attributes: [{ key: 'input', value }, { key: 'output', value: output }, context] });
  spans.push(json);
  waiting += json.length;
  if (waiting < 1_000_000) return;
  zipping.push(promisify(gzip)(spans.join(',')));
  bytes += waiting;
  spans = [];
  waiting = 0;
  if (zipping.length === 4) await zipping.shift();
}

for (const path of files) {
  let previous = '';
  for (const line of linesOf(path)) {
    const head = line.toString('latin1', 0, 120);
    if (head.startsWith('{"type":"api-request') || head.includes('"attachment":{')) continue;
    const { message } = JSON.parse(line.toString('utf8'));
    if (parseOnly === 'parse') continue;
    const blocks = typeof message.content === 'string' ? [{ text: message.content }] : message.content;
    for (const { text, content, input } of blocks) {
      const redacted = redact(text ?? content ?? JSON.stringify(input));
      await emit(previous, redacted);
      previous = redacted;
    }
  }
}
await Promise.all(zipping);
process.stderr.write(`${bytes + waiting}\n`);
