import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod/mini';
import { saveOwnFile } from '../shared/atomic-write.js';
import { attempt } from '../shared/attempt.js';
import { readJsonFile } from '../shared/read-file.js';
import { optional } from '../shared/schema.js';

/** What is remembered of a server that did not work, in ms since 1970. It is forgotten as soon as the server accepts something. */
const Outage = z.object({
  since: z.number(),
  /** Until when it is assumed to go on. */
  until: z.number(),
  /** How often it was found to go on once that time was over. */
  failures: z.number(),
});
type Outage = z.infer<typeof Outage>;

const Server = z.object({
  /** Whether it has acknowledged anything: then its address and keys are right. */
  acknowledged: optional(z.boolean()),
  /** Whether its keys may write and not read, as a command has found. */
  ingestionOnly: optional(z.boolean()),
  outage: optional(Outage),
});
type Server = z.infer<typeof Server>;

const FIRST_MS = 2 * 60_000;
const LONGEST_MS = 16 * 60_000;

export function serversFolder(stateFolder: string): string {
  return join(stateFolder, 'cc-langfuse_servers');
}

// A file for each destination: runs for different ones never overwrite each other's.
function serverPath(stateFolder: string, destination: string): string {
  return join(serversFolder(stateFolder), `${destination}.json`);
}

function readServer(stateFolder: string, destination: string): Server {
  return Server.safeParse(readJsonFile(serverPath(stateFolder, destination))).data ?? {};
}

/** It only saves time: if it cannot be written, the next run finds out for itself. */
function saveServer(stateFolder: string, destination: string, server: Server): void {
  attempt(() => saveOwnFile(serverPath(stateFolder, destination), `${JSON.stringify(server)}\n`));
}

/** Whether a destination has ever acknowledged anything. In doubt it has: then it does not count as a mistake. */
export function hasAcknowledged(stateFolder: string, destination: string): boolean {
  const server = readServer(stateFolder, destination);
  if (server.acknowledged !== undefined) return server.acknowledged;
  return server.outage === undefined && existsSync(serverPath(stateFolder, destination));
}

export function markAcknowledged(stateFolder: string, destination: string): void {
  const server = readServer(stateFolder, destination);
  if (!server.acknowledged) saveServer(stateFolder, destination, { ...server, acknowledged: true });
}

export function isForIngestion(stateFolder: string, destination: string): boolean {
  return readServer(stateFolder, destination).ingestionOnly ?? false;
}

export function saveIngestionOnly(stateFolder: string, destination: string, ingestionOnly: boolean): void {
  const server = readServer(stateFolder, destination);
  if ((server.ingestionOnly ?? false) === ingestionOnly) return;
  const acknowledged = hasAcknowledged(stateFolder, destination);
  saveServer(stateFolder, destination, { ...server, acknowledged, ingestionOnly });
}

/** Returns what is remembered of a destination. A file that cannot be read counts for nothing. */
export function readOutage(stateFolder: string, destination: string): Outage | undefined {
  return readServer(stateFolder, destination).outage;
}

/** Whether an outage is assumed to go on. */
export function isOngoing(outage: Outage | undefined, now: number): boolean {
  // The clock may have been set back since.
  return outage !== undefined && now < outage.until && outage.until - now <= LONGEST_MS;
}

/** Remembers an outage for some minutes, and twice as long each time the server still does not work after them. */
export function rememberOutage(stateFolder: string, destination: string, now: number): void {
  const server = readServer(stateFolder, destination);
  const { outage: known } = server;
  if (isOngoing(known, now)) return;
  const failures = (known?.failures ?? 0) + 1;
  const until = now + Math.min(FIRST_MS * 2 ** (failures - 1), LONGEST_MS);
  const outage = { since: Math.min(known?.since ?? now, now), until, failures };
  saveServer(stateFolder, destination, { acknowledged: false, ...server, outage });
}

export function forgetOutage(stateFolder: string, destination: string): void {
  const { outage, ...server } = readServer(stateFolder, destination);
  if (outage) saveServer(stateFolder, destination, server);
}
