import { createHash } from 'node:crypto';
import type { Langfuse } from '../config.js';
import { version } from '../version.js';
import type { Endpoint } from './post.js';

/** Langfuse's OpenTelemetry endpoint: the one door that every server from 3.22 on keeps open. */
export function otlpEndpoint({ baseUrl, publicKey, secretKey }: Langfuse): Endpoint {
  return {
    url: new URL(`${baseUrl.origin}${baseUrl.pathname.replace(/\/+$/, '')}/api/public/otel/v1/traces`),
    headers: {
      authorization: `Basic ${Buffer.from(`${publicKey}:${secretKey}`).toString('base64')}`,
      // Written straight to the events table: visible at once.
      'x-langfuse-ingestion-version': '4',
      'x-langfuse-sdk-name': 'cc-langfuse',
      'x-langfuse-sdk-version': version,
    },
  };
}

/** Tells one project on one server from another without naming either. */
export function fingerprint({ baseUrl, publicKey }: Langfuse): string {
  return createHash('sha256').update(`${baseUrl.href} ${publicKey}`).digest('hex').slice(0, 16);
}
