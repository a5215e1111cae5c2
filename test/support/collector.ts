import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { listSpans, type OtlpSpan, type StoredObservation, stored } from './langfuse-server.js';

interface CollectorAnswer {
  readonly status: number;
  readonly body?: string;
  readonly headers?: { readonly [name: string]: string };
  /** Begins the body and never ends it. */
  readonly neverEnds?: boolean;
}

/** A stand-in for the OTLP/HTTP receiver of an OpenTelemetry Collector. It answers as the specification of OTLP says. */
export class Collector {
  /** Returns another answer to a request. Called with the number of the request, from 0. */
  answer: (number: number, spans: readonly OtlpSpan[]) => CollectorAnswer | undefined = () => undefined;
  readonly requests: { readonly path: string; readonly headers: IncomingMessage['headers'] }[] = [];
  readonly #spans: OtlpSpan[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const number = this.requests.length;
        this.requests.push({ path: request.url ?? '', headers: request.headers });
        const spans = parseSpans(request, Buffer.concat(chunks));
        const answer = (spans && this.answer(number, spans)) ?? (spans ? TAKEN : refusalOf(request));
        if (spans && answer.status === 200) this.#spans.push(...spans);
        response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
        if (answer.neverEnds) response.write('{');
        else response.end(answer.body);
      });
    });
  }

  static async start(): Promise<Collector> {
    const collector = new Collector();
    await new Promise<void>((resolve) => collector.#server.listen(0, '127.0.0.1', resolve));
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The spans that it has accepted. */
  get spans(): readonly OtlpSpan[] {
    return this.#spans;
  }

  /** What Langfuse would store of the spans that the Collector has accepted. */
  get observations(): StoredObservation[] {
    return this.#spans.map(stored);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** The answer if all spans are accepted: an empty message. */
const TAKEN: CollectorAnswer = { status: 200, body: '{}' };

function parseSpans({ method, url, headers }: IncomingMessage, body: Buffer): OtlpSpan[] | undefined {
  if (method !== 'POST' || url !== '/v1/traces' || headers['content-type'] !== 'application/json') return undefined;
  try {
    return listSpans(JSON.parse((headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString('utf8')));
  } catch {
    return undefined;
  }
}

/** OTLP answers failures with a `Status` message. */
function refusalOf({ method, url, headers }: IncomingMessage): CollectorAnswer {
  if (url !== '/v1/traces') return { status: 404, body: '404 page not found' };
  if (method !== 'POST') return { status: 405 };
  if (headers['content-type'] !== 'application/json') return { status: 415 };
  return { status: 400, body: '{"code":3,"message":"invalid request"}' };
}
