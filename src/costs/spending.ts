import { findAgentFiles } from '../transcript/agents/agent-files.js';
import { parseLine } from '../transcript/file/line.js';
import { listAllLines, withReader } from '../transcript/file/lines.js';
import { classifyLine } from '../transcript/turns/classify-line.js';
import { countTokens } from './cost-book.js';
import { type FindPrices, priceUsed } from './list-prices.js';
import { scanSession } from './scan-session.js';
import type { SessionUsage, Use } from './session-usage.js';

/** What some responses cost at list prices. */
export interface Spending {
  readonly dollars: number;
  /** Tokens of models that the list does not have: they are not in the dollars. */
  readonly unpricedTokens: number;
}

/** A turn of a session. */
export interface TurnStart {
  /** The id of its prompt's line. */
  readonly id: string;
  readonly at: number;
  /** The byte at which the prompt begins. */
  readonly from: number;
  /** When the next turn began, if it has. */
  readonly until?: number;
}

const USER = Buffer.from('"type":"user"');
/** Most lines of users are results, and no prompt has one. */
const RESULT = Buffer.from('"type":"tool_result"');
const ASSISTANT = Buffer.from('"type":"assistant"');

/**
 * Finds where a prompt's turn began, or else the newest one, from a byte on; undefined if none began there. Throws if the transcript
 * cannot be read.
 */
export function findTurnStart(path: string, from: number, promptId?: string): TurnStart | undefined {
  return withReader(path, (reader) => {
    reader.moveToLineFrom(from);
    let start: TurnStart | undefined;
    let named: TurnStart | undefined;
    let isAnswered = false;
    const begin = (found: PromptStart) => {
      start = found.turn;
      // In a fork, all prompts that it has copied have the id of its first own one.
      if (promptId !== undefined && found.promptId === promptId) named = start;
      // Prompts that wait together have one answer.
      else if (named && !named.until) named = isAnswered ? { ...named, until: start.at } : start;
      isAnswered = false;
    };
    // A command begins a turn if the model answers it. One such as /goal prints something before.
    let command: PromptStart | undefined;
    for (const source of listAllLines(reader)) {
      const { bytes } = source;
      if (bytes.includes(ASSISTANT)) {
        if (command) begin(command);
        [command, isAnswered] = [undefined, true];
      }
      if (!bytes.includes(USER) || bytes.includes(RESULT)) continue;
      const line = parseLine(source);
      if (line?.kind !== 'user' || line.fields.isSidechain) continue;
      const turn = { id: line.fields.uuid ?? `${source.start}`, at: line.at ?? 0, from: source.start };
      const found = { turn, promptId: line.fields.promptId };
      const { role } = classifyLine(line);
      if (role === 'prompt') begin(found);
      if (role === 'command') command = found;
      else if (role === 'prompt' || role === 'command-output') command = undefined;
    }
    return named ?? start;
  });
}

interface PromptStart {
  readonly turn: TurnStart;
  readonly promptId: string | undefined;
}

/** What a turn has used so far: each response once, and those of subagents that have worked meanwhile. */
export function readTurnSpending(
  path: string,
  { at, from, until = Infinity }: TurnStart,
  findPrices: FindPrices,
): Spending {
  const agents = findAgentFiles(path).filter(({ changedAt }) => changedAt >= at);
  const { responses } = scanSession(path, agents, from);
  const own = [...responses.values()].filter((use) => use.at < until && (!use.isAgent || use.at >= at));
  return priceUses(own, findPrices);
}

/** What all sessions have used from one moment to another, at list prices. */
export function sumSpending(
  sessions: readonly SessionUsage[],
  from: number,
  until: number,
  findPrices: FindPrices,
): Spending {
  const uses = sessions.flatMap((session) => session.uses.filter(({ at }) => at >= from && at < until));
  return priceUses(uses, findPrices);
}

function priceUses(uses: readonly Use[], findPrices: FindPrices): Spending {
  let dollars = 0;
  let unpricedTokens = 0;
  for (const use of uses) {
    const prices = findPrices(use);
    if (prices) dollars += priceUsed(use.used, prices);
    else unpricedTokens += countTokens(use.used);
  }
  return { dollars, unpricedTokens };
}
