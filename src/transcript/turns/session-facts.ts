import type { OtherLine } from '../file/line.js';
import type { ModelAccount } from '../file/schema.js';
import { groupTokens, NO_TOKENS, type Tokens } from '../file/token-kinds.js';
import { addExactUsage, type CompactionUsage, findCompactionUsage, listUses, readModels } from './compaction-usage.js';
import { NOTE_KINDS } from './note-kinds.js';
import { NO_SESSION_FACTS, type NoteContent, type Response, type SessionFacts, TITLE_KINDS } from './turn.js';

type Account = SessionFacts['account'];

/** Adds what a line says about the session. If the line is an account of its tokens, it can also show what a compaction used. */
export function addFacts(
  facts: SessionFacts,
  line: OtherLine,
  responses: () => readonly Response[],
): { facts: SessionFacts; compaction?: { tokens: Tokens; exact: CompactionUsage | undefined } | undefined } {
  const { type, fields, location } = line;
  if (type === 'pr-link') return { facts: { ...facts, pullRequest: fields.prUrl ?? facts.pullRequest } };
  if (TITLE_KINDS.some((kind) => kind === type))
    return { facts: { ...facts, titles: { ...facts.titles, [type]: readTitle(line) } } };
  if (type !== 'cost-state' || !fields.modelUsage) return { facts };
  const { account: before } = addResponses(facts, responses());
  const told = Object.values(fields.modelUsage).map(usedByModel).reduce(plus, NO_TOKENS);
  const models = readModels(fields.modelUsage);
  const account = { ...NO_SESSION_FACTS.account, told, models, line: location.number, hasAgents: before.hasAgents };
  const tokens = compactionCost(before, told);
  const compaction = tokens && { tokens, exact: findCompactionUsage(before, fields.modelUsage) };
  return { facts: { ...facts, account }, compaction };
}

/** The title that a line of one of the `TITLE_KINDS` gives the session. */
export function readTitle({ fields }: OtherLine): string | undefined {
  return fields.customTitle ?? fields.aiTitle ?? fields.summary;
}

/** The title that counts: one by the user before one by the program. */
export function findTitle(titles: SessionFacts['titles']): string | undefined {
  return TITLE_KINDS.map((kind) => titles[kind]).find((title) => title !== undefined);
}

/** Adds what a note says about the account. */
export function addNote(facts: SessionFacts, note: NoteContent): SessionFacts {
  const { account } = facts;
  if (note.kind === 'compaction') return { ...facts, account: { ...account, compactions: account.compactions + 1 } };
  // The agent of a command uses tokens, too.
  if (note.kind === 'command-result') return markAccountAsShared(facts);
  return account.models && NOTE_KINDS[note.kind].mayHideUsage
    ? { ...facts, account: { ...account, isUnclear: true } }
    : facts;
}

const STARTS_AGENTS = new Set(['Agent', 'Task', 'Workflow', 'Skill', 'SendMessage']);

/** Adds to the account what responses have used since its last line. */
export function addResponses(facts: SessionFacts, responses: readonly Response[]): SessionFacts {
  const { account } = facts;
  const later = responses.filter(({ firstLine }) => firstLine > account.line);
  const since = later.flatMap(listUses).reduce((sum, { usage }) => plus(sum, groupTokens(usage)), account.since);
  const hasAgents = later.some(({ calls }) => calls.some(({ name }) => STARTS_AGENTS.has(name)));
  const exact = addExactUsage(account, later);
  return { ...facts, account: { ...account, since, hasAgents: account.hasAgents || hasAgents, ...exact } };
}

/** Another process uses tokens, too, and keeps an account of its own. */
export function markAccountAsShared(facts: SessionFacts): SessionFacts {
  return { ...facts, account: { ...facts.account, hasAgents: true } };
}

/**
 * What a compaction used. Its call writes no line: it shows only in how much the account grew from one of its lines to the
 * next, minus what the responses in between used. Undefined if something else may have contributed.
 */
function compactionCost({ told, since, compactions, hasAgents }: Account, now: Tokens): Tokens | undefined {
  if (!told || compactions !== 1 || hasAgents) return undefined;
  const cost = minus(minus(now, told), since);
  return Object.values(cost).every((count) => count >= 0) ? cost : undefined;
}

/** Whether a later account may show what the last compaction used. */
export function mayShowCompaction({ account: { told, compactions, hasAgents } }: SessionFacts): boolean {
  return told !== undefined && compactions === 1 && !hasAgents;
}

/** Where each field of an account counts; the two about how long cache writes live are in their sum. */
const GROUP_OF_FIELD = {
  inputTokens: 'input',
  outputTokens: 'output',
  cacheReadInputTokens: 'cacheRead',
  cacheCreationInputTokens: 'cacheWritten',
  cacheCreationEphemeral5mInputTokens: undefined,
  cacheCreationEphemeral1hInputTokens: undefined,
} as const satisfies { readonly [field in keyof ModelAccount]-?: keyof Tokens | undefined };

function usedByModel(used: ModelAccount): Tokens {
  const sums = { ...NO_TOKENS };
  for (const [field, group] of Object.entries(GROUP_OF_FIELD))
    if (group !== undefined) sums[group] += used[field as keyof ModelAccount] ?? 0;
  return sums;
}

function plus(a: Tokens, b: Tokens): Tokens {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWritten: a.cacheWritten + b.cacheWritten,
  };
}

function minus(a: Tokens, { input, output, cacheRead, cacheWritten }: Tokens): Tokens {
  return plus(a, { input: -input, output: -output, cacheRead: -cacheRead, cacheWritten: -cacheWritten });
}
