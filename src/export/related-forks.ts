import { readUserUuids } from '../transcript/sessions/related-sessions.js';
import type { ExportContext } from './export-request.js';

/**
 * Returns the prompts of turns that related sessions have exported. Up to 2.1.197 nothing marks a fork, except that it begins
 * with the same prompt as another session.
 */
export function findTurnsOfRelatedForks(
  firstPrompt: string,
  sessionId: string,
  { state, destinationId }: ExportContext,
): ReadonlySet<string> {
  const related = state
    .sessionsWithFirst(firstPrompt, sessionId)
    .filter(([, entry]) => entry.destination === destinationId);
  const exported = related.map(([, { path, lastLine, copiedLine = 0 }]) => {
    try {
      return path === undefined ? [] : readUserUuids(path, copiedLine, lastLine);
    } catch {
      // The file is gone; at least its first turn was exported.
      return [firstPrompt];
    }
  });
  return new Set(exported.flatMap((uuids) => [...uuids]));
}
