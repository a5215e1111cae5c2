import type { Langfuse } from '../config.js';
import { OlderServers } from './older-servers.js';
import { OtlpTransport } from './otlp-transport.js';
import { fingerprint } from './receiver.js';
import { INGESTION_CLOSED, type Outgoing, type Reply, type Transport } from './transport.js';

/** Brings observations to a Langfuse of any age: by OpenTelemetry, and where there is no such door, by the older one. */
export class AutoTransport implements Transport {
  readonly #receiver: Langfuse;
  readonly #destination: string;
  readonly #olderServers: OlderServers;
  readonly #otlp: Transport;
  #ingestion: Promise<Transport> | undefined;
  #isOlder: boolean;

  /** `folder` is where it is remembered which servers are older. */
  constructor(receiver: Langfuse, folder: string) {
    this.#receiver = receiver;
    this.#destination = fingerprint(receiver);
    this.#olderServers = new OlderServers(folder);
    this.#otlp = new OtlpTransport(receiver);
    this.#isOlder = this.#olderServers.has(this.#destination);
  }

  async post(outgoing: readonly Outgoing[], timeoutMs: number): Promise<Reply> {
    const deadline = Date.now() + timeoutMs;
    const left = () => Math.max(1, deadline - Date.now());
    if (this.#isOlder) {
      const reply = await this.#postOlder(outgoing, left());
      if (!isShut(reply)) return reply;
      // It has been upgraded since.
      this.#isOlder = false;
      this.#olderServers.forget(this.#destination);
      return this.#otlp.post(outgoing, left());
    }
    const reply = await this.#otlp.post(outgoing, left());
    if (reply.status !== 404) return reply;
    const older = await this.#postOlder(outgoing, left());
    const isTaken = older.status < 300 && older.problem === undefined;
    if (isTaken) {
      this.#isOlder = true;
      this.#olderServers.keep(this.#destination);
    }
    return older;
  }

  async close(): Promise<void> {
    const ingestion = await this.#ingestion?.catch(() => undefined);
    await Promise.all([this.#otlp.close(), ingestion?.close()]);
  }

  async #postOlder(outgoing: readonly Outgoing[], timeoutMs: number): Promise<Reply> {
    this.#ingestion ??= import('./ingestion.js').then(
      ({ IngestionTransport }) => new IngestionTransport(this.#receiver),
    );
    return (await this.#ingestion).post(outgoing, timeoutMs);
  }
}

function isShut({ status, problem }: Reply): boolean {
  return status === 404 || problem === INGESTION_CLOSED;
}
