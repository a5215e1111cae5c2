import type { OtherLine } from '../file/line.js';
import type { ModelAccount } from '../file/schema.js';
import {
  type Account,
  NO_SESSION_FACTS,
  NO_TOKENS,
  type Response,
  type SessionFacts,
  TITLE_KINDS,
  type Tokens,
} from './turn.js';

/** Collects what lines say about the whole session: its titles, its pull request, and its account of tokens. */
export class SessionFactsCollector {
  #facts: SessionFacts;

  constructor(facts: SessionFacts) {
    this.#facts = facts;
  }

  get facts(): SessionFacts {
    return this.#facts;
  }

  /** Returns what the last compaction used, if the line is an account that shows it. */
  observe(line: OtherLine, responses: () => readonly Response[]): Tokens | undefined {
    const { type, fields, location } = line;
    const { titles, pullRequest, account } = this.#facts;
    if (type === 'pr-link') this.#facts = { ...this.#facts, pullRequest: fields.prUrl ?? pullRequest };
    if (TITLE_KINDS.some((kind) => kind === type))
      this.#facts = { ...this.#facts, titles: { ...titles, [type]: readTitle(line) } };
    if (type !== 'cost-state' || !fields.modelUsage) return undefined;
    const before = withResponses(account, responses());
    const told = sumModelUsage(fields.modelUsage);
    const { hasAgents } = before;
    this.#facts = { ...this.#facts, account: { ...NO_SESSION_FACTS.account, told, line: location.number, hasAgents } };
    return compactionCost(before, told);
  }

  addResponses(responses: readonly Response[]): void {
    this.#facts = { ...this.#facts, account: withResponses(this.#facts.account, responses) };
  }

  addCompaction(): void {
    const { account } = this.#facts;
    this.#facts = { ...this.#facts, account: { ...account, compactions: account.compactions + 1 } };
  }
}

/** The title that a line of one of the `TITLE_KINDS` gives the session. */
export function readTitle({ fields }: OtherLine): string | undefined {
  return fields.customTitle ?? fields.aiTitle ?? fields.summary;
}

const STARTS_AGENTS = new Set(['Agent', 'Task', 'Workflow', 'Skill', 'SendMessage']);

/** Adds to an account what responses have used since its last line. */
function withResponses(account: Account, responses: readonly Response[]): Account {
  const later = responses.filter(({ firstLine }) => firstLine > account.line);
  return {
    ...account,
    since: later.map(usedBy).reduce(plus, account.since),
    hasAgents: account.hasAgents || later.some(({ calls }) => calls.some(({ name }) => STARTS_AGENTS.has(name))),
  };
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

function sumModelUsage(models: { readonly [model: string]: ModelAccount }): Tokens {
  return Object.values(models)
    .map(({ inputTokens = 0, outputTokens = 0, cacheReadInputTokens = 0, cacheCreationInputTokens = 0 }) => ({
      input: inputTokens,
      output: outputTokens,
      cacheRead: cacheReadInputTokens,
      cacheWritten: cacheCreationInputTokens,
    }))
    .reduce(plus, NO_TOKENS);
}

function usedBy({ usage }: Response): Tokens {
  return {
    input: usage?.input_tokens ?? 0,
    output: usage?.output_tokens ?? 0,
    cacheRead: usage?.cache_read_input_tokens ?? 0,
    cacheWritten: usage?.cache_creation_input_tokens ?? 0,
  };
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
