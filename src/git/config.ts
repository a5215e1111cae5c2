import { readFileSync, statSync } from 'node:fs';

/** A git configuration's values by name (`user.email`, `remote.origin.url`); of a repeated name, the last value. */
export type GitConfig = ReadonlyMap<string, string>;

const MAX_BYTES = 1 << 20;
const SECTION = /^\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]/;
const SETTING = /^\s*([a-z][\w-]*)\s*=(.*)$/i;
const UP_TO_COMMENT = /^(?:"(?:[^"\\]|\\.)*"|\\.|[^"\\#;])*/;
const ESCAPED: { readonly [letter: string]: string } = { n: '\n', t: '\t', b: '\b' };

/** Returns the values in a file; none if it cannot be read. Included files are not followed. */
export function readGitConfig(path: string): GitConfig {
  const settings = new Map<string, string>();
  let section = '';
  for (const line of (readSmallFile(path) ?? '').replace(/\\\r?\n/g, '').split(/\r?\n/)) {
    const [head = '', name, subsection] = SECTION.exec(line) ?? [];
    if (name !== undefined)
      section = `${name.toLowerCase()}.${subsection === undefined ? '' : `${unquote(subsection)}.`}`;
    const [, key, rest = ''] = SETTING.exec(line.slice(head.length)) ?? [];
    const [value = ''] = UP_TO_COMMENT.exec(rest) ?? [];
    if (key !== undefined) settings.set(`${section}${key.toLowerCase()}`, unquote(value).trim());
  }
  return settings;
}

/** Returns a file's text; undefined if it is no regular file (a FIFO would block) or too large to be one of git's. */
export function readSmallFile(path: string): string | undefined {
  try {
    const status = statSync(path);
    return status.isFile() && status.size <= MAX_BYTES ? readFileSync(path, 'utf8') : undefined;
  } catch {
    return undefined;
  }
}

/** Resolves quotes and escapes. */
function unquote(text: string): string {
  return text
    .trim()
    .replace(/\\(.)|"/g, (_, letter?: string) => (letter === undefined ? '' : (ESCAPED[letter] ?? letter)));
}
