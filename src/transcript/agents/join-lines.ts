import type { Line } from '../file/line.js';

/**
 * Joins the lines of an agent's files in the order of their times, and numbers them in a row: a call and its result can be in
 * different files. Within a file, the order stays as it is.
 */
export function* joinLines(files: readonly Iterable<Line>[]): Generator<Line, void, undefined> {
  const [only] = files;
  if (only && files.length === 1) return yield* only;
  const open = files.map((lines) => ({ groups: groupByTime(lines), number: 0 }));
  const waiting = open.map(({ groups }) => groups.next().value);
  try {
    for (;;) {
      const place = findEarliest(waiting);
      const file = open[place];
      if (!file) return;
      const others = open.reduce((sum, { number }) => sum + number, 0) - file.number;
      for (const line of waiting[place]?.lines ?? []) {
        file.number = line.location.number;
        yield { ...line, location: { ...line.location, number: others + file.number } };
      }
      waiting[place] = file.groups.next().value;
    }
  } finally {
    for (const { groups } of open) groups.return(undefined);
  }
}

interface TimedLines {
  readonly at: number;
  readonly lines: readonly Line[];
}

/** Lines without a time belong to the next one that has one. A line that is older than one before it does not come earlier. */
function* groupByTime(lines: Iterable<Line>): Generator<TimedLines, undefined, undefined> {
  let group: Line[] = [];
  let at = 0;
  for (const line of lines) {
    group.push(line);
    if (!('at' in line) || line.at === undefined) continue;
    at = Math.max(at, line.at);
    yield { at, lines: group };
    group = [];
  }
  if (group.length > 0) yield { at, lines: group };
  return undefined;
}

/** Returns -1 if nothing is waiting. */
function findEarliest(waiting: readonly (TimedLines | undefined)[]): number {
  let earliest = -1;
  for (const [place, group] of waiting.entries()) {
    const best = waiting[earliest];
    if (group && (!best || group.at < best.at)) earliest = place;
  }
  return earliest;
}
