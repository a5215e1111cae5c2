import type { DestinationConfig } from '../config/settings.js';
import { collectorTarget } from './collector-destination.js';
import type { Destination } from './destination.js';
import { RetryingHttpClient } from './http/retry.js';
import { langfuseTarget } from './langfuse-destination.js';
import type { Target } from './target.js';

/** Every kind of destination has its line here. */
export function findTarget(config: DestinationConfig): Target {
  switch (config.kind) {
    case 'langfuse':
      return langfuseTarget(config);
    case 'collector':
      return collectorTarget(config);
    default:
      return config satisfies never;
  }
}

/** Identifies where the settings send to. */
export function fingerprint(config: DestinationConfig): string {
  return findTarget(config).id;
}

/** Opens the destination that the settings name. In `stateFolder` it remembers what it found out about a server. */
export function openDestination(config: DestinationConfig, stateFolder: string): Destination {
  return findTarget(config).open(new RetryingHttpClient(), stateFolder);
}
