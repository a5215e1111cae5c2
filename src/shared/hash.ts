import { createHash } from 'node:crypto';

/** The SHA-256 of a text, in hex digits. */
export function hashText(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
