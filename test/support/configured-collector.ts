import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parse } from 'yaml';
import { CollectorConfig } from './collector-schema.js';

type Exporter = CollectorConfig['exporters'][string];

/** Reads the configuration of a Collector, and replaces `${env:NAME}` as it does. Throws if a Collector would refuse it. */
export function parseCollectorConfig(text: string, env: { readonly [name: string]: string }): CollectorConfig {
  return CollectorConfig.parse(parse(text.replace(/\$\{env:(\w+)\}/g, (_, name: string) => env[name] ?? '')));
}

/** The headers that an exporter adds: its own, and that of the extension which authenticates it. */
export function exporterHeaders({ extensions }: CollectorConfig, { headers, auth }: Exporter): Record<string, string> {
  const { username = '', password = '' } = extensions[auth.authenticator as 'basicauth/langfuse'].client_auth ?? {};
  return { ...headers, authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
}

/** A Collector that follows its configuration: it forwards what it receives to each exporter of its pipeline. */
export class ConfiguredCollector {
  readonly #config: CollectorConfig;
  readonly #server: Server;

  private constructor(config: CollectorConfig) {
    this.#config = config;
    this.#server = createServer((request, response) => {
      this.#forward(request, response).catch(() => response.writeHead(500).end());
    });
  }

  static async start(config: CollectorConfig): Promise<ConfiguredCollector> {
    const collector = new ConfiguredCollector(config);
    await new Promise<void>((resolve) => collector.#server.listen(0, '127.0.0.1', resolve));
    return collector;
  }

  /** The URL of its OTLP/HTTP receiver for traces. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1/traces`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers;
    for (const name of this.#config.service.pipelines.traces.exporters) {
      const exporter = this.#config.exporters[name];
      if (!exporter) throw new Error(`no exporter ${name}`);
      const headers = {
        ...exporterHeaders(this.#config, exporter),
        'content-type': type,
        'content-encoding': encoding,
      };
      await fetch(`${exporter.endpoint}/v1/traces`, { method: 'POST', headers, body: Buffer.concat(chunks) });
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"partialSuccess":{}}');
  }
}
