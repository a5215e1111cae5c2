// Loaded into the program with `node --require`: records its calls of node:fs, and writes them to descriptor 3 when it ends.
const fs = require('node:fs');

const REPORT = 3;
const { writeSync } = fs;
const operations = [];
/** Many functions are made of others: only the outermost call counts. */
let depth = 0;

/** Node finds and loads modules with the same functions. The stack's second line is the caller. */
const isOfLoader = (stack) => /node:internal\/modules\//.test(stack.split('\n')[1] ?? '');
const toPath = (target) => (typeof target === 'number' || target === undefined ? undefined : String(target));

function note(name, target, above) {
  const here = { stack: '' };
  Error.captureStackTrace(here, above);
  if (!isOfLoader(here.stack)) operations.push({ name, path: toPath(target), stack: here.stack });
}

function record(owner, name) {
  const original = owner[name];
  function recorded(...args) {
    if (depth === 0) note(name, args[0], recorded);
    depth += 1;
    try {
      return original.apply(this, args);
    } finally {
      depth -= 1;
    }
  }
  owner[name] = Object.assign(recorded, original);
}

for (const owner of [fs, fs.promises])
  for (const name of Object.keys(owner))
    if (/^[a-z]/.test(name) && typeof owner[name] === 'function') record(owner, name);
process.on('exit', () => writeSync(REPORT, JSON.stringify(operations)));
