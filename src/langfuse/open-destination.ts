import type { DestinationConfig, LangfuseConfig } from '../config/settings.js';
import { CollectorDestination } from './collector-destination.js';
import type { Destination } from './destination.js';
import { RetryingHttpClient } from './http/retry.js';
import { AutoTransport } from './ingestion/auto-transport.js';
import { LangfuseDestination } from './langfuse-destination.js';
import { OtlpTransport } from './otlp/otlp-transport.js';
import type { Transport } from './transport.js';

/** Opens the destination that the settings name. In `stateFolder` it remembers what it found out about a server. */
export async function openDestination(config: DestinationConfig, stateFolder: string): Promise<Destination> {
  const http = new RetryingHttpClient();
  if (config.kind === 'collector') return new CollectorDestination(new OtlpTransport(config, http), http);
  return new LangfuseDestination(config, await openTransport(config, http, stateFolder), http);
}

async function openTransport(
  config: LangfuseConfig,
  http: RetryingHttpClient,
  stateFolder: string,
): Promise<Transport> {
  switch (config.transport) {
    case 'auto':
      return new AutoTransport(config, http, stateFolder);
    case 'otlp':
      return new OtlpTransport(config, http);
    case 'ingestion': {
      const { IngestionTransport } = await import('./ingestion/ingestion-transport.lazy.js');
      return new IngestionTransport(config, http);
    }
  }
}
