import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRecord, parseJson } from '../../shared/json.js';

const FILE_NAME = 'cc-langfuse_no_otlp';
const REMEMBERED_MS = 24 * 60 * 60_000;

/**
 * Servers that were found without an OTLP endpoint: for a day they are not asked for it again, then one may have been
 * upgraded. It only saves requests: where it cannot be kept, or read, each run finds out for itself.
 */
export class OlderServers {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  has(destination: string): boolean {
    return this.#known().has(destination);
  }

  keep(destination: string): void {
    this.#write(this.#known().set(destination, Date.now()));
  }

  forget(destination: string): void {
    const known = this.#known();
    if (known.delete(destination)) this.#write(known);
  }

  /** When each was found to be one, within the last day. */
  #known(): Map<string, number> {
    const now = Date.now();
    const isRecent = (entry: [string, unknown]): entry is [string, number] =>
      typeof entry[1] === 'number' && entry[1] <= now && now - entry[1] < REMEMBERED_MS;
    const kept = parseJson(this.#read());
    return new Map(Object.entries(isRecord(kept) ? kept : {}).filter(isRecent));
  }

  #read(): string {
    try {
      return readFileSync(this.#path, 'utf8');
    } catch {
      return '';
    }
  }

  #write(known: ReadonlyMap<string, number>): void {
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      writeFileSync(this.#path, `${JSON.stringify(Object.fromEntries(known))}\n`, { mode: 0o600 });
    } catch {
      // the next run asks again
    }
  }

  get #path(): string {
    return join(this.#folder, FILE_NAME);
  }
}
