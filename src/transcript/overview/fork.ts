import { readLines } from '../file/lines.js';

/** The uuids of the user lines in a part of a transcript: a fork takes them over with the lines. */
export function readUserUuids(path: string, afterLine: number, upToLine: number): Set<string> {
  const uuids = new Set<string>();
  for (const line of readLines(path)) {
    if (line.place.number > upToLine) break;
    if (line.place.number > afterLine && line.kind === 'user' && line.fields.uuid !== undefined)
      uuids.add(line.fields.uuid);
  }
  return uuids;
}
