import { homedir } from 'node:os';
import { isRecord, parseJson } from '../shared/json.js';
import { ABSOLUTE_PATH } from './platform.js';

export const NO_FOLDER = 'expected absolute paths, or globs that begin with / or **';

/** Parses a comma-separated list, or a JSON array for names with commas; undefined if it is an array of something else. */
export function parseFolderList(value: string): string[] | undefined {
  const parsed = parseJson(value);
  if (isRecord(parsed)) return undefined;
  const items = Array.isArray(parsed) ? parsed : value.split(',');
  if (!items.every((item) => typeof item === 'string')) return undefined;
  return items.map((item) => withoutQuotes(item.trim())).filter((item) => item !== '');
}

/** Returns the first item that cannot be a folder or a glob of folders, which are always compared from the root. */
export function findBadFolder(value: string): string | undefined {
  const items = parseFolderList(value);
  return items ? items.find((item) => !isFolder(resolveHome(item))) : value;
}

/** A glob of any depth, such as `**` + `/customer-*`, fits absolute paths; `customer-*` would fit none. */
function isFolder(item: string): boolean {
  return ABSOLUTE_PATH.test(item) || /^\*\*(?:\/|$)/.test(item);
}

export function resolveHome(item: string): string {
  return item.replace(/^(?:~|\$HOME|\$\{HOME\})(?=\/|$)/, () => homedir());
}

function withoutQuotes(item: string): string {
  return /^(["'])(.*)\1$/.exec(item)?.[2]?.trim() ?? item;
}
