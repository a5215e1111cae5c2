import type { Json } from '../../shared/json.js';
import type { MediaFile } from '../model.js';
import { REDACTED } from '../redaction/mark.js';
import type { Redact } from '../redaction/redact.js';
import { isSecretField } from '../redaction/secret-values.js';
import { MediaPart } from './media.js';

/** Text that is sanitized already. It may still be cut, but redacting it again could break it if it is JSON. */
export class SanitizedText {
  constructor(readonly text: string) {}
}

const UNLIMITED = Number.POSITIVE_INFINITY;
const MAX_DEPTH = 100;
/** Texts up to this length, such as roles and ids, are never cut: the mark would be about as long. */
const NEVER_CUT_CHARS = 40;
/** Nor are references to media that were built before: a part of one is none. */
const MEDIA_REFERENCE = /^@@@langfuseMedia:[^@]{1,300}@@@$/;
/** Marks and texts that are never cut may exceed the limit by this much. After that, items are left out. */
const SLACK_CHARS = 10_000;

/** Returns the text without secrets, at most `maxChars` of it and a mark. */
export function sanitizeText(text: string, redact: Redact | undefined, maxChars = UNLIMITED): string {
  return truncate(redact ? redact(text) : text, maxChars);
}

/**
 * Returns the value without secrets, about `maxChars` of all its text, with a mark for whatever is cut. Secrets go first,
 * so that no half of one is left. Every string is well-formed Unicode: one lone surrogate makes Langfuse lose the whole
 * flush that it arrives in, and cutting makes them. `fullChars` is how much text there was, if something was cut.
 */
export function sanitizeValue(value: unknown, redact: Redact | undefined, maxChars = UNLIMITED) {
  const progress: Progress = { charsLeft: maxChars, isCut: false, media: [], redact };
  const kept = sanitizeNode(value, 0, progress);
  return { value: kept, fullChars: progress.isCut ? countChars(value) : undefined, media: progress.media };
}

interface Progress {
  charsLeft: number;
  isCut: boolean;
  readonly media: MediaFile[];
  readonly redact: Redact | undefined;
}

function sanitizeNode(node: unknown, depth: number, progress: Progress): Json {
  if (typeof node === 'string') return keepText(progress.redact ? progress.redact(node) : node, progress);
  if (typeof node === 'boolean' || node === null) return node;
  if (typeof node === 'number') {
    progress.charsLeft -= String(node).length;
    return Number.isFinite(node) ? node : null;
  }
  if (typeof node !== 'object') return null;
  if (node instanceof SanitizedText) return keepText(node.text, progress);
  if (node instanceof MediaPart) {
    progress.media.push(node.media);
    progress.charsLeft -= node.media.reference.length;
    return node.value;
  }
  if (depth === MAX_DEPTH) {
    progress.isCut = true;
    return '[nested too deeply]';
  }
  return Array.isArray(node) ? sanitizeList(node, depth + 1, progress) : sanitizeRecord(node, depth + 1, progress);
}

function keepText(text: string, progress: Progress): string {
  const isWhole = text.length <= Math.max(progress.charsLeft, NEVER_CUT_CHARS) || MEDIA_REFERENCE.test(text);
  const kept = isWhole ? text.toWellFormed() : truncate(text, Math.max(progress.charsLeft, 0));
  progress.isCut ||= !isWhole;
  progress.charsLeft -= kept.length;
  return kept;
}

function sanitizeList(items: readonly unknown[], depth: number, progress: Progress): Json {
  const kept: Json[] = [];
  for (const item of items) {
    if (isFull(progress)) return [...kept, `… [${items.length - kept.length} more]`];
    kept.push(sanitizeNode(item, depth, progress));
  }
  return kept;
}

function sanitizeRecord(record: object, depth: number, progress: Progress): Json {
  const entries = Object.entries(record).filter(([, item]) => item !== undefined);
  const label = findLabel(entries);
  const kept: [string, Json][] = [];
  for (const [key, item] of entries) {
    if (isFull(progress)) return Object.fromEntries([...kept, ['…', `[${entries.length - kept.length} more]`]]);
    const isSecret = progress.redact !== undefined && isSecretField(key === 'value' ? label : key, item);
    const name = keepText(progress.redact ? progress.redact(key) : key, progress);
    kept.push([name, isSecret ? redactAll(item) : sanitizeNode(item, depth, progress)]);
  }
  return Object.fromEntries(kept);
}

const MAX_LABEL_CHARS = 128;

/** The name of `value`, as in `{ "name": "API_TOKEN", "value": "…" }`. */
function findLabel(entries: readonly [string, unknown][]): string {
  const [, label] = entries.find(([key]) => key === 'name' || key === 'key') ?? [];
  return typeof label === 'string' && label.length <= MAX_LABEL_CHARS ? label : 'value';
}

function isFull(progress: Progress): boolean {
  const isFull = progress.charsLeft < -SLACK_CHARS;
  progress.isCut ||= isFull;
  return isFull;
}

/** Redacts the value of a field whose name says that it is secret: one secret, or a list of them. */
function redactAll(value: unknown): Json {
  if (Array.isArray(value)) return value.map(redactAll);
  return value === '' || value === null || typeof value === 'boolean' ? value : REDACTED;
}

function truncate(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text.toWellFormed();
  return `${text.slice(0, maxChars).toWellFormed()}… [${text.length - maxChars} more characters]`;
}

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
