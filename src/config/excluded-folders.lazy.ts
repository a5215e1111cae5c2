import { homedir } from 'node:os';
import { dirname } from 'node:path';
import picomatch from 'picomatch';

/** Returns the first of comma-separated paths or globs that matches a folder or a folder above it. */
export function findExcluding(folder: string, globs: string): string | undefined {
  const folders = [folder];
  for (let above = dirname(folder); above !== folders.at(-1); above = dirname(above)) folders.push(above);
  const all = globs.split(',').map((glob) => glob.trim().replace(/(?<=.)\/+$/, ''));
  return all.find((glob) => {
    const matches = picomatch(glob.replace(/^~(?=\/|$)/, homedir()), { dot: true });
    return glob !== '' && folders.some((each) => matches(each));
  });
}
