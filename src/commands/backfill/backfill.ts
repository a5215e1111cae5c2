import { describingVariables, readSessionSettings } from '../../config/settings.js';
import type { ExportContext } from '../../export/export-request.js';
import { IDLE_MS } from '../../export/read-turns.js';
import { exportSession } from '../../export/session.js';
import { NOTHING, sumTallies, type Tally } from '../../export/tally.js';
import { type Entry, isForDestination } from '../../state/entry.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { findFirstPromptUuid } from '../../transcript/sessions/related-sessions.js';
import type { ProgressReport } from './progress.js';

export type Outcome =
  | { readonly kind: 'exported'; readonly sent: Tally }
  | { readonly kind: 'already there' }
  | { readonly kind: 'skipped'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly sent: Tally }
  | { readonly kind: 'stopped'; readonly sent: Tally }
  | { readonly kind: 'not tried' };

export interface SessionResult {
  readonly session: SessionOverview;
  readonly outcome: Outcome;
}

interface BackfillContext extends Omit<ExportContext, 'given' | 'deadline' | 'observer'> {
  readonly env: NodeJS.ProcessEnv;
  readonly stop: AbortSignal;
  readonly concurrency: number;
  /** Send again what has been sent. */
  readonly force: boolean;
  /** Also export the last turn of a session that is still being written. */
  readonly includeOpen: boolean;
  readonly progress: ProgressReport | undefined;
}

/** A server that fails this many sessions in a row will not accept the next one. */
const FAILURES_IN_A_ROW = 3;

/** Exports sessions, several at a time; returns their outcomes in the order of the sessions. */
export async function backfill(
  sessions: readonly SessionOverview[],
  context: BackfillContext,
): Promise<readonly SessionResult[]> {
  const results = new Map<SessionOverview, SessionResult>();
  const waiting = groupRelated(sessions);
  let failures = 0;
  const work = async () => {
    for (let group = waiting.shift(); group; group = waiting.shift()) {
      for (const session of group) {
        const isOver = context.stop.aborted || failures >= FAILURES_IN_A_ROW;
        const outcome: Outcome = isOver ? { kind: 'not tried' } : await backfillSession(session, context);
        if (outcome.kind === 'failed' && !context.destination.isHealthy) failures += 1;
        else if (outcome.kind === 'exported') failures = 0;
        results.set(session, { session, outcome });
        context.progress?.end(session);
      }
    }
  };
  await Promise.all(Array.from({ length: context.concurrency }, work));
  return sessions.flatMap((session) => results.get(session) ?? []);
}

/**
 * Groups sessions that begin with the same prompt, oldest first. Up to 2.1.197 nothing else marks a fork, and what its origin has
 * exported must be known before the fork is exported.
 */
function groupRelated(sessions: readonly SessionOverview[]): SessionOverview[][] {
  const startOf = ({ startedAt, bornAt }: SessionOverview) => startedAt ?? bornAt;
  const byPrompt = new Map<string, SessionOverview[]>();
  const oldestFirst = sessions.toSorted(
    (a, b) => startOf(a) - startOf(b) || a.bornAt - b.bornAt || a.lastActivityAt - b.lastActivityAt,
  );
  for (const session of oldestFirst) {
    const key = session.firstPrompt ?? findFirstPromptUuid(session.path) ?? session.path;
    byPrompt.set(key, [...(byPrompt.get(key) ?? []), session]);
  }
  return [...byPrompt.values()];
}

async function backfillSession(session: SessionOverview, context: BackfillContext): Promise<Outcome> {
  const { sessionId, path } = session;
  const { state, log, force, destinationId, progress } = context;
  const known = state.read(sessionId);
  if (known && !force && destinationId !== '' && !isForDestination(known, destinationId))
    return { kind: 'skipped', reason: 'was exported to another project; --force also sends it to this one' };
  progress?.begin(session, force ? 0 : (known?.offset ?? 0));
  const isIdle = Date.now() - session.changedAt > IDLE_MS;
  const agents = { running: new Set<string>(), sessionEnded: false, includeLegacyFiles: isIdle };
  const closing = { kind: context.includeOpen ? 'everything' : 'nothing' } as const;
  let sent = NOTHING;
  const observer = {
    onRead: (offset: number) => progress?.read(session, offset),
    onAcknowledged: (acknowledged: Tally) => {
      sent = sumTallies([sent, acknowledged]);
      progress?.acknowledged(acknowledged);
    },
  };
  try {
    const own = await settingsFor(force ? undefined : known?.given, context);
    const { failure, isStopped } = await exportSession(
      { sessionId, path, occasion: 'backfill', closing, agents, force },
      { ...context, ...own, deadline: Number.POSITIVE_INFINITY, observer },
    );
    if (isStopped) return { kind: 'stopped', sent };
    if (failure !== undefined) return { kind: 'failed', reason: failure, sent };
    if (sent.observations > 0) return { kind: 'exported', sent };
    if ((known?.turnCount ?? 0) > 0) return { kind: 'already there' };
    return { kind: 'skipped', reason: whyNothing(isIdle || context.includeOpen, state.read(sessionId)) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    log.error(reason, { session: sessionId, file: path });
    return { kind: 'failed', reason, sent };
  }
}

/** A session is sent under the settings of its own runs. */
async function settingsFor(given: Entry['given'], { env, settings }: BackfillContext) {
  return given ? readSessionSettings(given, env) : { settings, given: describingVariables(env) };
}

function whyNothing(isComplete: boolean, entry: Entry | undefined): string {
  if (!isComplete) return 'is still being written; --include-open exports its last turn';
  const hasCopiedTurns = (entry?.turnCount ?? 0) > 0;
  return hasCopiedTurns ? 'has only turns that were copied from another session' : 'has no answered turn';
}
