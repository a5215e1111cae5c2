import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatDay, formatMoment, plural } from '../../cli/format.js';
import { formatDollars } from '../../cli/format-cost.js';
import { claudeFolder } from '../../config/claude-folder.js';
import type { Budget } from '../../config/setting-formats.js';
import { PRICE_TABLE } from '../../costs/list-prices.js';
import { readAllUsage } from '../../costs/read-usage.js';
import { findTurnStart, readTurnSpending, type Spending, sumSpending, type TurnStart } from '../../costs/spending.js';
import { replaceOwnFile } from '../../shared/atomic-write.js';
import { attempt } from '../../shared/attempt.js';
import { removeOldFiles } from '../../shared/remove-old-files.js';
import { startOfDay } from '../../shared/start-of-day.js';
import { sessionFolder } from '../../state/session-folder.js';
import { BUDGET_OF_ALL, BUDGET_OF_TURN } from './budget-message.js';

/** The sum of a day reads what each session has changed since the last time. */
const DAY_PAUSE_MS = 30_000;
const MARK_KEPT_MS = 2 * 24 * 3_600_000;
/** It rests at least this many times as long as the work took. */
const REST = 10;

interface Watched {
  readonly sessionId: string;
  readonly budget: Budget;
  readonly env: NodeJS.ProcessEnv;
  /** Of the state. */
  readonly folder: string;
}

/**
 * Compares what a turn of a session, and all sessions of a day, have used with the limits of CC_LANGFUSE_BUDGET. If one is passed,
 * it leaves a message for the next hook: once for each turn and day, whichever process sees it first.
 */
export class BudgetWatch {
  readonly #watched: Watched;
  readonly #ofTurn = new Pace(0);
  readonly #ofDay = new Pace(DAY_PAUSE_MS);
  #turn: TurnStart | undefined;

  constructor(watched: Watched) {
    this.#watched = watched;
  }

  /** Looks at the turn of a prompt, or else at the newest. Nothing else fails because of it. */
  look(path: string, hasGrown = true, promptId?: string): void {
    const { turn, day } = this.#watched.budget;
    if (turn !== undefined) this.#ofTurn.run(hasGrown, () => this.#lookAtTurn(path, turn, promptId));
    if (day !== undefined) this.#ofDay.run(hasGrown, () => this.#lookAtDay(day));
  }

  #lookAtTurn(path: string, limit: number, promptId: string | undefined): void {
    this.#turn = findTurnStart(path, this.#turn?.from ?? 0, promptId) ?? this.#turn;
    if (!this.#turn) return;
    const { sessionId, folder } = this.#watched;
    const message = new Message(sessionFolder(folder, sessionId), BUDGET_OF_TURN, this.#turn.id);
    if (message.wasLeft) return;
    const spent = readTurnSpending(path, this.#turn, PRICE_TABLE.findPrices);
    const time = formatMoment(this.#turn.at).slice('2026-11-20 '.length);
    if (spent.dollars > limit)
      message.leave(describe(`the turn of ${time} has used`, spent, `the ${formatDollars(limit)} for a turn`));
  }

  #lookAtDay(limit: number): void {
    const { env, folder } = this.#watched;
    const now = new Date();
    const day = formatDay(now.getTime());
    const message = new Message(folder, BUDGET_OF_ALL, day);
    if (message.wasLeft) return;
    const sessions = readAllUsage(claudeFolder(env), folder);
    const spent = sumSpending(sessions, startOfDay(now), startOfDay(now, 1), PRICE_TABLE.findPrices);
    if (spent.dollars > limit)
      message.leave(describe(`the sessions of ${day} have used`, spent, `the ${formatDollars(limit)} for a day`));
  }
}

/** Work that is done some time after it is wanted: a long turn, or many sessions, must not keep the machine busy. */
class Pace {
  readonly #pauseMs: number;
  #isWanted = false;
  #dueAt = 0;

  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs;
  }

  run(isWanted: boolean, work: () => void): void {
    this.#isWanted ||= isWanted;
    const startedAt = Date.now();
    if (!this.#isWanted || startedAt < this.#dueAt) return;
    this.#isWanted = false;
    attempt(work);
    const endedAt = Date.now();
    this.#dueAt = endedAt + Math.max(this.#pauseMs, (endedAt - startedAt) * REST);
  }
}

function describe(start: string, { dollars, unpricedTokens }: Spending, limit: string): string {
  const missing =
    unpricedTokens > 0 ? `, without ${plural(unpricedTokens, 'token')} of models that the list does not have` : '';
  return `cc-langfuse: ${start} ≈ ${formatDollars(dollars)} at list prices${missing}. That is more than ${limit} in CC_LANGFUSE_BUDGET.`;
}

/** A message for the next hook about one turn or day. Only the process that creates its mark leaves it. */
class Message {
  readonly #folder: string;
  readonly #name: string;
  readonly #mark: string;

  constructor(folder: string, name: string, what: string) {
    this.#folder = folder;
    this.#name = name;
    this.#mark = `${name}-${what.replace(/[^\w-]/g, '_')}`;
  }

  get wasLeft(): boolean {
    return existsSync(join(this.#folder, this.#mark));
  }

  leave(systemMessage: string): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    writeFileSync(join(this.#folder, this.#mark), '', { flag: 'wx', mode: 0o600 });
    // A turn may be counted after the one that follows it, so the newest mark is not the only one that is needed.
    removeOldFiles(this.#folder, `${this.#name}-`, MARK_KEPT_MS);
    replaceOwnFile(join(this.#folder, this.#name), `${JSON.stringify({ systemMessage })}\n`);
  }
}
