import type { EntryWriter } from './entry-writer.js';
import type { ExportContext } from './export-request.js';
import type { Outbox } from './outbox.js';

/**
 * Sends the scores that are due, and returns why some still are. The state records a turn's scores as due in the same change that
 * records the turn as acknowledged, and until they are acknowledged themselves: so they never hold up a turn, and none is lost.
 */
export async function sendDueScores(
  sessionId: string,
  { state, destination, log }: ExportContext,
  writer: EntryWriter,
  { limits }: Outbox,
): Promise<string | undefined> {
  const due = Object.entries(state.read(sessionId)?.scores ?? {}).flatMap(([root, scores]) =>
    scores ? [{ root, scores }] : [],
  );
  if (due.length === 0) return undefined;
  const turns = due.map(({ scores }) => scores);
  const { settled, refused, failure } = await destination.sendScores(turns, limits);
  for (const score of refused) log.warn('the server refuses a score, it is skipped', { session: sessionId, score });
  const taken = due.slice(0, settled).map(({ root }) => [root, undefined]);
  if (taken.length > 0) await writer.save({ scores: Object.fromEntries(taken) });
  return failure && `scores were not sent: ${failure}`;
}
