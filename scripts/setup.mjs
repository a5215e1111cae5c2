// Installs the dependencies if they are missing or older than package-lock.json, so that npm start and npm test work on a
// fresh clone.
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

process.chdir(dirname(dirname(fileURLToPath(import.meta.url))));
const changedAt = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
if (changedAt('node_modules/.package-lock.json') < changedAt('package-lock.json')) {
  const npm = process.env.npm_execpath;
  const [command, args] = npm ? [process.execPath, [npm, 'ci']] : ['npm', ['ci']];
  const { status } = spawnSync(command, [...args, '--ignore-scripts', '--no-audit', '--no-fund'], { stdio: 'inherit' });
  process.exitCode = status ?? 1;
}
