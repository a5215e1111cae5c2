import type { DestinationConfig } from '../config/settings.js';
import { CollectorDestination } from './collector-destination.js';
import type { Destination } from './destination.js';
import { AutoTransport } from './ingestion/auto-transport.js';
import { LangfuseDestination } from './langfuse-destination.js';
import { OtlpTransport } from './otlp/otlp-transport.js';

/** Opens the destination that the settings name. In `stateFolder` it remembers what it found out about a server. */
export async function openDestination(config: DestinationConfig, stateFolder: string): Promise<Destination> {
  if (config.kind === 'collector') return new CollectorDestination((http) => new OtlpTransport(config, http));
  switch (config.transport) {
    case 'auto':
      return new LangfuseDestination(config, (http) => new AutoTransport(config, http, stateFolder));
    case 'otlp':
      return new LangfuseDestination(config, (http) => new OtlpTransport(config, http));
    case 'ingestion': {
      const { IngestionTransport } = await import('./ingestion/ingestion-transport.lazy.js');
      return new LangfuseDestination(config, (http) => new IngestionTransport(config, http));
    }
  }
}
