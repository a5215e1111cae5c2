import type { LangfuseConfig } from '../config/settings.js';
import { version } from '../shared/version.js';
import type { Limits } from './destination.js';
import type { HttpRequest } from './http/client.js';
import type { OtlpEndpoint } from './otlp/otlp-transport.js';
import { hashId } from './target.js';
import { type Headers, quote, type Refusal } from './words.js';

/** Langfuse accepts OpenTelemetry's traces since 3.22, on every server and in every write mode. */
export function langfuseOtlp(config: LangfuseConfig): OtlpEndpoint {
  return {
    url: langfuseUrl(config, '/api/public/otel/v1/traces'),
    readHeaders: async (limits) => ({
      ...config.headers,
      authorization: await authorization(config, limits),
      // Written straight to the events table: visible at once.
      'x-langfuse-ingestion-version': '4',
      ...SDK_HEADERS,
    }),
    name: 'Langfuse',
    describeRefusal: describeRefusedKeys,
    missing: `the server has no OTLP endpoint (404); Langfuse has one since version 3.22: update it, or ${CORRECT_URL}`,
  };
}

export const SDK_HEADERS = { 'x-langfuse-sdk-name': 'cc-langfuse', 'x-langfuse-sdk-version': version };

/** A path on the server, whose base URL may have a path of its own. */
export function langfuseUrl({ baseUrl }: LangfuseConfig, path: string): URL {
  return new URL(`${baseUrl.origin}${baseUrl.pathname.replace(/\/+$/, '')}${path}`);
}

/** Throws if the user's command does not print the secret key in time. */
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
): Promise<HttpRequest & { readonly headers: Headers }> {
  const own = { authorization: await authorization(config, limits), 'content-type': 'application/json' };
  const body = content && JSON.stringify(content);
  return { method, url: langfuseUrl(config, path), headers: { ...config.headers, ...own }, body };
}

/** Distinguishes projects and servers without revealing which they are. */
export function langfuseId({
  baseUrl: { origin, pathname },
  publicKey,
  firstPublicKey = publicKey,
}: Pick<LangfuseConfig, 'baseUrl' | 'publicKey' | 'firstPublicKey'>): string {
  // A slash at the end makes no difference.
  return hashId(`${origin}${pathname.replace(/(?<=.)\/+$/, '')} ${firstPublicKey}`);
}

export function describeRefusal({ headers, baseUrl }: LangfuseConfig, { status, words }: Refusal): string {
  // A gateway that refuses its headers answers the same as Langfuse does to wrong keys.
  const hasGateway = Object.keys(headers).length > 0;
  return `Langfuse refused the keys${hasGateway ? ' or CC_LANGFUSE_HEADERS' : ''} (${status}) at ${baseUrl.host}${quote(words)}`;
}

/** Says in the log, and of what waits, that a server does not let these keys write, and what to do. */
export function describeRefusedKeys({ status, words }: Refusal): string {
  return `the server refuses the keys (${status})${quote(words)}; ${adviseOnRefusal(status)}`;
}

/** What to do about keys that may not write. */
export function adviseOnRefusal(status: number): string {
  return status === 401
    ? 'make new ones for "cc-langfuse install", or for the plugin'
    : 'sending needs keys with full access, or for ingestion';
}

/** What to do if a server that answers is not Langfuse. */
export const CORRECT_URL = "set LANGFUSE_BASE_URL to the address of your project's page in a browser";
