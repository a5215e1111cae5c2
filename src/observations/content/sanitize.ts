import type { Json } from '../../shared/json.js';
import { isSecretName, REDACTED, type Redact } from '../redaction/redact.js';
import { type MediaFile, MediaPart } from './media-part.js';

/** Text that is sanitized already. It may still be cut, but redacting it again could break it if it is JSON. */
export class SanitizedText {
  constructor(readonly text: string) {}
}

export interface SanitizedValue {
  readonly value: Json;
  /** How much text the value had before it was cut; undefined if nothing was cut. */
  readonly fullChars: number | undefined;
  /** The images and documents that it refers to. */
  readonly media: readonly MediaFile[];
}

/**
 * Prepares content for sending: redacts secrets, then cuts what is too long and marks the cut, and makes every string
 * well-formed Unicode. One lone surrogate makes Langfuse lose the whole flush that it arrives in, and cutting makes them.
 */
export interface Sanitizer {
  text(text: string, maxChars: number): string;
  /** Keeps about `maxChars` characters of all text in the value. */
  value(value: unknown, maxChars: number): SanitizedValue;
}

export function createSanitizer(redact: Redact | undefined): Sanitizer {
  return {
    text: (text, maxChars) => truncate(redact ? redact(text) : text, maxChars),
    value: (value, maxChars) => new ValueSanitizer(maxChars, redact).sanitize(value),
  };
}

const MAX_DEPTH = 100;
/** Texts up to this length, such as roles and ids, are never cut: the mark would be about as long. */
const NEVER_CUT_CHARS = 40;
/** Marks and texts that are never cut may exceed a field's limit by this much. After that, items are left out. */
const SLACK_CHARS = 10_000;

/** Sanitizes one value, counting down how much text it may still have. */
class ValueSanitizer {
  readonly #redact: Redact | undefined;
  readonly #media: MediaFile[] = [];
  #charsLeft: number;
  #isCut = false;

  constructor(maxChars: number, redact: Redact | undefined) {
    this.#charsLeft = maxChars;
    this.#redact = redact;
  }

  sanitize(value: unknown): SanitizedValue {
    const kept = this.#walk(value, 0);
    return { value: kept, fullChars: this.#isCut ? countChars(value) : undefined, media: this.#media };
  }

  #walk(node: unknown, depth: number): Json {
    if (typeof node === 'string') return this.#text(node);
    if (typeof node === 'boolean' || node === null) return node;
    if (typeof node === 'number') {
      this.#charsLeft -= String(node).length;
      return Number.isFinite(node) ? node : null;
    }
    if (typeof node !== 'object') return null;
    if (node instanceof SanitizedText) return this.#limit(node.text);
    if (node instanceof MediaPart) {
      this.#media.push(node.media);
      this.#charsLeft -= node.media.reference.length;
      return node.value;
    }
    if (depth === MAX_DEPTH) {
      this.#isCut = true;
      return '[nested too deeply]';
    }
    return Array.isArray(node) ? this.#list(node, depth + 1) : this.#record(node, depth + 1);
  }

  #text(text: string): string {
    return this.#limit(this.#redact ? this.#redact(text) : text);
  }

  #limit(text: string): string {
    const isWhole = text.length <= Math.max(this.#charsLeft, NEVER_CUT_CHARS);
    const kept = isWhole ? text.toWellFormed() : truncate(text, Math.max(this.#charsLeft, 0));
    this.#isCut ||= !isWhole;
    this.#charsLeft -= kept.length;
    return kept;
  }

  #list(items: readonly unknown[], depth: number): Json {
    const kept: Json[] = [];
    for (const item of items) {
      if (this.#isFull()) return [...kept, `… [${items.length - kept.length} more]`];
      kept.push(this.#walk(item, depth));
    }
    return kept;
  }

  #record(record: object, depth: number): Json {
    const entries = Object.entries(record).filter(([, item]) => item !== undefined);
    const kept: [string, Json][] = [];
    for (const [key, item] of entries) {
      if (this.#isFull()) return Object.fromEntries([...kept, ['…', `[${entries.length - kept.length} more]`]]);
      const isSecret = this.#redact !== undefined && isSecretName(key);
      kept.push([this.#text(key), isSecret ? redactAll(item) : this.#walk(item, depth)]);
    }
    return Object.fromEntries(kept);
  }

  #isFull(): boolean {
    const isFull = this.#charsLeft < -SLACK_CHARS;
    this.#isCut ||= isFull;
    return isFull;
  }
}

/** Redacts the value of a field whose name says that it is secret: one secret, or a list of them. */
function redactAll(value: unknown): Json {
  if (Array.isArray(value)) return value.map(redactAll);
  return value === '' || value === null || typeof value === 'boolean' ? value : REDACTED;
}

/** Returns the text, or its first `maxChars` characters with a mark that says how many are missing. */
function truncate(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text.toWellFormed();
  return `${text.slice(0, maxChars).toWellFormed()}… [${text.length - maxChars} more characters]`;
}

/** Counts the text in a value of any depth. */
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
