import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LangfuseConfig } from '../config/settings.js';
import { attempt } from '../shared/attempt.js';
import { isRecord } from '../shared/json.js';
import { readJsonFile } from '../shared/read-file.js';
import type { Limits, Outgoing } from './destination.js';
import { CORRECT_URL, langfuseId, langfuseOtlp } from './endpoint.js';
import type { Http } from './http/client.js';
import { postSpans } from './otlp/otlp-transport.js';
import { isAccepted, type Reply, type Transport } from './transport.js';

const NO_ENDPOINT = `the server has neither an OTLP endpoint nor an ingestion API (404), so it is not Langfuse; ${CORRECT_URL}`;

/** Sends to a Langfuse of any version: by OTLP, or by the ingestion API if the server has no OTLP endpoint or the user wants it. */
export class LangfuseTransport implements Transport {
  readonly #config: LangfuseConfig;
  readonly #http: Http;
  readonly #stateFolder: string;
  /** The protocol that the server is known to accept, or that the user has chosen. */
  #protocol: 'otlp' | 'ingestion' | undefined;

  constructor(config: LangfuseConfig, http: Http, stateFolder: string) {
    this.#config = config;
    this.#http = http;
    this.#stateFolder = stateFolder;
    if (config.transport !== 'auto') this.#protocol = config.transport;
    else if (readServersWithoutOtlp(stateFolder).has(langfuseId(config))) this.#protocol = 'ingestion';
  }

  /** Once the server has accepted OTLP, observations are no longer kept to be encoded differently. */
  get needsObservations(): boolean {
    return this.#protocol !== 'otlp';
  }

  async post(outgoing: readonly Outgoing[], limits: Limits): Promise<Reply> {
    if (this.#protocol === 'ingestion') {
      const reply = await this.#postIngestion(outgoing, limits);
      const isRefused = reply.status === 404 || reply.isClosed;
      if (!isRefused || this.#config.transport === 'ingestion') return reply;
      // The server has been upgraded.
      this.#protocol = undefined;
      rememberServer(this.#stateFolder, this.#config, { hasOtlp: true });
      return this.#postOtlp(outgoing, limits);
    }
    const reply = await this.#postOtlp(outgoing, limits);
    if (reply.status !== 404 || this.#protocol === 'otlp') return reply;
    const fallback = await this.#postIngestion(outgoing, limits);
    if (isAccepted(fallback) && this.#protocol === undefined) {
      this.#protocol = 'ingestion';
      rememberServer(this.#stateFolder, this.#config, { hasOtlp: false });
    }
    return fallback.status === 404 ? { ...fallback, problem: NO_ENDPOINT } : fallback;
  }

  async #postOtlp(outgoing: readonly Outgoing[], limits: Limits): Promise<Reply> {
    const reply = await postSpans(outgoing, langfuseOtlp(this.#config), this.#http, limits);
    if (isAccepted(reply)) this.#protocol = 'otlp';
    return reply;
  }

  async #postIngestion(outgoing: readonly Outgoing[], limits: Limits): Promise<Reply> {
    const { postEvents } = await import('./ingestion/ingestion-transport.lazy.js');
    return postEvents(outgoing, this.#config, this.#http, limits);
  }
}

const FILE_NAME = 'cc-langfuse_no_otlp';
/** After a day a server is asked for an OTLP endpoint again: it may have been upgraded. */
const REMEMBERED_MS = 24 * 60 * 60_000;

/** The fingerprints of servers that were found without an OTLP endpoint, and when. */
function readServersWithoutOtlp(stateFolder: string): Map<string, number> {
  const now = Date.now();
  const isRecent = (entry: [string, unknown]): entry is [string, number] =>
    typeof entry[1] === 'number' && entry[1] <= now && now - entry[1] < REMEMBERED_MS;
  const content = readJsonFile(join(stateFolder, FILE_NAME));
  return new Map(Object.entries(isRecord(content) ? content : {}).filter(isRecent));
}

/** Remembering only saves requests: if the file cannot be written, the next run finds out for itself. */
function rememberServer(stateFolder: string, config: LangfuseConfig, { hasOtlp }: { hasOtlp: boolean }): void {
  const servers = readServersWithoutOtlp(stateFolder);
  if (hasOtlp) servers.delete(langfuseId(config));
  else servers.set(langfuseId(config), Date.now());
  attempt(() => {
    mkdirSync(stateFolder, { recursive: true, mode: 0o700 });
    const text = `${JSON.stringify(Object.fromEntries(servers))}\n`;
    writeFileSync(join(stateFolder, FILE_NAME), text, { mode: 0o600 });
  });
}
