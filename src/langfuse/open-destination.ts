import type { DestinationConfig } from '../config/settings.js';
import { collectorTarget } from './collector-destination.js';
import type { Destination, Health, OpenDestination } from './destination.js';
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
export async function openDestination(config: DestinationConfig, stateFolder: string): Promise<OpenDestination> {
  const http = new RetryingHttpClient();
  return watch(findTarget(config).open(http, stateFolder), http);
}

/** Remembers how the server took what it was last sent. */
function watch(destination: Destination, http: RetryingHttpClient): OpenDestination {
  const { uploadMedia, sendScores } = destination;
  let health: Health = { isHealthy: false, hasAnswered: false };
  return {
    encode: (observation) => destination.encode(observation),
    send: async (outgoing, limits) => {
      const report = await destination.send(outgoing, limits);
      health = report.health;
      return report;
    },
    uploadMedia: uploadMedia?.bind(destination),
    sendScores: sendScores?.bind(destination),
    close: () => destination.close(),
    get health() {
      return health;
    },
    get waitingSince() {
      return http.waitingSince;
    },
    get pausedUntil() {
      return http.pausedUntil;
    },
  };
}
