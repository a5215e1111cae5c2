// npm run plugin: builds the program and copies it into plugin/dist, which is committed, since Claude Code installs the
// plugin from this repository.
import { cpSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundle } from './bundle.js';

const shipped = fileURLToPath(new URL('../plugin/dist', import.meta.url));

await bundle();
rmSync(shipped, { recursive: true, force: true });
cpSync(fileURLToPath(new URL('../dist', import.meta.url)), shipped, { recursive: true });
