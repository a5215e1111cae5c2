import type { DestinationConfig } from '../config/settings.js';
import { CollectorDestination } from './collector-destination.js';
import type { Destination } from './destination.js';
import { LangfuseDestination } from './langfuse-destination.js';

/** Opens the destination that the settings name. In `stateFolder` it remembers what it found out about a server. */
export async function openDestination(config: DestinationConfig, stateFolder: string): Promise<Destination> {
  if (config.kind === 'collector') return new CollectorDestination(config);
  return new LangfuseDestination(config, stateFolder);
}
