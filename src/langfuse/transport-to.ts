import type { DestinationConfig } from '../config/settings.js';
import { AutoTransport } from './ingestion/auto-transport.js';
import { OtlpTransport } from './otlp/otlp-transport.js';
import type { Transport } from './transport.js';

/** The way to a receiver; `folder` is where it is remembered what was found out about it. */
export async function transportTo(receiver: DestinationConfig, folder: string): Promise<Transport> {
  if (receiver.kind === 'collector' || receiver.transport === 'otlp') return new OtlpTransport(receiver);
  if (receiver.transport === 'auto') return new AutoTransport(receiver, folder);
  const { IngestionTransport } = await import('./ingestion/ingestion-transport.lazy.js');
  return new IngestionTransport(receiver);
}
