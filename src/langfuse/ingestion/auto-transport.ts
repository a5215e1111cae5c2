import type { LangfuseConfig } from '../../config/settings.js';
import type { Observation } from '../../observations/model.js';
import { asSpan, OtlpTransport } from '../otlp/otlp-transport.js';
import { fingerprint } from '../receiver.js';
import { INGESTION_CLOSED, type Outgoing, type Reply, type Transport } from '../transport.js';
import { OlderServers } from './older-servers.js';

const NOTHING_THERE = 'what LANGFUSE_BASE_URL names has neither an OTLP endpoint nor an ingestion API (404)';

/** Brings observations to a Langfuse of any age: by OpenTelemetry, and where there is no such door, by the older one. */
export class AutoTransport implements Transport {
  readonly #receiver: LangfuseConfig;
  readonly #destination: string;
  readonly #olderServers: OlderServers;
  readonly #otlp: Transport;
  #ingestion: Promise<Transport> | undefined;
  /** What it was found to be. What is sent to a newer one will not have to be written otherwise. */
  #age: 'older' | 'newer' | undefined;

  /** `folder` is where it is remembered which servers are older. */
  constructor(receiver: LangfuseConfig, folder: string) {
    this.#receiver = receiver;
    this.#destination = fingerprint(receiver);
    this.#olderServers = new OlderServers(folder);
    this.#otlp = new OtlpTransport(receiver);
    this.#age = this.#olderServers.has(this.#destination) ? 'older' : undefined;
  }

  encode(observation: Observation): Outgoing {
    const outgoing = asSpan(observation);
    return this.#age === 'newer' ? outgoing : { ...outgoing, observation };
  }

  async post(outgoing: readonly Outgoing[], timeoutMs: number): Promise<Reply> {
    const deadline = Date.now() + timeoutMs;
    const left = () => Math.max(1, deadline - Date.now());
    if (this.#age === 'older') {
      const reply = await this.#postOlder(outgoing, left());
      if (!isShut(reply)) return reply;
      // It has been upgraded since.
      this.#age = undefined;
      this.#olderServers.forget(this.#destination);
      return this.#postNewer(outgoing, left());
    }
    const reply = await this.#postNewer(outgoing, left());
    if (reply.status !== 404 || this.#age === 'newer') return reply;
    const older = await this.#postOlder(outgoing, left());
    if (isTaken(older) && this.#age === undefined) {
      this.#age = 'older';
      this.#olderServers.keep(this.#destination);
    }
    return older.status === 404 ? { ...older, problem: NOTHING_THERE } : older;
  }

  async close(): Promise<void> {
    const ingestion = await this.#ingestion?.catch(() => undefined);
    await Promise.all([this.#otlp.close(), ingestion?.close()]);
  }

  async #postNewer(outgoing: readonly Outgoing[], timeoutMs: number): Promise<Reply> {
    const reply = await this.#otlp.post(outgoing, timeoutMs);
    if (isTaken(reply)) this.#age = 'newer';
    return reply;
  }

  async #postOlder(outgoing: readonly Outgoing[], timeoutMs: number): Promise<Reply> {
    this.#ingestion ??= import('./ingestion-transport.lazy.js').then(
      ({ IngestionTransport }) => new IngestionTransport(this.#receiver),
    );
    return (await this.#ingestion).post(outgoing, timeoutMs);
  }
}

function isTaken({ status, problem }: Reply): boolean {
  return status < 300 && problem === undefined;
}

function isShut({ status, problem }: Reply): boolean {
  return status === 404 || problem === INGESTION_CLOSED;
}
