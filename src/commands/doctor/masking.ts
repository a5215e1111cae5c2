import { toOneLine } from '../../cli/format.js';
import { parseOtlpHeaders } from '../../config/setting-formats.js';
import { givenSettings } from '../../config/settings.js';
import { headerSecrets } from '../../langfuse/words.js';
import { createRedactor } from '../../observations/redaction/redact.js';

const CREDENTIALS_IN_URL = /(?<=:\/\/)\S*@/g;
const SECRET_KEY = /sk-lf-[^\s"',;]+/g;
/** Anything shorter may be part of an ordinary word. */
const SHORTEST_SECRET = 6;
const VALUE_CHARS = 60;

/** Shows how a public key begins. A value without its prefix may be a secret. */
export function maskPublicKey(key: string): string {
  return key.startsWith('pk-lf-') ? `${key.slice(0, 'pk-lf-12'.length)}…` : 'set';
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

/** Returns a function that removes the keys of these environments from every string in a value, in each form they are sent. */
export function createMask(environments: readonly NodeJS.ProcessEnv[]) {
  const masks = environments.flatMap((env) => {
    const given = Object.fromEntries(givenSettings(env).map(({ name, value }) => [name, value]));
    const { LANGFUSE_PUBLIC_KEY: publicKey = '', LANGFUSE_SECRET_KEY: secretKey = '' } = given;
    const headers = [given.CC_LANGFUSE_OTLP_HEADERS ?? '', given.CC_LANGFUSE_HEADERS ?? ''];
    const headerValues = headers.flatMap((each) => headerSecrets(parseOtlpHeaders(each) ?? {}));
    // A command that prints the key may contain it.
    const command = given.CC_LANGFUSE_SECRET_KEY_COMMAND ?? '';
    return [
      { secret: Buffer.from(`${publicKey}:${secretKey}`).toString('base64'), mask: '…' },
      { secret: secretKey, mask: maskSecretKey(secretKey) },
      { secret: publicKey, mask: maskPublicKey(publicKey) },
      ...[command, ...headers, ...headerValues].map((secret) => ({ secret, mask: '…' })),
    ].filter(({ secret }) => secret.length >= SHORTEST_SECRET);
  });
  const maskText = (text: string) =>
    masks
      .reduce((rest, { secret, mask }) => rest.replaceAll(secret, mask), text)
      .replace(CREDENTIALS_IN_URL, '…@')
      .replace(SECRET_KEY, 'sk-lf-…');
  return <T>(value: T): T =>
    JSON.parse(JSON.stringify(value), (_, part) => (typeof part === 'string' ? maskText(part) : part));
}
