import type { Response } from './responses.js';
import type { ModelAccount } from './schema.js';

export interface CompactionTokens {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWritten: number;
}

/**
 * What a compaction cost. Its call writes no line; it shows only in Claude Code's running account, as what the account
 * grew by from one of its lines to the next, less the responses between them.
 */
export class CompactionCost {
  #before: CompactionTokens | undefined;
  #responses: Response[] = [];
  #compactions = 0;

  onResponse(response: Response): void {
    this.#responses.push(response);
  }

  onCompaction(): void {
    this.#compactions += 1;
  }

  /** Undefined where more than one compaction, or a subagent, had a part in it. */
  onAccount(models: { readonly [model: string]: ModelAccount }): CompactionTokens | undefined {
    const before = this.#before;
    const responses = this.#responses;
    const isOne =
      this.#compactions === 1 && !responses.some(({ calls }) => calls.some(({ name }) => STARTS_OTHERS.has(name)));
    this.#before = sum(Object.values(models).map(fromAccount));
    this.#responses = [];
    this.#compactions = 0;
    if (!before || !isOne) return undefined;
    const told = sum(responses.map(fromResponse));
    const tokens = sum([this.#before, negative(before), negative(told)]);
    return Object.values(tokens).every((count) => count >= 0) ? tokens : undefined;
  }
}

const STARTS_OTHERS = new Set(['Agent', 'Task', 'Workflow', 'Skill', 'SendMessage']);

function fromAccount(account: ModelAccount): CompactionTokens {
  const { inputTokens = 0, outputTokens = 0, cacheReadInputTokens = 0, cacheCreationInputTokens = 0 } = account;
  return {
    input: inputTokens,
    output: outputTokens,
    cacheRead: cacheReadInputTokens,
    cacheWritten: cacheCreationInputTokens,
  };
}

function fromResponse({ usage }: Response): CompactionTokens {
  return {
    input: usage?.input_tokens ?? 0,
    output: usage?.output_tokens ?? 0,
    cacheRead: usage?.cache_read_input_tokens ?? 0,
    cacheWritten: usage?.cache_creation_input_tokens ?? 0,
  };
}

function negative({ input, output, cacheRead, cacheWritten }: CompactionTokens): CompactionTokens {
  return { input: -input, output: -output, cacheRead: -cacheRead, cacheWritten: -cacheWritten };
}

function sum(all: readonly CompactionTokens[]): CompactionTokens {
  return all.reduce(
    (total, one) => ({
      input: total.input + one.input,
      output: total.output + one.output,
      cacheRead: total.cacheRead + one.cacheRead,
      cacheWritten: total.cacheWritten + one.cacheWritten,
    }),
    { input: 0, output: 0, cacheRead: 0, cacheWritten: 0 },
  );
}
