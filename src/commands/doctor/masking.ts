import { toOneLine } from '../../cli/format.js';
import { parseOtlpHeaders } from '../../config/setting-formats.js';
import { givenSettings } from '../../config/settings.js';
import type { SettingName } from '../../config/settings-table.js';
import { headerSecrets } from '../../langfuse/otlp/otlp-transport.js';
import { createRedactor } from '../../observations/redaction/redact.js';

const CREDENTIALS_IN_URL = /(?<=:\/\/)\S*@/g;
const SECRET_KEY = /sk-lf-[^\s"',;]+/g;
/** What is shorter may be part of any word. */
const SHORTEST_SECRET = 6;
const PUBLIC_PART = 8;
const VALUE_CHARS = 60;

/** A public key by its beginning; anything else in its place may be a secret. */
export function maskedPublicKey(key: string): string {
  return key.startsWith('pk-lf-') ? `${key.slice(0, PUBLIC_PART)}…` : 'set';
}

/** That a secret key is set, and whether it looks like one. */
export function maskedSecretKey(key: string): string {
  return key.startsWith('sk-lf-') ? 'sk-lf-…' : 'set';
}

/** What a setting says that is no key: somebody may have put one there. */
export function shownValue(value: string): string {
  const line = toOneLine(createRedactor([])(value));
  return line.length > VALUE_CHARS ? `${line.slice(0, VALUE_CHARS).toWellFormed()}…` : line;
}

/** A URL, without what may open it. */
export function shownUrl({ origin, pathname }: URL): string {
  return `${origin}${pathname.replace(/\/+$/, '')}`;
}

/** A proxy's URL, without what opens it, which may have spaces in it. */
export function withoutCredentials(proxy: string): string {
  return proxy.replace(/(?<=:\/\/).*@/s, '…@');
}

/** Takes the keys of these environments out of whatever is to be printed, in each form in which they are sent. */
export function maskingOf(environments: readonly NodeJS.ProcessEnv[]): (text: string) => string {
  const masks = environments.flatMap((env) => {
    const given = (wanted: SettingName) => givenSettings(env).find(({ name }) => name === wanted)?.value ?? '';
    const [publicKey, secretKey, headers] = [
      given('LANGFUSE_PUBLIC_KEY'),
      given('LANGFUSE_SECRET_KEY'),
      given('CC_LANGFUSE_OTLP_HEADERS'),
    ];
    return [
      { secret: Buffer.from(`${publicKey}:${secretKey}`).toString('base64'), mask: '…' },
      { secret: secretKey, mask: maskedSecretKey(secretKey) },
      { secret: publicKey, mask: maskedPublicKey(publicKey) },
      ...[headers, ...headerSecrets(parseOtlpHeaders(headers) ?? {})].map((secret) => ({ secret, mask: '…' })),
    ].filter(({ secret }) => secret.length >= SHORTEST_SECRET);
  });
  return (text) => {
    const rest = masks.reduce((before, { secret, mask }) => before.replaceAll(secret, mask), text);
    return rest.replace(CREDENTIALS_IN_URL, '…@').replace(SECRET_KEY, 'sk-lf-…');
  };
}
