import { realpathSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { UsageError } from '../../cli/command-line.js';
import { attempt } from '../../shared/attempt.js';

/** A copy in the cache of npx, pnpm dlx, yarn dlx or bunx, which may delete it at any time. */
const CACHED_COPY = /[/\\](?:_npx|dlx(?:-[^/\\]*)?|bunx-[^/\\]*)[/\\]/;

/**
 * Builds the command that starts this very program without the PATH of a shell, which desktop apps do not have. A comment
 * names cc-langfuse if the path does not. With `exec`, because Claude Code takes longer to stop a program behind a shell.
 */
export function buildAbsoluteCommand(program: string, { PATH = '' }: NodeJS.ProcessEnv): string {
  if (CACHED_COPY.test(program))
    throw new UsageError(
      "this copy is in a package runner's cache, which may delete it; npm install --global it, then run cc-langfuse install",
    );
  const node = findLastingPath(process.execPath, PATH);
  const mark = /\bcc-langfuse\b/.test(program) ? '' : ' # cc-langfuse';
  return `exec ${quote(node)} ${quote(program)} hook${mark}`;
}

/**
 * Finds a link to Node on the PATH. Package managers install each version in a folder of its own, which an upgrade removes,
 * and link to the current one from elsewhere. Links that are made for one shell or one project do not count.
 */
export function findLastingPath(executable: string, searchPath: string): string {
  const name = process.platform === 'win32' ? 'node.exe' : 'node';
  const candidates = searchPath
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && !/fnm_multishells|node_modules/.test(folder))
    .map((folder) => join(folder, name));
  const real = realpathSync(executable);
  return candidates.find((candidate) => attempt(() => realpathSync(candidate)) === real) ?? executable;
}

/** Quotes for a POSIX shell. On Windows Claude Code starts hooks with Git Bash, which would take backslashes for escapes. */
function quote(path: string): string {
  const escaped = process.platform === 'win32' ? path.replaceAll('\\', '/') : path.replace(/["$`\\]/g, '\\$&');
  return `"${escaped}"`;
}
