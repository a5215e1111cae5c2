import isSafe from 'safe-regex2';
import * as z from 'zod/mini';
import { REDACTED, type RedactionRule } from '../observations/redaction/redact.js';
import { parseJson } from '../shared/json.js';

const Rule = z.strictObject({ pattern: z.string(), replace: z._default(z.string(), REDACTED) });

/** The user's own rules; a bad one is named, by its place and without what it says, and the others hold. */
export function readRules(text: string): { rules: RedactionRule[]; problems: string[] } {
  const items = parseJson(text);
  if (!Array.isArray(items)) return { rules: [], problems: ['expected a JSON array of {"pattern", "replace"}'] };
  const rules: RedactionRule[] = [];
  const problems: string[] = [];
  for (const [index, item] of items.entries()) {
    const rule = readRule(item);
    if (typeof rule === 'string') problems.push(`rule ${index + 1} ${rule}`);
    else rules.push(rule);
  }
  return { rules, problems };
}

function readRule(item: unknown): RedactionRule | string {
  const parsed = Rule.safeParse(item);
  if (!parsed.success) return 'is not {"pattern", "replace"}';
  const { pattern, replace } = parsed.data;
  const rule = regularExpression(pattern);
  if (!rule) return 'is no regular expression';
  if (rule.test('')) return 'matches where there is nothing';
  // One text would be enough to keep a run busy for ever.
  if (!isSafe(rule)) return 'repeats what is repeated, which may take for ever';
  return { pattern: rule, replace };
}

function regularExpression(pattern: string): RegExp | undefined {
  try {
    return new RegExp(pattern, 'g');
  } catch {
    return undefined;
  }
}
