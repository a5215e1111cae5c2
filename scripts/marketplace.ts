import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version } from '../src/shared/version.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Where `npm run plugin` puts it. */
export const MARKETPLACE = join(ROOT, 'marketplace');

/** Assembles a marketplace with the plugin from `plugin/` and the built program, ready for Claude Code to install. */
export function assembleMarketplace(target: string): void {
  rmSync(target, { recursive: true, force: true });
  const plugin = join(target, 'plugin');
  for (const folder of ['bin', 'commands', 'hooks'])
    cpSync(join(ROOT, 'plugin', folder), join(plugin, folder), { recursive: true });
  cpSync(join(ROOT, 'dist'), join(plugin, 'dist'), { recursive: true });
  cpSync(join(ROOT, 'LICENSE'), join(plugin, 'LICENSE'));
  const { name, ...manifest } = JSON.parse(readFileSync(join(ROOT, 'plugin', 'plugin.json'), 'utf8'));
  writeJson(join(plugin, '.claude-plugin'), 'plugin.json', { name, version, ...manifest });
  const marketplace = JSON.parse(readFileSync(join(ROOT, 'plugin', 'marketplace.json'), 'utf8'));
  writeJson(join(target, '.claude-plugin'), 'marketplace.json', marketplace);
}

function writeJson(folder: string, name: string, value: object): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), `${JSON.stringify(value, null, 2)}\n`);
}
