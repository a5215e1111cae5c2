import { parseJson } from '../shared/json.js';
import { WHOLE_NUMBER } from '../shared/schema.js';
import { parseFolderList } from './folder-list.js';
import { isFalse } from './setting-formats.js';

// How two values of a setting that restricts what leaves the machine are joined.

/** Chooses the stricter of two words. A word that is not in the list is the strictest: it is an error, and must stay one. */
export const strictestOf =
  (...strictestFirst: readonly string[]) =>
  (a: string, b: string): string => {
    const [first, second] = [a, b].map((value) => strictestFirst.indexOf(value.trim().toLowerCase()));
    return (first ?? 0) <= (second ?? 0) ? a : b;
  };

export function unlessBothFalse(a: string, b: string): string {
  return isFalse(a) ? b : a;
}

export function smallest(a: string, b: string): string {
  const isValid = (value: string) => WHOLE_NUMBER.test(value.trim());
  return isValid(b) && (!isValid(a) || Number(b) < Number(a)) ? b : a;
}

/** A value that is not an array stays alone, so that it is reported. */
export function joinJsonArrays(a: string, b: string): string {
  const [first, second] = [parseJson(a), parseJson(b)];
  if (!Array.isArray(first)) return a;
  if (!Array.isArray(second)) return b;
  const all = [...first, ...second].map((item) => JSON.stringify(item));
  return `[${[...new Set(all)].join(',')}]`;
}

/** A list that cannot be read stays alone, so that it is reported. */
export function joinFolders(a: string, b: string): string {
  const [first, second] = [parseFolderList(a), parseFolderList(b)];
  if (!first) return a;
  if (!second) return b;
  const all = [...new Set([...first, ...second])];
  return all.some((folder) => folder.includes(',')) ? JSON.stringify(all) : all.join(',');
}
