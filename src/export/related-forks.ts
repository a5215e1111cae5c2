import type { SessionState } from '../state/store.js';
import { readUserUuids } from '../transcript/sessions/related-sessions.js';

/**
 * Up to 2.1.197 a fork bears no mark: it begins with the same prompt as another session. What that one has exported is not
 * exported again.
 */
export function turnsOfFamily(
  first: string,
  { sessionId }: { readonly sessionId: string },
  { store, destination }: { readonly store: SessionState; readonly destination: string },
): ReadonlySet<string> {
  const relatives = store.sessionsWithFirst(first, sessionId).filter(([, entry]) => entry.destination === destination);
  const exported = relatives.map(([, { path, last_line, copied_line = 0 }]) => {
    try {
      return path === undefined ? [] : readUserUuids(path, copied_line, last_line);
    } catch {
      // gone by now; at least its first turn was exported
      return [first];
    }
  });
  return new Set(exported.flatMap((uuids) => [...uuids]));
}
