import { readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../../shared/attempt.js';
import { sessionFolder } from '../../state/session-folder.js';

// hook.sh has the same names, and does the same by hand.

/** In the session's folder: that the limit for a turn is passed. */
export const BUDGET_OF_TURN = 'budget';
/** In the folder of the state: that the limit for a day is passed. */
export const BUDGET_OF_ALL = 'cc-langfuse_budget';

/** Takes what a process in the background has left for the terminal, as Claude Code expects it. No other hook shows it, too. */
export function takeBudgetMessage(folder: string, sessionId: string): string | undefined {
  for (const path of [join(sessionFolder(folder, sessionId), BUDGET_OF_TURN), join(folder, BUDGET_OF_ALL)]) {
    const taken = `${path}.${process.pid}`;
    const text = attempt(() => {
      renameSync(path, taken);
      return readFileSync(taken, 'utf8');
    });
    rmSync(taken, { force: true });
    if (text !== undefined) return text;
  }
  return undefined;
}
