import { createContext, Script } from 'node:vm';
import * as z from 'zod/mini';
import { REDACTED } from '../observations/redaction/mark.js';
import { type Redact, RedactionError } from '../observations/redaction/redact.js';
import { attempt } from '../shared/attempt.js';
import { parseJson } from '../shared/json.js';
import { memoize } from '../shared/memoize.js';

const Rule = z.strictObject({
  pattern: z.string(),
  replace: z._default(z.string(), REDACTED),
  flags: z._default(z.string().check(z.regex(/^(?!.*(.).*\1)[imsu]*$/)), ''),
});

interface RedactionRule {
  readonly number: number;
  readonly pattern: RegExp;
  readonly replace: string;
}

export interface OwnRules {
  /** Throws a RedactionError if a rule is bad or takes too long: nothing may pass that the user wanted redacted. */
  readonly redact: Redact;
  /** What is wrong with the rules, by their numbers and without their texts. */
  readonly problems: readonly string[];
}

/** A process that exports many sessions checks the same rules once, and limits their time as a whole. */
export const parseRedactionRules = memoize(prepareRules);

function prepareRules(text: string): OwnRules {
  const items = parseJson(text);
  const parsed = Array.isArray(items)
    ? items.map((item, index) => parseRule(item, index + 1))
    : ['expected a JSON array of {"pattern", "replace", "flags"}'];
  const rules = parsed.filter((rule) => typeof rule !== 'string');
  const bad = parsed.filter((rule) => typeof rule === 'string');
  const problems = [...bad, ...rules.flatMap((rule) => findFault(rule) ?? [])];
  return { redact: problems.length === 0 ? createRuleRedactor(rules) : refuse(problems.join('; ')), problems };
}

/** Returns the rule, or what is wrong with it. */
function parseRule(item: unknown, number: number): RedactionRule | string {
  const parsed = Rule.safeParse(item);
  if (!parsed.success) return `rule ${number} is not {"pattern", "replace", "flags"}, with flags of i, m, s and u`;
  const { pattern: source, replace, flags } = parsed.data;
  const pattern = attempt(() => new RegExp(source, `g${flags}`));
  return pattern ? { number, pattern, replace } : `rule ${number} is not a valid regular expression`;
}

const SAMPLE_CHARS = 500;
const SAMPLES_MS = 500;
const NASTY = ['a', 'A', '0', 'a0', '_', '-', '.', ' ', '/', '@', '"', '\n', 'é'];
const MAX_OWN_SAMPLES = 40;

/** Tries a rule on texts that make careless rules backtrack, some of them made of the rule's own characters. */
function findFault({ number, pattern, replace }: RedactionRule): string | undefined {
  const own = new Set([...(pattern.source.match(/\w+/g) ?? []), ...pattern.source]);
  const units = [...NASTY, ...[...own].slice(0, MAX_OWN_SAMPLES)];
  const samples = units.map((unit) => `${unit.repeat(Math.ceil(SAMPLE_CHARS / unit.length))}\0`);
  try {
    runWithin(SAMPLES_MS, () => {
      for (const sample of samples) sample.replace(pattern, replace);
    });
    return pattern.test('') ? `rule ${number} matches empty text` : undefined;
  } catch (error) {
    return describeFault(number, error);
  }
}

function describeFault(number: number, error: unknown): string {
  return `rule ${number} ${isTimeout(error) ? 'takes too long' : 'fails on a text'}`;
}

// What the rules may take in a whole run: two seconds, and for the texts so far ten times as long as a usual rule needs.
const BASE_MS = 2_000;
const MS_PER_MILLION_CHARS = 50;

function createRuleRedactor(rules: readonly RedactionRule[]): Redact {
  let msLeft = BASE_MS;
  let refusal: Redact | undefined;
  return withShortTexts((text) => {
    if (refusal) return refusal(text);
    msLeft += (text.length / 1_000_000) * MS_PER_MILLION_CHARS * rules.length;
    let number = 0;
    try {
      return runWithin(msLeft, () => {
        const startedAt = performance.now();
        let rest = text;
        for (const rule of rules) {
          number = rule.number;
          rest = rest.replace(rule.pattern, rule.replace);
        }
        msLeft -= performance.now() - startedAt;
        return rest;
      });
    } catch (error) {
      refusal = refuse(describeFault(number, error));
      return refusal(text);
    }
  });
}

function refuse(problem: string): Redact {
  return () => {
    throw new RedactionError(`CC_LANGFUSE_REDACT_EXTRA: ${problem}`);
  };
}

const SHORT_CHARS = 100;
const MAX_SHORT_TEXTS = 2_000;

/** Most texts are roles, names and keys that repeat, and starting the timer takes longer than redacting them. */
function withShortTexts(redact: Redact): Redact {
  const redacted = new Map<string, string>();
  return (text) => {
    if (text.length > SHORT_CHARS) return redact(text);
    const result = redacted.get(text) ?? redact(text);
    if (redacted.size === MAX_SHORT_TEXTS) redacted.clear();
    redacted.set(text, result);
    return result;
  };
}

const context = createContext({ action: () => {} });
const script = new Script('action()');

/** Returns what an action returns. It is stopped if it takes longer, even if it backtracks: a timer could not interrupt it. */
function runWithin<T>(ms: number, action: () => T): T {
  context.action = action;
  return script.runInContext(context, { timeout: Math.max(1, Math.ceil(ms)) });
}

function isTimeout(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
}
