import isSafe from 'safe-regex2';
import * as z from 'zod/mini';
import { REDACTED, type RedactionRule } from '../observations/redaction/redact.js';
import { attempt } from '../shared/attempt.js';
import { parseJson } from '../shared/json.js';

const Rule = z.strictObject({ pattern: z.string(), replace: z._default(z.string(), REDACTED) });

/** Parses the user's own rules. A bad one is reported by its number, without its text, and the others apply. */
export function parseRedactionRules(text: string): { rules: RedactionRule[]; problems: string[] } {
  const items = parseJson(text);
  if (!Array.isArray(items)) return { rules: [], problems: ['expected a JSON array of {"pattern", "replace"}'] };
  const parsed = items.map(parseRule);
  return {
    rules: parsed.filter((rule) => typeof rule !== 'string'),
    problems: parsed.flatMap((rule, index) => (typeof rule === 'string' ? [`rule ${index + 1} ${rule}`] : [])),
  };
}

/** Returns the rule, or what is wrong with it. */
function parseRule(item: unknown): RedactionRule | string {
  const parsed = Rule.safeParse(item);
  if (!parsed.success) return 'is not {"pattern", "replace"}';
  const pattern = attempt(() => new RegExp(parsed.data.pattern, 'g'));
  if (!pattern) return 'is not a valid regular expression';
  if (pattern.test('')) return 'matches empty text';
  // A single text could keep a run busy forever.
  if (!isSafe(pattern)) return 'repeats a repetition, which could take forever';
  return { pattern, replace: parsed.data.replace };
}
