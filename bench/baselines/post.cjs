// The smallest program for a turn: it reads the same end of the transcript, and posts a body that is already there.
const { closeSync, fstatSync, openSync, readFileSync, readSync } = require('node:fs');
const { request } = require('node:http');
const { gzipSync } = require('node:zlib');
const [transcript, offset, body, url] = process.argv.slice(2);
let payload = '';
process.stdin.on('data', (chunk) => {
  payload += chunk;
});
process.stdin.on('end', () => {
  JSON.parse(payload);
  const file = openSync(transcript, 'r');
  const tail = Buffer.alloc(fstatSync(file).size - Number(offset));
  readSync(file, tail, 0, tail.length, Number(offset));
  closeSync(file);
  for (const line of tail.toString('utf8').split('\n')) if (line !== '') JSON.parse(line);
  const zipped = gzipSync(readFileSync(body));
  const authorization = `Basic ${Buffer.from('pk-lf-embedded:sk-lf-embedded').toString('base64')}`;
  const headers = { authorization, 'content-type': 'application/json', 'content-encoding': 'gzip' };
  request(url, { method: 'POST', headers }, (answer) => {
    answer.resume();
    answer.on('end', () => process.exit(answer.statusCode === 200 ? 0 : 1));
  }).end(zipped);
});
