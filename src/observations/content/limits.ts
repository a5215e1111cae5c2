import type { Json } from '../../shared/json.js';
import type { Media } from '../model.js';
import { isSecretName, REDACTED, type Redact } from '../redaction/redact.js';
import { MediaPart } from './media.js';

/** A text that has been made fit: as JSON it would break if it were changed once more. It may still be cut. */
export class SanitizedText {
  constructor(readonly text: string) {}
}

export interface SanitizedValue {
  readonly value: Json;
  /** How much text the field had before it was cut; undefined where nothing was cut. */
  readonly fullChars: number | undefined;
  /** What it refers to. */
  readonly media: readonly Omit<Media, 'field'>[];
}

const DEEPEST = 100;
/** What is no longer than a mark, a role or an id, is not worth one. */
const NEVER_CUT_CHARS = 40;
/** Beyond its limit a field may still grow by this much in short texts and marks; then the rest is left out. */
const SLACK_CHARS = 10_000;

/** Makes what is said of something fit to be sent: without secrets, within limits, well-formed. */
export interface Sanitizer {
  /** The text without its secrets, at most `maxChars` of it. */
  text(text: string, maxChars: number): string;
  value(value: unknown, maxChars: number): SanitizedValue;
}

export function createSanitizer(redact: Redact | undefined): Sanitizer {
  return {
    text: (text, maxChars) => cut(redact ? redact(text) : text, maxChars),
    value: (value, maxChars) => limited(value, maxChars, redact),
  };
}

/**
 * About `maxChars` characters in all, what is cut carries a mark; every string is well-formed Unicode, since one lone
 * surrogate makes Langfuse lose the whole flush it arrives in (and cutting makes them). Secrets go before anything is cut.
 */
function limited(value: unknown, maxChars: number, redact: Redact | undefined): SanitizedValue {
  let left = maxChars;
  let isCut = false;
  const media: Omit<Media, 'field'>[] = [];

  const text = (original: string): string => bounded(redact ? redact(original) : original);
  const bounded = (whole: string): string => {
    const isKept = whole.length <= Math.max(left, NEVER_CUT_CHARS);
    const kept = isKept ? whole.toWellFormed() : cut(whole, Math.max(left, 0));
    isCut ||= !isKept;
    left -= kept.length;
    return kept;
  };
  const isFull = (): boolean => {
    isCut ||= left < -SLACK_CHARS;
    return left < -SLACK_CHARS;
  };
  const list = (items: readonly unknown[], depth: number): Json => {
    const kept: Json[] = [];
    for (const item of items) {
      if (isFull()) return [...kept, `… [${items.length - kept.length} more]`];
      kept.push(walk(item, depth + 1));
    }
    return kept;
  };
  const record = (entries: readonly [string, unknown][], depth: number): Json => {
    const kept: [string, Json][] = [];
    for (const [key, item] of entries) {
      if (isFull()) return Object.fromEntries([...kept, ['…', `[${entries.length - kept.length} more]`]]);
      const isSecret = redact !== undefined && isSecretName(key);
      kept.push([text(key), isSecret ? withoutStrings(item) : walk(item, depth + 1)]);
    }
    return Object.fromEntries(kept);
  };
  const walk = (node: unknown, depth: number): Json => {
    if (typeof node === 'string') return text(node);
    if (typeof node === 'boolean' || node === null) return node;
    if (typeof node === 'number') {
      left -= String(node).length;
      return Number.isFinite(node) ? node : null;
    }
    if (typeof node !== 'object') return null;
    if (node instanceof SanitizedText) return bounded(node.text);
    if (node instanceof MediaPart) {
      media.push(node.media);
      left -= node.media.reference.length;
      return node.value;
    }
    if (depth === DEEPEST) {
      isCut = true;
      return '[nested too deeply]';
    }
    if (Array.isArray(node)) return list(node, depth);
    return record(
      Object.entries(node).filter(([, item]) => item !== undefined),
      depth,
    );
  };

  const kept = walk(value, 0);
  return { value: kept, fullChars: isCut ? countChars(value) : undefined, media };
}

/** What stands under a secret's name: one secret, or a list of them. */
function withoutStrings(item: unknown): Json {
  if (Array.isArray(item)) return item.map(withoutStrings);
  return item === '' || item === null || typeof item === 'boolean' ? item : REDACTED;
}

/** The text, or its first `maxChars` characters with a mark that says how much is missing. */
export function cut(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text.toWellFormed();
  return `${text.slice(0, maxChars).toWellFormed()}… [${text.length - maxChars} more characters]`;
}

/** How much text there is in a value, whatever its depth. */
export function countChars(value: unknown): number {
  let chars = 0;
  const waiting = [value];
  while (waiting.length > 0) {
    const node = waiting.pop();
    if (typeof node === 'string') chars += node.length;
    else if (node instanceof MediaPart) continue;
    else if (typeof node === 'object' && node !== null) for (const item of Object.values(node)) waiting.push(item);
  }
  return chars;
}
