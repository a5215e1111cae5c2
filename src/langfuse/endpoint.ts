import { createHash } from 'node:crypto';
import type { CollectorConfig, DestinationConfig, LangfuseConfig } from '../config/settings.js';
import { isRecord } from '../shared/json.js';
import { version } from '../shared/version.js';
import type { Limits, Trouble } from './destination.js';
import type { HttpRequest } from './http/client.js';

/** Where requests go, and the headers that they carry. */
export type Endpoint = Pick<CollectorConfig, 'url' | 'headers'>;

/** Langfuse accepts OpenTelemetry's traces since 3.22, on every server and in every write mode. */
export function otlpUrl(config: DestinationConfig): URL {
  return config.kind === 'collector' ? config.url : langfuseUrl(config, '/api/public/otel/v1/traces');
}

/** Throws if the user's command does not print the secret key in time. */
export async function otlpEndpoint(config: DestinationConfig, limits: Limits): Promise<Endpoint> {
  if (config.kind === 'collector') return config;
  return {
    url: otlpUrl(config),
    headers: {
      ...config.headers,
      authorization: await authorization(config, limits),
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

export async function resolveSecretKey({ secretKey }: LangfuseConfig, { deadline }: Limits): Promise<string> {
  return typeof secretKey === 'string' ? secretKey : secretKey(deadline);
}

async function authorization(config: LangfuseConfig, limits: Limits): Promise<string> {
  const secretKey = await resolveSecretKey(config, limits);
  return `Basic ${Buffer.from(`${config.publicKey}:${secretKey}`).toString('base64')}`;
}

/** Builds a request to Langfuse's REST API. */
export async function apiRequest(
  config: LangfuseConfig,
  limits: Limits,
  method: HttpRequest['method'],
  path: string,
  content?: object,
): Promise<HttpRequest> {
  const own = { authorization: await authorization(config, limits), 'content-type': 'application/json' };
  const body = content && JSON.stringify(content);
  return { method, url: langfuseUrl(config, path), headers: { ...config.headers, ...own }, body };
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
export function describeTrouble(config: DestinationConfig, { reason, isServerNamed }: Trouble): string {
  return isServerNamed ? reason : `sending to ${hostOf(config)} fails: ${reason}`;
}

export function describeRefusal(config: DestinationConfig, status: number): string {
  if (config.kind === 'collector') return `${hostOf(config)} refused CC_LANGFUSE_OTLP_HEADERS (${status})`;
  // A gateway that refuses its headers answers the same as Langfuse does to wrong keys.
  const hasGateway = Object.keys(config.headers).length > 0;
  return `Langfuse refused the keys${hasGateway ? ' or CC_LANGFUSE_HEADERS' : ''} (${status}) at ${hostOf(config)}`;
}

/** What Langfuse's answer says about why it refuses, to be added to a sentence. */
export function quoteReason(answer: unknown): string {
  return isRecord(answer) && typeof answer.message === 'string' ? `: ${answer.message}` : '';
}
