import { listAccountSteps } from './account-steps.js';
import { readUsageWithParents } from './read-usage.js';
import type { SessionCost } from './turn-costs.js';

/** Reads what one session cost; undefined if it has no account. */
export function readSessionCost(path: string): SessionCost | undefined {
  const sessions = readUsageWithParents(path);
  const session = sessions.find((each) => each.path === path);
  if (!session || session.points.length === 0) return undefined;
  const byId = new Map(sessions.map((each) => [each.sessionId, each]));
  const spans = new Map<string, SessionCost['spans'][number]>();
  for (const { after, at, dollars } of listAccountSteps(session, byId)) {
    const key = `${after} ${at}`;
    spans.set(key, { after, until: at, dollars: dollars + (spans.get(key)?.dollars ?? 0) });
  }
  return {
    dollars: [...spans.values()].reduce((sum, { dollars }) => sum + dollars, 0),
    hasMore: session.uses.some(({ point }) => point === undefined),
    spans: [...spans.values()],
  };
}
