import { createHash } from 'node:crypto';
import type { CollectorConfig, DestinationConfig, LangfuseConfig } from '../config/settings.js';
import { version } from '../shared/version.js';
import type { Trouble } from './destination.js';
import type { HttpRequest } from './http/client.js';

/** Where requests go, and the headers that they carry. */
export type Endpoint = Pick<CollectorConfig, 'url' | 'headers'>;

/** Langfuse accepts OpenTelemetry's traces since 3.22, on every server and in every write mode. */
export function otlpEndpoint(config: DestinationConfig): Endpoint {
  if (config.kind === 'collector') return config;
  return {
    url: langfuseUrl(config, '/api/public/otel/v1/traces'),
    headers: {
      authorization: authorization(config),
      // Written straight to the events table: visible at once.
      'x-langfuse-ingestion-version': '4',
      ...SDK_HEADERS,
    },
  };
}

export const SDK_HEADERS = { 'x-langfuse-sdk-name': 'cc-langfuse', 'x-langfuse-sdk-version': version };

/** A path on the server, whose base URL may have a path of its own. */
export function langfuseUrl({ baseUrl }: LangfuseConfig, path: string): URL {
  return new URL(`${baseUrl.origin}${baseUrl.pathname.replace(/\/+$/, '')}${path}`);
}

function authorization({ publicKey, secretKey }: LangfuseConfig): string {
  return `Basic ${Buffer.from(`${publicKey}:${secretKey}`).toString('base64')}`;
}

/** A request to Langfuse's REST API. */
export function apiRequest(
  config: LangfuseConfig,
  method: HttpRequest['method'],
  path: string,
  content?: object,
): HttpRequest {
  const headers = { authorization: authorization(config), 'content-type': 'application/json' };
  return { method, url: langfuseUrl(config, path), headers, body: content && JSON.stringify(content) };
}

/** Distinguishes projects, servers and Collectors without revealing which they are. */
export function fingerprint(config: DestinationConfig): string {
  return createHash('sha256').update(describeDestination(config)).digest('hex').slice(0, 16);
}

function describeDestination(config: DestinationConfig): string {
  if (config.kind === 'langfuse') {
    const { origin, pathname } = config.baseUrl;
    // A slash at the end makes no difference.
    return `${origin}${pathname.replace(/(?<=.)\/+$/, '')} ${config.publicKey}`;
  }
  const { origin, pathname, search } = config.url;
  // Without a user name and password, which may change.
  return `${origin}${pathname}${search}`;
}

function hostOf(config: DestinationConfig): string {
  return (config.kind === 'langfuse' ? config.baseUrl : config.url).host;
}

/** Says for the user what went wrong with a server. */
export function describeTrouble(config: DestinationConfig, { reason }: Trouble): string {
  const host = hostOf(config);
  return reason.startsWith(host) ? reason : `sending to ${host} fails: ${reason}`;
}

export function describeRefusal(config: DestinationConfig, status: number): string {
  return config.kind === 'langfuse'
    ? `Langfuse refused the keys (${status}) at ${hostOf(config)}`
    : `${hostOf(config)} refused CC_LANGFUSE_OTLP_HEADERS (${status})`;
}
