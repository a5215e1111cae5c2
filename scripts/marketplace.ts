import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nameRepository, OWNER } from './release-steps.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Where `npm run plugin` puts it. */
export const MARKETPLACE = join(ROOT, 'marketplace');

/**
 * Assembles a marketplace with the plugin from `plugin/` and the built program, ready for Claude Code to install. `package.json`
 * says from which repository; until a release names its owner, the plugin has no links.
 */
export function assembleMarketplace(target: string, packageJson = readText('package.json')): void {
  const { version, homepage, repository } = JSON.parse(packageJson);
  const page = repository.url.replace(/^git\+|\.git$/g, '');
  rmSync(target, { recursive: true, force: true });
  const plugin = join(target, 'plugin');
  for (const folder of ['bin', 'commands', 'hooks'])
    cpSync(join(ROOT, 'plugin', folder), join(plugin, folder), { recursive: true });
  cpSync(join(ROOT, 'dist'), join(plugin, 'dist'), { recursive: true });
  cpSync(join(ROOT, 'LICENSE'), join(plugin, 'LICENSE'));
  const { name, ...manifest } = JSON.parse(readText('plugin/plugin.json'));
  const links = page.includes(OWNER) ? {} : { homepage, repository: page };
  writeJson(join(plugin, '.claude-plugin'), 'plugin.json', { name, version, ...links, ...manifest });
  cpSync(join(ROOT, 'plugin', 'icon.png'), join(plugin, '.claude-plugin', 'icon.png'));
  writeFileSync(
    join(plugin, 'README.md'),
    nameRepository(readText('plugin/README.md'), page.replace(/^.*github\.com\//, '')),
  );
  writeJson(join(target, '.claude-plugin'), 'marketplace.json', JSON.parse(readText('plugin/marketplace.json')));
}

function readText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

function writeJson(folder: string, name: string, value: object): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), `${JSON.stringify(value, null, 2)}\n`);
}
