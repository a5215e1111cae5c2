import { createHash } from 'node:crypto';
import type { DestinationConfig, LangfuseConfig } from '../config/settings.js';
import { version } from '../shared/version.js';
import type { Endpoint } from './http/post.js';

/** Where a receiver takes OpenTelemetry's traces; Langfuse does at the one door that every server from 3.22 on keeps open. */
export function otlpEndpoint(receiver: DestinationConfig): Endpoint {
  if (receiver.kind === 'collector') return receiver;
  return {
    url: langfuseUrl(receiver, '/api/public/otel/v1/traces'),
    headers: {
      authorization: authorization(receiver),
      // Written straight to the events table: visible at once.
      'x-langfuse-ingestion-version': '4',
      'x-langfuse-sdk-name': 'cc-langfuse',
      'x-langfuse-sdk-version': version,
    },
  };
}

/** A path on the server, which may itself lie below a path. */
export function langfuseUrl({ baseUrl }: LangfuseConfig, path: string): URL {
  return new URL(`${baseUrl.origin}${baseUrl.pathname.replace(/\/+$/, '')}${path}`);
}

export function authorization({ publicKey, secretKey }: LangfuseConfig): string {
  return `Basic ${Buffer.from(`${publicKey}:${secretKey}`).toString('base64')}`;
}

/** Tells one project on one server from another, and one Collector from another, without naming any. */
export function fingerprint(receiver: DestinationConfig): string {
  return createHash('sha256').update(namesOf(receiver)).digest('hex').slice(0, 16);
}

function namesOf(receiver: DestinationConfig): string {
  if (receiver.kind === 'langfuse') return `${receiver.baseUrl.href} ${receiver.publicKey}`;
  const { origin, pathname, search } = receiver.url;
  // Without what it may hold of a password, which may change.
  return `${origin}${pathname}${search}`;
}

/** What a person is told of a receiver that lets nothing in. */
export function describeRefusal(receiver: DestinationConfig, status: number): string {
  return receiver.kind === 'langfuse'
    ? `Langfuse refused the keys (${status}) at ${receiver.baseUrl.host}`
    : `${receiver.url.host} refused CC_LANGFUSE_OTLP_HEADERS (${status})`;
}
