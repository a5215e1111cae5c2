import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as z from 'zod/mini';
import { writeFileAtomically } from '../shared/atomic-write.js';
import { attempt } from '../shared/attempt.js';
import { parseJson } from '../shared/json.js';

/** What is remembered of a server that did not work, in ms since 1970. It is forgotten as soon as the server accepts something. */
const Outage = z.object({
  since: z.number(),
  /** Until when it is assumed to go on. */
  until: z.number(),
  /** How often it was found to go on once that time was over. */
  failures: z.number(),
});
type Outage = z.infer<typeof Outage>;

const FIRST_MS = 2 * 60_000;
const LONGEST_MS = 16 * 60_000;

// A file for each destination: runs for different ones never overwrite each other's.
function outagePath(stateFolder: string, destination: string): string {
  return join(stateFolder, 'cc-langfuse_outages', destination);
}

/** Returns what is remembered of a destination. A file that cannot be read counts for nothing. */
export function readOutage(stateFolder: string, destination: string): Outage | undefined {
  const text = attempt(() => readFileSync(outagePath(stateFolder, destination), 'utf8'));
  const outage = text === undefined ? undefined : Outage.safeParse(parseJson(text));
  return outage?.success ? outage.data : undefined;
}

/** Whether an outage is assumed to go on. */
export function isOngoing(outage: Outage | undefined, now: number): boolean {
  // The clock may have been set back since.
  return outage !== undefined && now < outage.until && outage.until - now <= LONGEST_MS;
}

/** Remembers that the server did not work: for some minutes, and twice as long each time that it is found so again after them. */
export function rememberOutage(stateFolder: string, destination: string, now: number): void {
  const known = readOutage(stateFolder, destination);
  if (isOngoing(known, now)) return;
  const failures = (known?.failures ?? 0) + 1;
  const until = now + Math.min(FIRST_MS * 2 ** (failures - 1), LONGEST_MS);
  const outage: Outage = { since: Math.min(known?.since ?? now, now), until, failures };
  const path = outagePath(stateFolder, destination);
  // It only saves time: if it cannot be written, the next run finds out for itself.
  attempt(() => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileAtomically(path, `${JSON.stringify(outage)}\n`, 0o600);
  });
}

export function forgetOutage(stateFolder: string, destination: string): void {
  attempt(() => rmSync(outagePath(stateFolder, destination), { force: true }));
}
