import { WAITED_FOR } from '../src/commands/preview/text.js';
import { countTokensByKind, findRoot, type ShownTurn, TOKEN_NAMES } from '../src/commands/preview/view-model.js';
import type { Share } from './share-chart.js';

/** The tokens of turns by kind. */
export function listTokens(turns: readonly Pick<ShownTurn, 'observations'>[]): Share[] {
  const tokens = countTokensByKind(turns.flatMap(({ observations }) => observations));
  return tokens.map(({ kind, tokens: amount }) => ({ kind, name: TOKEN_NAMES[kind], amount }));
}

/** What turns waited for, and how long. */
export function listTimes(turns: readonly Pick<ShownTurn, 'observations'>[]): Share[] {
  const waits = turns.map((turn) => findRoot(turn)?.metadata ?? {});
  return Object.entries(WAITED_FOR).flatMap(([kind, name]) => {
    const amount = waits.reduce((sum, { [kind]: ms }) => sum + (typeof ms === 'number' ? ms : 0), 0);
    return amount > 0 ? [{ kind, name, amount }] : [];
  });
}
