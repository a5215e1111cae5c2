import type { Line } from '../file/line.js';
import type { OtherLine } from '../file/schema.js';
import { compactionCost, sumModelUsage, withResponses } from './compaction-cost.js';
import {
  NO_SESSION_FACTS,
  type Response,
  type SessionFacts,
  TITLE_KINDS,
  type TitleKind,
  type Tokens,
} from './turn.js';

/** Takes in what lines of their own tell of a session: its titles, its pull request, and its account of tokens. */
export class SessionFactsCollector {
  #facts: SessionFacts;

  constructor(facts: SessionFacts) {
    this.#facts = facts;
  }

  get all(): SessionFacts {
    return this.#facts;
  }

  see({ type, fields }: Extract<Line, { kind: 'other' }>): void {
    const { titles, pullRequest } = this.#facts;
    if (type === 'pr-link') this.#facts = { ...this.#facts, pullRequest: fields.prUrl ?? pullRequest };
    if (!isTitle(type)) return;
    const title = fields.customTitle ?? fields.aiTitle ?? fields.summary;
    this.#facts = { ...this.#facts, titles: { ...titles, [type]: title } };
  }

  /** Takes in an account; gives what the last compaction cost, where that follows from it and what was answered since. */
  settle(
    modelUsage: NonNullable<OtherLine['modelUsage']>,
    line: number,
    responses: readonly Response[],
  ): Tokens | undefined {
    const told = sumModelUsage(modelUsage);
    const account = withResponses(this.#facts.account, responses);
    this.#facts = {
      ...this.#facts,
      account: { ...NO_SESSION_FACTS.account, told, line, hasAgents: account.hasAgents },
    };
    return compactionCost(account, told);
  }

  addResponses(responses: readonly Response[]): void {
    this.#facts = { ...this.#facts, account: withResponses(this.#facts.account, responses) };
  }

  addCompaction(): void {
    const { account } = this.#facts;
    this.#facts = { ...this.#facts, account: { ...account, compactions: account.compactions + 1 } };
  }
}

function isTitle(type: string): type is TitleKind {
  return TITLE_KINDS.some((kind) => kind === type);
}
