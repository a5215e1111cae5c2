import { readFileSync } from 'node:fs';

/** The fields of JSON that the page about costs names. */
export function fieldsOfJson(): string[] {
  const docs = readFileSync(new URL('../../docs/cost.md', import.meta.url), 'utf8');
  const [, section = ''] = docs.split('## What `--json` says');
  return Array.from(section.split('\n## ')[0]?.matchAll(/`(\w+)(?:\[\])?`/g) ?? [], ([, name = '']) => name);
}
