import type { LangfuseConfig } from '../../config/settings.js';
import type { Observation } from '../../observations/model.js';
import type { Limits, Outgoing } from '../destination.js';
import { fingerprint } from '../endpoint.js';
import type { Http } from '../http/client.js';
import { OtlpTransport } from '../otlp/otlp-transport.js';
import { INGESTION_CLOSED, type Reply, type Transport } from '../transport.js';
import { readServersWithoutOtlp, rememberServer } from './servers-without-otlp.js';

const NO_ENDPOINT = 'the server at LANGFUSE_BASE_URL has neither an OTLP endpoint nor an ingestion API (404)';

/** Sends to a Langfuse of any version: by OTLP, or by the ingestion API if the server has no OTLP endpoint. */
export class AutoTransport implements Transport {
  readonly #config: LangfuseConfig;
  readonly #http: Http;
  readonly #fingerprint: string;
  readonly #stateFolder: string;
  readonly #otlp: Transport;
  #ingestion: Promise<Transport> | undefined;
  /** The protocol that the server is known to accept. */
  #accepts: 'otlp' | 'ingestion' | undefined;

  constructor(config: LangfuseConfig, http: Http, stateFolder: string) {
    this.#config = config;
    this.#http = http;
    this.#fingerprint = fingerprint(config);
    this.#stateFolder = stateFolder;
    this.#otlp = new OtlpTransport(config, http);
    this.#accepts = readServersWithoutOtlp(stateFolder).has(this.#fingerprint) ? 'ingestion' : undefined;
  }

  /** Once the server has accepted OTLP, observations are no longer kept to be encoded differently. */
  encode(observation: Observation): Outgoing {
    const outgoing = this.#otlp.encode(observation);
    return this.#accepts === 'otlp' ? outgoing : { ...outgoing, observation };
  }

  async post(outgoing: readonly Outgoing[], limits: Limits): Promise<Reply> {
    if (this.#accepts === 'ingestion') {
      const reply = await this.#postIngestion(outgoing, limits);
      if (reply.status !== 404 && reply.problem !== INGESTION_CLOSED) return reply;
      // The server has been upgraded.
      this.#accepts = undefined;
      rememberServer(this.#stateFolder, this.#fingerprint, { hasOtlp: true });
      return this.#postOtlp(outgoing, limits);
    }
    const reply = await this.#postOtlp(outgoing, limits);
    if (reply.status !== 404 || this.#accepts === 'otlp') return reply;
    const fallback = await this.#postIngestion(outgoing, limits);
    if (isAccepted(fallback) && this.#accepts === undefined) {
      this.#accepts = 'ingestion';
      rememberServer(this.#stateFolder, this.#fingerprint, { hasOtlp: false });
    }
    return fallback.status === 404 ? { ...fallback, problem: NO_ENDPOINT } : fallback;
  }

  async #postOtlp(outgoing: readonly Outgoing[], limits: Limits): Promise<Reply> {
    const reply = await this.#otlp.post(outgoing, limits);
    if (isAccepted(reply)) this.#accepts = 'otlp';
    return reply;
  }

  async #postIngestion(outgoing: readonly Outgoing[], limits: Limits): Promise<Reply> {
    this.#ingestion ??= import('./ingestion-transport.lazy.js').then(
      ({ IngestionTransport }) => new IngestionTransport(this.#config, this.#http),
    );
    return (await this.#ingestion).post(outgoing, limits);
  }
}

function isAccepted({ status, problem }: Reply): boolean {
  return status < 300 && problem === undefined;
}
