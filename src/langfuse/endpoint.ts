import { createHash } from 'node:crypto';
import type { Langfuse } from '../config.js';
import { version } from '../version.js';
import type { Endpoint } from './post.js';

/** Langfuse's OpenTelemetry endpoint: the one door that every server from 3.22 on keeps open. */
export function otlpEndpoint(langfuse: Langfuse): Endpoint {
  return {
    url: urlOf(langfuse, '/api/public/otel/v1/traces'),
    headers: {
      authorization: authorization(langfuse),
      // Written straight to the events table: visible at once.
      'x-langfuse-ingestion-version': '4',
      'x-langfuse-sdk-name': 'cc-langfuse',
      'x-langfuse-sdk-version': version,
    },
  };
}

/** A path on the server, which may itself lie below a path. */
export function urlOf({ baseUrl }: Langfuse, path: string): URL {
  return new URL(`${baseUrl.origin}${baseUrl.pathname.replace(/\/+$/, '')}${path}`);
}

export function authorization({ publicKey, secretKey }: Langfuse): string {
  return `Basic ${Buffer.from(`${publicKey}:${secretKey}`).toString('base64')}`;
}

/** Tells one project on one server from another without naming either. */
export function fingerprint({ baseUrl, publicKey }: Langfuse): string {
  return createHash('sha256').update(`${baseUrl.href} ${publicKey}`).digest('hex').slice(0, 16);
}
