import type { DestinationConfig, LangfuseConfig } from '../config/settings.js';
import type { SettingName } from '../config/settings-table.js';
import { hashText } from '../shared/hash.js';
import type { Destination, Limits } from './destination.js';
import type { Http } from './http/client.js';
import type { RetryingHttpClient } from './http/retry.js';
import type { Reply } from './transport.js';

/** A destination that the settings name, before anything is sent to it. Each kind has one. */
export interface Target {
  readonly kind: DestinationConfig['kind'];
  /** Distinguishes projects, servers and Collectors without revealing which they are. */
  readonly id: string;
  /** What it is called in a sentence. */
  readonly name: string;
  readonly url: URL;
  /** The settings that the URL and the credentials are from. */
  readonly settings: { readonly url: SettingName; readonly credentials: SettingName };
  /** What two targets have in common if they are the same account. */
  readonly account: object;
  /** What only Langfuse has: keys, projects with pages, models, dashboards. */
  readonly langfuse?: LangfuseConfig;
  /** In `stateFolder` it remembers what it found out about a server. */
  open(http: RetryingHttpClient, stateFolder: string): Destination;
  /** Finds out whether it accepts observations, without sending any. */
  probe(http: Http, limits: Limits): Promise<Reply>;
}

export function hashId(text: string): string {
  return hashText(text).slice(0, 16);
}
