import type { Json } from './model.js';

export interface Limited {
  readonly value: Json;
  /** How long the field's text was before it was cut; undefined where nothing was cut. */
  readonly fullChars: number | undefined;
}

const DEEPEST = 100;
/** What is no longer than a mark, a role or an id, is not worth one. */
const NEVER_CUT_CHARS = 40;

/**
 * Makes a value fit to be sent: at most `maxChars` characters of text in all, what is cut carries a mark; every string is
 * well-formed Unicode, since one lone surrogate makes Langfuse lose the whole flush it arrives in (and cutting makes them).
 */
export function limited(value: unknown, maxChars: number): Limited {
  let left = maxChars;
  let fullChars = 0;
  const limitedText = (text: string): string => {
    fullChars += text.length;
    const start = text.length <= NEVER_CUT_CHARS ? text.toWellFormed() : cut(text, left);
    left = Math.max(0, left - text.length);
    return start;
  };
  const walk = (node: unknown, depth: number): Json => {
    if (typeof node === 'string') return limitedText(node);
    if (typeof node === 'boolean' || node === null) return node;
    if (typeof node === 'number') return Number.isFinite(node) ? node : null;
    if (typeof node !== 'object') return null;
    if (depth === DEEPEST) return '[nested too deeply]';
    if (Array.isArray(node)) return node.map((item) => walk(item, depth + 1));
    return Object.fromEntries(
      Object.entries(node)
        .filter(([, item]) => item !== undefined)
        .map(([key, item]) => [key.toWellFormed(), walk(item, depth + 1)]),
    );
  };
  const kept = walk(value, 0);
  return { value: kept, fullChars: fullChars > maxChars ? fullChars : undefined };
}

/** The text, or its first `maxChars` characters with a mark that says how much is missing. */
export function cut(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text.toWellFormed();
  return `${text.slice(0, maxChars).toWellFormed()}… [${text.length - maxChars} more characters]`;
}
