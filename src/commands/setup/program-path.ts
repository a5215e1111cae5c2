import { realpathSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { UsageError } from '../../cli/command-line.js';

/** A copy that a package runner keeps for as long as it likes: npx, pnpm dlx, yarn dlx, bunx. */
const PASSING_COPY = /[/\\](?:_npx|dlx(?:-[^/\\]*)?|bunx-[^/\\]*)[/\\]/;

/**
 * What starts this very program without a search path, which desktop apps lack. Where its path does not tell whose it is, a
 * comment does. With `exec`, since Claude Code takes longer to end what stands behind a shell.
 */
export function absoluteCommand(program: string, { PATH = '' }: NodeJS.ProcessEnv): string {
  if (PASSING_COPY.test(program))
    throw new UsageError(
      'this copy is in the cache of a package runner, which clears it; npm install --global it, and run cc-langfuse install',
    );
  const node = lastingPath(process.execPath, PATH);
  const mark = /\bcc-langfuse\b/.test(program) ? '' : ' # cc-langfuse';
  return `exec ${quoted(node)} ${quoted(program)} hook${mark}`;
}

/**
 * Where an executable is found on the search path, if that is a link to it: package managers put versions into folders of their
 * own, which an upgrade removes, and a link to the one that counts elsewhere. Links that are made for one shell are none.
 */
export function lastingPath(executable: string, searchPath: string): string {
  const name = process.platform === 'win32' ? 'node.exe' : 'node';
  const candidates = searchPath
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && !/fnm_multishells|node_modules/.test(folder))
    .map((folder) => join(folder, name));
  const real = realPath(executable);
  return candidates.find((candidate) => realPath(candidate) === real) ?? executable;
}

/** For a POSIX shell; Git Bash, by which Claude Code starts hooks on Windows, takes backslashes for escapes. */
function quoted(path: string): string {
  const escaped = process.platform === 'win32' ? path.replaceAll('\\', '/') : path.replace(/["$`\\]/g, '\\$&');
  return `"${escaped}"`;
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
