import type { ToolCall } from '../../transcript/turns/turn.js';

/** Tools that do nothing but ask a person. */
const QUESTIONS = ['AskUserQuestion', 'ExitPlanMode'];
const REFUSED_BY_PERSON = 'user-rejected';

/** Who allowed or refused a call, and why, in Claude Code's own words: `accept by config (rule, userSettings)`. */
export function describePermission({ result }: ToolCall): string | undefined {
  const { decision, source, reasonType, ruleSource, grantScope } = result?.permission ?? {};
  if (decision === undefined) return undefined;
  const reasons = [reasonType, ruleSource, grantScope].filter((reason) => reason !== undefined && reason !== source);
  return [decision, source && `by ${source}`, reasons.length > 0 && `(${reasons.join(', ')})`]
    .filter(Boolean)
    .join(' ');
}

/** Whether a person was asked about a call, or by it. A rule that a person once made asks nobody. */
export function asksPerson({ name, result }: ToolCall): boolean {
  if (!result) return false;
  const { source = '', reasonType } = result.permission ?? {};
  const isDecided = source.startsWith('user_') && reasonType !== 'rule';
  return isDecided || result.denied === REFUSED_BY_PERSON || QUESTIONS.includes(name);
}

/** How long a call waited for a person; undefined if it waited for nobody, or if nothing says how long it ran after that. */
export function findWait(call: ToolCall): number | undefined {
  const { name, at, result } = call;
  if (!result || !asksPerson(call)) return undefined;
  const { durationMs, durationSeconds } = result.details ?? {};
  const ran = durationMs ?? (durationSeconds === undefined ? undefined : durationSeconds * 1_000);
  const hasNotRun = result.denied === REFUSED_BY_PERSON || QUESTIONS.includes(name);
  const known = hasNotRun ? 0 : ran;
  return known === undefined ? undefined : Math.max(0, Math.round(result.at - at - Math.max(0, known)));
}
