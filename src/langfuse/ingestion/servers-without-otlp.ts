import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRecord, parseJson } from '../../shared/json.js';

const FILE_NAME = 'cc-langfuse_no_otlp';
const REMEMBERED_MS = 24 * 60 * 60_000;

/**
 * A file that remembers which servers have no OTLP endpoint. They are not asked for one again for a day; after that they
 * may have been upgraded. This only saves requests: if the file cannot be read or written, each run finds out for itself.
 */
export class ServersWithoutOtlp {
  readonly #folder: string;

  constructor(stateFolder: string) {
    this.#folder = stateFolder;
  }

  has(fingerprint: string): boolean {
    return this.#read().has(fingerprint);
  }

  add(fingerprint: string): void {
    this.#write(this.#read().set(fingerprint, Date.now()));
  }

  delete(fingerprint: string): void {
    const servers = this.#read();
    if (servers.delete(fingerprint)) this.#write(servers);
  }

  /** When each was found to have none, if that was within the last day. */
  #read(): Map<string, number> {
    const now = Date.now();
    const isRecent = (entry: [string, unknown]): entry is [string, number] =>
      typeof entry[1] === 'number' && entry[1] <= now && now - entry[1] < REMEMBERED_MS;
    try {
      const content = parseJson(readFileSync(join(this.#folder, FILE_NAME), 'utf8'));
      return new Map(Object.entries(isRecord(content) ? content : {}).filter(isRecent));
    } catch {
      return new Map();
    }
  }

  #write(servers: ReadonlyMap<string, number>): void {
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      const text = `${JSON.stringify(Object.fromEntries(servers))}\n`;
      writeFileSync(join(this.#folder, FILE_NAME), text, { mode: 0o600 });
    } catch {
      // the next run asks again
    }
  }
}
