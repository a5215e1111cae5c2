import { realpathSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import picomatch from 'picomatch';
import { attempt } from '../shared/attempt.js';
import { parseFolderList, resolveHome } from './folder-list.js';

/** Returns the first path or glob of a list that matches a folder or a folder above it, wherever symbolic links lead. */
export function findExcluding(folder: string, list: string): string | undefined {
  const folders = listForms(folder).flatMap(withFoldersAbove).map(toComparable);
  return parseFolderList(list)?.find((item) => {
    const path = resolveHome(item);
    const { base, glob, isGlob } = picomatch.scan(toSlashes(path));
    // A name with parentheses or brackets looks like a glob.
    const names = new Set(listForms(path).map(toComparable));
    const globs = isGlob ? listForms(base).map((form) => joinGlob(form, glob)) : [];
    const matches = globs.map((each) => picomatch(each.normalize(), { dot: true, nocase: IGNORES_CASE }));
    return folders.some((each) => names.has(each) || matches.some((isMatch) => isMatch(each)));
  });
}

const IGNORES_CASE = process.platform === 'darwin' || process.platform === 'win32';

/** Systems that ignore case, or how a letter is composed, would open the same folder. */
function toComparable(path: string): string {
  // Only the path of a drive or a share ends in a separator.
  const text = toSlashes(path)
    .normalize()
    .replace(/(?<=.)\/+$/, '');
  return IGNORES_CASE ? text.toLowerCase() : text;
}

function toSlashes(path: string): string {
  return process.platform === 'win32' ? path.replaceAll('\\', '/') : path;
}

/** The folder without `.` and `..`, and where it really is. */
function listForms(folder: string): string[] {
  if (folder === '') return [''];
  const whole = normalize(folder);
  // Without its separator, the path of a drive is the folder that the process has there.
  const named = dirname(whole) === whole ? whole : whole.replace(/[\\/]+$/, '');
  return [...new Set([named, findRealPath(named), findRealPath(folder)])];
}

/** Of a folder that does not exist, the folders above it may be links. */
function findRealPath(folder: string): string {
  const real = attempt(() => realpathSync.native(folder));
  const above = dirname(folder);
  return real ?? (above === folder ? folder : join(findRealPath(above), basename(folder)));
}

function withFoldersAbove(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...withFoldersAbove(above)];
}

/** Of a glob, only what comes before its first wildcard is a folder. */
function joinGlob(base: string, glob: string): string {
  if (base === '') return glob;
  return `${toSlashes(base)
    .replace(/[\\$^*+?()[\]{}|!@]/g, '\\$&')
    .replace(/\/$/, '')}/${glob.replace(/\/+$/, '')}`;
}
