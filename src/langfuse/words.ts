import { createRedactor } from '../observations/redaction/redact.js';
import { isRecord, parseJson } from '../shared/json.js';

export type Headers = { readonly [name: string]: string };

/** How a server refuses keys, or the headers that stand for them. */
export interface Refusal {
  readonly status: number;
  /** Its own words about it. */
  readonly words?: string | undefined;
}

/** The keys may not read, or are wrong. */
export class ReadingRefused extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(`the server refuses to be read with these keys (${refusal.status})`);
    this.refusal = refusal;
  }
}

/**
 * Returns a server's own words about why it refuses a request: the `message` or `error` of its answer. A server may repeat what it
 * was sent, and these words go to logs. So only the answer to a request without content is to be read like this.
 */
export function readWords(body: string, headers: Headers): string | undefined {
  const answer = parseJson(body);
  const { message, error } = isRecord(answer) ? answer : {};
  const text = [message, error].find((each) => typeof each === 'string' && each.trim() !== '');
  return typeof text === 'string' ? cleanWords(text, headers) : undefined;
}

/** Adds a server's words to a sentence. */
export function quote(words: string | undefined): string {
  return words === undefined ? '' : `: "${words}"`;
}

const LONGEST = 200;

/** Puts a server's words on one line, without secrets and without anything of the headers that it was sent. */
export function cleanWords(text: string, headers: Headers): string {
  const secrets = headerSecrets(headers).flatMap((secret) => [secret, ...decode(secret)]);
  const forms = secrets.flatMap((secret) => [secret, encodeURIComponent(secret.toWellFormed())]);
  // A secret may begin with another one, as the secret key `demo-secret` with the public key `demo`.
  const longestFirst = forms.toSorted((a, b) => b.length - a.length);
  const masked = longestFirst.reduce((rest, secret) => rest.replaceAll(secret, '…'), text);
  return toLine(createRedactor([])(masked)).replaceAll('"', "'").slice(0, LONGEST).toWellFormed().replace(/\.$/, '');
}

/** Puts a server's text on one line, without what controls a terminal or reverses the text. */
export function toLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
}

/** A shorter text could be part of anything. */
const SHORTEST_SECRET = 4;
const SCHEME = /^(?:basic|bearer)$/i;

/** Returns what must not be shown of headers: the words of each value, which may be a scheme and a secret, or a cookie. */
export function headerSecrets(headers: Headers): string[] {
  return Object.values(headers)
    .flatMap((value) => value.split(/\s+/))
    .flatMap((word) => [word, ...word.split(/[;,]/).flatMap(splitCookie)])
    .filter((word) => word.length >= SHORTEST_SECRET && !SCHEME.test(word));
}

/** A cookie is `name=value`; base64 can end with `=`, which a server may leave out. */
function splitCookie(text: string): string[] {
  const cookie = text.replace(/=+$/, '');
  return [cookie, cookie.slice(cookie.indexOf('=') + 1)];
}

/** Basic authorization has both keys in one word. */
function decode(word: string): string[] {
  const parts = Buffer.from(word, 'base64').toString().split(':');
  return parts.length > 1 ? parts.filter(({ length }) => length >= SHORTEST_SECRET) : [];
}
