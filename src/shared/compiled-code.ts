import { attempt } from './attempt.js';

// cli.ts loads this first of all, so Node's modules are loaded only where they are used.

/** The worker's file. Most of a worker's start is compiling it. */
const WORKER = 'commands-hook-hook.cjs';
/** The folder within the program's own. It has a file for each version of Node: a hash, then the compiled code. */
export const COMPILED_FOLDER = 'compiled';
const HASH_BYTES = 32;

/**
 * Loads the worker's file from its compiled code, so that a later import finds the file loaded. Returns whether there is compiled
 * code for exactly this file. If there is none, the import compiles it.
 */
export function loadCompiled(program: string): boolean {
  return (
    attempt(() => {
      const { createRequire, Module } = process.getBuiltinModule('node:module');
      const file = `${program}/${WORKER}`;
      const source = readFile(file);
      const code = readCompiled(program, source);
      if (code === undefined) return false;
      const module = new Module(file);
      module.filename = file;
      const require = createRequire(file);
      // If V8 cannot use the code, since it runs with other flags, it compiles the file itself.
      toScript(file, source, code).runInThisContext()(module.exports, require, module, file, program);
      module.loaded = true;
      require.cache[file] = module;
      return true;
    }) ?? false
  );
}

/** Compiles the worker's file and keeps the result for later processes. If that is not possible, nothing happens. */
export function keepCompiled(program: string): void {
  attempt(() => {
    const { mkdirSync, renameSync, rmSync, writeFileSync } = process.getBuiltinModule('node:fs');
    const file = `${program}/${WORKER}`;
    const source = readFile(file);
    mkdirSync(`${program}/${COMPILED_FOLDER}`, { recursive: true, mode: 0o755 });
    if (!isTrusted(`${program}/${COMPILED_FOLDER}`)) return;
    const code = compile(file, source);
    const unfinished = `${findPath(program)}.${process.pid}`;
    try {
      writeFileSync(unfinished, Buffer.concat([hash(source, code), code]), { mode: 0o644 });
      renameSync(unfinished, findPath(program));
    } finally {
      // On a full disk, what follows needs the space.
      rmSync(unfinished, { force: true });
    }
  });
}

/** Whether a worker keeps what `install` has not: for another version of Node, and where nothing is installed, as in the plugin. */
export function mayKeepCompiled(program: string): boolean {
  const { existsSync } = process.getBuiltinModule('node:fs');
  // A clone is built again and again.
  return existsSync(`${program}/${COMPILED_FOLDER}`) || !existsSync(`${program}/../src`);
}

function compile(file: string, source: Buffer): Buffer {
  const { setFlagsFromString } = process.getBuiltinModule('node:v8');
  // All functions, and not only those that the file calls while it is loaded. V8 has no other way to ask for that.
  setFlagsFromString('--no-lazy');
  const script = toScript(file, source);
  // V8 uses the code only with the flags that are set when it is taken.
  setFlagsFromString('--lazy');
  return script.createCachedData();
}

function toScript(filename: string, source: Buffer, cachedData?: Buffer) {
  const { Script } = process.getBuiltinModule('node:vm');
  const text = `(function (exports, require, module, __filename, __dirname) {${source}\n})`;
  return new Script(text, { filename, ...(cachedData && { cachedData }) });
}

function readCompiled(program: string, source: Buffer): Buffer | undefined {
  const path = findPath(program);
  if (!isTrusted(`${program}/${COMPILED_FOLDER}`) || !isTrusted(path)) return undefined;
  const content = readFile(path);
  const code = content.subarray(HASH_BYTES);
  return content.subarray(0, HASH_BYTES).equals(hash(source, code)) ? code : undefined;
}

/** Whether only the user or root can have written it, since it is executed. Never on Windows, where Node does not know. */
function isTrusted(path: string): boolean {
  const status = process.getBuiltinModule('node:fs').lstatSync(path);
  const isOwn = status.uid === process.getuid?.() || status.uid === 0;
  return isOwn && (status.mode & 0o022) === 0 && !status.isSymbolicLink();
}

function findPath(program: string): string {
  return `${program}/${COMPILED_FOLDER}/${process.version}-${process.arch}`;
}

/** V8 looks only at the length of the source, and not at all of what it compiled. */
function hash(source: Buffer, code: Buffer): Buffer {
  return process.getBuiltinModule('node:crypto').createHash('sha256').update(source).update(code).digest();
}

function readFile(path: string): Buffer {
  return process.getBuiltinModule('node:fs').readFileSync(path);
}
