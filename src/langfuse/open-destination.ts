import type { DestinationConfig } from '../config/settings.js';
import { CollectorDestination } from './collector-destination.js';
import type { Destination } from './destination.js';
import { LangfuseDestination } from './langfuse-destination.js';
import { transportTo } from './transport-to.js';

/** Opens the destination that the settings name. `stateFolder` is where it remembers what it found out about a server. */
export async function openDestination(config: DestinationConfig, stateFolder: string): Promise<Destination> {
  const transport = await transportTo(config, stateFolder);
  return config.kind === 'collector' ? new CollectorDestination(transport) : new LangfuseDestination(config, transport);
}
