import { type FolderSettings, readCommandSettings } from '../../config/folder-settings.js';
import { describingVariables, readSettings } from '../../config/settings.js';
import type { ExportContext } from '../../export/export-request.js';
import { isReadByOlder } from '../../export/overlooked.js';
import { IDLE_MS } from '../../export/read-turns.js';
import { exportSession } from '../../export/session.js';
import { NOTHING, sumTallies, type Tally } from '../../export/tally.js';
import { isUnchanged } from '../../export/unchanged.js';
import { fingerprint } from '../../langfuse/open-destination.js';
import { attempt } from '../../shared/attempt.js';
import { groupBy } from '../../shared/group-by.js';
import { memoize } from '../../shared/memoize.js';
import type { Entry } from '../../state/entry.js';
import { isMutedNow, listRuns } from '../../state/runs.js';
import { AgentFolders } from '../../transcript/agents/agent-files.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { FirstPrompts, findFirstPromptUuid } from '../../transcript/sessions/related-sessions.js';
import type { ProgressReport } from './progress.js';
import type { BackfillRequest } from './request.js';

/** In the order of the report. */
export const OUTCOMES = ['exported', 'already there', 'skipped', 'failed', 'stopped', 'not tried'] as const;
export type BackfillOutcome = (typeof OUTCOMES)[number];

export interface SessionResult {
  readonly session: SessionOverview;
  readonly outcome: BackfillOutcome;
  /** Why it was skipped or failed. */
  readonly reason?: string | undefined;
  /** Whether it failed on this machine, which says nothing about the server. */
  readonly isLocal?: boolean;
  /** Whether an older version has read what was sent of it before. */
  readonly isReadAgain?: boolean;
  /** How many parts of it, if anything was sent now, have their prompt or call in no file. */
  readonly strays?: number;
  readonly sent: Tally;
}

interface BackfillContext extends Omit<ExportContext, 'deadline' | 'observer'> {
  readonly request: BackfillRequest;
  /** The environment of the shell. */
  readonly shell: NodeJS.ProcessEnv;
  readonly stop: AbortSignal;
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
  const readFolder = memoize((folder: string) => readCommandSettings(context.shell, folder));
  // What is found of a folder counts for all sessions in it.
  const shared = { agentFolders: new AgentFolders(), firstPrompts: new FirstPrompts() };
  let failures = 0;
  const work = async () => {
    for (let group = waiting.shift(); group; group = waiting.shift()) {
      for (const session of group) {
        const isOver = context.stop.aborted || failures >= FAILURES_IN_A_ROW;
        const notTried = { session, outcome: 'not tried', sent: NOTHING } as const;
        const there = () => readFolder(session.folders[0] ?? '');
        const result = isOver ? notTried : await backfillSession(session, await there(), { ...context, ...shared });
        if (result.outcome === 'failed' && !result.isLocal && !context.destination.health.isHealthy) failures += 1;
        else if (result.outcome === 'exported') failures = 0;
        results.set(session, result);
        context.progress?.end(session);
      }
    }
  };
  await Promise.all(Array.from({ length: context.request.concurrency }, work));
  return sessions.flatMap((session) => results.get(session) ?? []);
}

/**
 * Groups sessions that begin with the same prompt, oldest first. Up to 2.1.197 nothing else marks a fork, and what its origin has
 * exported must be known before the fork is exported.
 */
function groupRelated(sessions: readonly SessionOverview[]): SessionOverview[][] {
  const startOf = ({ startedAt, bornAt }: SessionOverview) => startedAt ?? bornAt;
  const oldestFirst = sessions.toSorted(
    (a, b) => startOf(a) - startOf(b) || a.bornAt - b.bornAt || a.lastActivityAt - b.lastActivityAt,
  );
  // A file that cannot be read is reported when its turn comes.
  const promptOf = ({ firstPrompt, path }: SessionOverview) =>
    firstPrompt ?? attempt(() => findFirstPromptUuid(path)) ?? path;
  return [...groupBy(oldestFirst, promptOf).values()];
}

async function backfillSession(
  session: SessionOverview,
  there: FolderSettings,
  context: BackfillContext & { readonly agentFolders: AgentFolders },
): Promise<SessionResult> {
  const { sessionId, path } = session;
  const { state, log, destinationId, progress, shell, agentFolders } = context;
  const { force, includeOpen } = context.request;
  let sent = NOTHING;
  const known = attempt(() => state.read(sessionId, destinationId));
  const isReadAgain = !force && known !== undefined && isReadByOlder(known);
  const end = (outcome: BackfillOutcome, reason?: string) => ({ session, outcome, reason, isReadAgain, sent });
  if (there.optOut !== undefined) return end('skipped', there.optOut);
  const isDone = !force && known !== undefined && isUnchanged(known, path, destinationId, agentFolders);
  const startsAt = isDone ? session.bytes : (known?.offset ?? 0);
  progress?.begin(session, force || isReadAgain ? 0 : startsAt);
  const isIdle = Date.now() - session.changedAt > IDLE_MS;
  const observer = {
    onRead: (offset: number) => progress?.read(session, offset),
    onAcknowledged: (acknowledged: Tally) => {
      sent = sumTallies([sent, acknowledged]);
      progress?.acknowledged(acknowledged);
    },
  };
  try {
    const isElsewhere = await sendsElsewhere(there, destinationId);
    const explain = (now: Entry | undefined) =>
      end(...explainNothing(known, now, { isElsewhere, isOpen: !isIdle && !includeOpen }, destinationId));
    if (isDone) return explain(known);
    const identity = {
      destination: destinationId,
      given: describingVariables(there.env),
      folder: session.folders[0],
    };
    const { failure, isStopped } = await exportSession(
      {
        sessionId,
        path,
        occasion: 'backfill',
        includesOpen: includeOpen,
        includeLegacyFiles: isIdle,
        force,
        // Turns that ran without tracing belong to no run: the user has asked for them, too.
        run: isElsewhere ? undefined : identity,
        takesAll: !isElsewhere,
        replacesFailedDestination: !isElsewhere,
      },
      { ...context, restrictions: [shell], deadline: Number.POSITIVE_INFINITY, observer },
    );
    if (isStopped) return end('stopped');
    if (failure !== undefined) return end('failed', failure.text);
    const now = state.read(sessionId, destinationId);
    return sent.observations > 0 ? { ...end('exported'), strays: now?.strays?.length ?? 0 } : explain(now);
  } catch (error) {
    const { message } = error as Error;
    log.error(message, { session: sessionId, file: path });
    return { ...end('failed', message), isLocal: true };
  }
}

/** Whether the hooks of the folder send to another destination, which the user has not chosen now. */
async function sendsElsewhere({ ownDestination }: FolderSettings, destinationId: string): Promise<boolean> {
  const own = ownDestination && (await readSettings(ownDestination)).destination;
  return own !== undefined && fingerprint(own) !== destinationId;
}

/** Says why nothing was sent of a session. */
function explainNothing(
  before: Entry | undefined,
  now: Entry | undefined,
  { isElsewhere, isOpen }: { isElsewhere: boolean; isOpen: boolean },
  destinationId: string,
): [BackfillOutcome, string | undefined] {
  if (isMutedNow(now?.mutes)) return ['skipped', 'is muted'];
  const runs = now ? listRuns(now) : [];
  const isOwn = runs.some(({ destination }) => destination === destinationId);
  if (isElsewhere || (runs.length > 0 && !isOwn)) return ['skipped', 'is for another project'];
  if ((before?.turnCount ?? 0) > 0) {
    const hasOthers = runs.some(({ destination }) => destination !== destinationId);
    return ['already there', hasOthers ? 'has other turns, which are for another project' : undefined];
  }
  if (isOpen) return ['skipped', 'changed in the last 10 minutes; --include-open exports its last turn, too'];
  const hasCopiedTurns = (now?.turnCount ?? 0) > 0;
  return ['skipped', hasCopiedTurns ? 'has only turns that were copied from another session' : 'has no answered turn'];
}
