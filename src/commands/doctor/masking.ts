import { toOneLine } from '../../cli/format.js';
import { parseOtlpHeaders } from '../../config/setting-formats.js';
import { givenSettings } from '../../config/settings.js';
import type { SettingName } from '../../config/settings-table.js';
import { headerSecrets } from '../../langfuse/otlp/otlp-transport.js';
import { createRedactor } from '../../observations/redaction/redact.js';
import { isRecord, mapValues } from '../../shared/json.js';

const CREDENTIALS_IN_URL = /(?<=:\/\/)\S*@/g;
const SECRET_KEY = /sk-lf-[^\s"',;]+/g;
/** Anything shorter may be part of an ordinary word. */
const SHORTEST_SECRET = 6;
const PUBLIC_PART = 8;
const VALUE_CHARS = 60;

/** Shows how a public key begins. A value without its prefix may be a secret. */
export function maskPublicKey(key: string): string {
  return key.startsWith('pk-lf-') ? `${key.slice(0, PUBLIC_PART)}…` : 'set';
}

/** Shows only that the key is set, and whether it looks like a secret key. */
export function maskSecretKey(key: string): string {
  return key.startsWith('sk-lf-') ? 'sk-lf-…' : 'set';
}

/** Shows a value that should not be a key, without any key that someone put there. */
export function showValue(value: string): string {
  const line = toOneLine(createRedactor([])(value));
  return line.length > VALUE_CHARS ? `${line.slice(0, VALUE_CHARS).toWellFormed()}…` : line;
}

/** Shows a URL without credentials and query. */
export function showUrl({ origin, pathname }: URL): string {
  return `${origin}${pathname.replace(/\/+$/, '')}`;
}

/** Shows a proxy's URL without its credentials, which may contain spaces. */
export function showProxy(proxy: string): string {
  return proxy.replace(/(?<=:\/\/).*@/s, '…@');
}

/** Returns a function that removes the keys of these environments from every string in a value, in each form they are sent. */
export function createMask(environments: readonly NodeJS.ProcessEnv[]) {
  const masks = environments.flatMap((env) => {
    const given = (wanted: SettingName) => givenSettings(env).find(({ name }) => name === wanted)?.value ?? '';
    const [publicKey, secretKey, headers] = [
      given('LANGFUSE_PUBLIC_KEY'),
      given('LANGFUSE_SECRET_KEY'),
      given('CC_LANGFUSE_OTLP_HEADERS'),
    ];
    return [
      { secret: Buffer.from(`${publicKey}:${secretKey}`).toString('base64'), mask: '…' },
      { secret: secretKey, mask: maskSecretKey(secretKey) },
      { secret: publicKey, mask: maskPublicKey(publicKey) },
      ...[headers, ...headerSecrets(parseOtlpHeaders(headers) ?? {})].map((secret) => ({ secret, mask: '…' })),
    ].filter(({ secret }) => secret.length >= SHORTEST_SECRET);
  });
  function mask<T>(value: T): T;
  function mask(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(mask);
    if (isRecord(value)) return mapValues(value, mask);
    if (typeof value !== 'string') return value;
    const rest = masks.reduce((before, { secret, mask: by }) => before.replaceAll(secret, by), value);
    return rest.replace(CREDENTIALS_IN_URL, '…@').replace(SECRET_KEY, 'sk-lf-…');
  }
  return mask;
}
