import type { DestinationConfig } from '../../src/config/settings.js';

/** What a user sets for each kind of destination. */
export const DESTINATIONS: { readonly [kind in DestinationConfig['kind']]: NodeJS.ProcessEnv } = {
  langfuse: { LANGFUSE_PUBLIC_KEY: 'pk', LANGFUSE_SECRET_KEY: 'sk' },
  collector: { CC_LANGFUSE_OTLP_URL: 'http://127.0.0.1:9/v1/traces' },
};
