import type { ScoreReport } from '../langfuse/destination.js';
import type { TurnScores } from '../observations/build/scores.js';
import type { Entry } from '../state/entry.js';

interface ScoreTools {
  readonly send: (turns: readonly TurnScores[]) => Promise<ScoreReport>;
  readonly save: (change: Partial<Entry>) => Promise<void>;
  readonly onRefused: (label: string) => void;
}

/**
 * Sends the scores that are due, and gives why some still are. A turn's scores are due from the moment on that the server
 * has taken the turn: the state says so in the same breath, and until they have been taken, too. So they never hold up a
 * turn, and none is lost.
 */
export async function settleScores(
  due: Entry['scores'] = {},
  { send, save, onRefused }: ScoreTools,
): Promise<string | undefined> {
  const turns = Object.entries(due).flatMap(([root, scores]) => (scores ? [{ root, scores }] : []));
  if (turns.length === 0) return undefined;
  const { settled, refused, failure } = await send(turns.map(({ scores }) => scores));
  for (const label of refused) onRefused(label);
  const taken = turns.slice(0, settled).map(({ root }) => [root, undefined]);
  if (taken.length > 0) await save({ scores: Object.fromEntries(taken) });
  return failure && `scores were not taken: ${failure}`;
}
