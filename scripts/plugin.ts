// Puts the built program into the plugin, which Claude Code takes out of this repository as it stands there.
import { cpSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundle } from './bundle.js';

const shipped = fileURLToPath(new URL('../plugin/dist', import.meta.url));

await bundle();
rmSync(shipped, { recursive: true, force: true });
cpSync(fileURLToPath(new URL('../dist', import.meta.url)), shipped, { recursive: true });
