import { readFileSync, statSync } from 'node:fs';

/** The settings of a git configuration file by their names, `user.email` or `remote.origin.url`; the last of a name stands. */
export type GitConfig = ReadonlyMap<string, string>;

const NOTHING: GitConfig = new Map();
const LARGEST_BYTES = 1 << 20;
const SECTION = /^\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]/;
const SETTING = /^\s*([a-z][\w-]*)\s*=(.*)$/i;
const UP_TO_COMMENT = /^(?:"(?:[^"\\]|\\.)*"|\\.|[^"\\#;])*/;
const ESCAPED: { readonly [letter: string]: string } = { n: '\n', t: '\t', b: '\b' };

/** What a file says; nothing where it cannot be read. Files that it includes are not followed. */
export function readGitConfig(path: string): GitConfig {
  return parseGitConfig(readSmallFile(path) ?? '');
}

/** The text of a file; one in its place that is no regular file might hang, and a large one is no git file of interest. */
export function readSmallFile(path: string): string | undefined {
  try {
    const status = statSync(path);
    return status.isFile() && status.size <= LARGEST_BYTES ? readFileSync(path, 'utf8') : undefined;
  } catch {
    return undefined;
  }
}

function parseGitConfig(text: string): GitConfig {
  if (text === '') return NOTHING;
  const settings = new Map<string, string>();
  let section = '';
  for (const line of text.replace(/\\\r?\n/g, '').split(/\r?\n/)) {
    const [head = '', name, subsection] = SECTION.exec(line) ?? [];
    if (name !== undefined)
      section = `${name.toLowerCase()}.${subsection === undefined ? '' : `${plain(subsection)}.`}`;
    const [, key, rest = ''] = SETTING.exec(line.slice(head.length)) ?? [];
    const [value = ''] = UP_TO_COMMENT.exec(rest) ?? [];
    if (key !== undefined) settings.set(`${section}${key.toLowerCase()}`, plain(value).trim());
  }
  return settings;
}

/** Without quotes and escapes. */
function plain(text: string): string {
  return text
    .trim()
    .replace(/\\(.)|"/g, (_, letter?: string) => (letter === undefined ? '' : (ESCAPED[letter] ?? letter)));
}
