import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type LangfuseServer, PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';

const EXAMPLE = new URL('../../hooks.example.json', import.meta.url).pathname;
const PROGRAM = new URL('../../dist/cli.cjs', import.meta.url).pathname;

interface Settings {
  readonly hooks?: { readonly [event: string]: readonly unknown[] };
  readonly env?: { readonly [name: string]: string };
}

/** Registers the built hook in a home's settings, beside the hooks that are there. */
export function register(home: string, { url }: LangfuseServer): void {
  const path = join(home, '.claude', 'settings.json');
  const settings = JSON.parse(readFileSync(path, 'utf8')) as Settings;
  const command = `exec "${process.execPath}" "${PROGRAM}" hook`;
  const example = readFileSync(EXAMPLE, 'utf8').replaceAll(
    'exec cc-langfuse hook',
    JSON.stringify(command).slice(1, -1),
  );
  const ours = JSON.parse(example) as Required<Settings>;
  const events = new Set([...Object.keys(ours.hooks), ...Object.keys(settings.hooks ?? {})]);
  const hooks = [...events].map((event) => [event, [...(settings.hooks?.[event] ?? []), ...(ours.hooks[event] ?? [])]]);
  const env = { LANGFUSE_PUBLIC_KEY: PUBLIC_KEY, LANGFUSE_SECRET_KEY: SECRET_KEY, LANGFUSE_BASE_URL: url };
  const merged = { ...settings, hooks: Object.fromEntries(hooks), env: { ...ours.env, ...env } };
  writeFileSync(path, JSON.stringify(merged));
}
