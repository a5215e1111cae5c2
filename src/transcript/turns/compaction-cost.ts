import type { ModelAccount } from '../file/schema.js';
import { type Account, NO_TOKENS, type Response, type Tokens } from './turn.js';

/** The account, with a turn's responses added to what was used since its last line. */
export function withResponses(account: Account, responses: readonly Response[]): Account {
  const since = responses.filter(({ firstLine }) => firstLine > account.line);
  return {
    ...account,
    since: [account.since, ...since.map(usedBy)].reduce(plus),
    hasAgents: account.hasAgents || since.some(({ calls }) => calls.some(({ name }) => STARTS_AGENTS.has(name))),
  };
}

/**
 * What a compaction cost. Its call writes no line; it shows only as what the account grew by from one of its lines to the
 * next, less what the responses between them used. Undefined where something else had a part in it.
 */
export function compactionCost({ told, since, compactions, hasAgents }: Account, now: Tokens): Tokens | undefined {
  if (!told || compactions !== 1 || hasAgents) return undefined;
  const cost = [now, negative(told), negative(since)].reduce(plus);
  return Object.values(cost).every((count) => count >= 0) ? cost : undefined;
}

export function sumModelUsage(models: { readonly [model: string]: ModelAccount }): Tokens {
  return Object.values(models)
    .map(({ inputTokens = 0, outputTokens = 0, cacheReadInputTokens = 0, cacheCreationInputTokens = 0 }) => ({
      input: inputTokens,
      output: outputTokens,
      cacheRead: cacheReadInputTokens,
      cacheWritten: cacheCreationInputTokens,
    }))
    .reduce(plus, NO_TOKENS);
}

const STARTS_AGENTS = new Set(['Agent', 'Task', 'Workflow', 'Skill', 'SendMessage']);

function usedBy({ usage }: Response): Tokens {
  return {
    input: usage?.input_tokens ?? 0,
    output: usage?.output_tokens ?? 0,
    cacheRead: usage?.cache_read_input_tokens ?? 0,
    cacheWritten: usage?.cache_creation_input_tokens ?? 0,
  };
}

function negative({ input, output, cacheRead, cacheWritten }: Tokens): Tokens {
  return { input: -input, output: -output, cacheRead: -cacheRead, cacheWritten: -cacheWritten };
}

function plus(a: Tokens, b: Tokens): Tokens {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWritten: a.cacheWritten + b.cacheWritten,
  };
}
