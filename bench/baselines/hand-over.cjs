// The smallest program that hands a payload to a background process, so the user of the terminal cannot wait less.
const { spawn } = require('node:child_process');
let payload = '';
process.stdin.on('data', (chunk) => {
  payload += chunk;
});
process.stdin.on('end', () => {
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.stdin.end(payload, () => child.unref());
});
