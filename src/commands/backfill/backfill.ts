import type { Courier, Delivery } from '../../export/delivery.js';
import { IDLE_MS } from '../../export/read-turns.js';
import { type ExportTools, exportSession } from '../../export/session.js';
import { NOTHING, sum, type Tally } from '../../export/tally.js';
import type { Log } from '../../shared/log.js';
import { type Entry, mayBeFor } from '../../state/entry.js';
import type { SessionState } from '../../state/store.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { findFirstPromptUuid } from '../../transcript/sessions/related-sessions.js';

/** What became of a session. */
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

interface BackfillTools extends Delivery {
  readonly store: SessionState;
  /** Whether the server takes what it is sent, or refuses it for what it is. */
  readonly isServerWell: () => boolean;
  /** The settings for a session: its own runs may have had others. */
  readonly describe: (given: Entry['given']) => Promise<Pick<ExportTools, 'options' | 'given'>>;
  /** Undefined where nothing is to be sent anywhere. */
  readonly destination: string | undefined;
  readonly log: Log;
  readonly stop: AbortSignal;
  readonly concurrency: number;
  /** Sends again what is there. */
  readonly isAnew: boolean;
  /** Takes the last turn of a session that is still being written, too. */
  readonly includeOpen: boolean;
  readonly progress: Progress;
}

/** How far it has come. */
export interface Progress {
  /** How much there is to be read of a session that is begun. */
  begin(session: SessionOverview, from: number): void;
  read(session: SessionOverview, offset: number): void;
  taken(taken: Tally): void;
  end(result: SessionResult): void;
}

/** How long a server may be unable to take a request, or want to wait, before its session counts as failed. */
const PATIENCE_MS = 10 * 60_000;
const LOCK_WAIT_MS = 60_000;
/** A server that fails so many sessions in a row will not take the next one's. */
const FAILURES_IN_A_ROW = 3;

/** Delivers with a backfill's patience. */
export function patiently(courier: Courier, stop: AbortSignal): Delivery {
  return courier.delivery(() => Date.now() + PATIENCE_MS, stop);
}

/** Exports sessions, several at a time; gives what became of each, in their order. */
export async function backfill(
  sessions: readonly SessionOverview[],
  tools: BackfillTools,
): Promise<readonly SessionResult[]> {
  const results = new Map<SessionOverview, SessionResult>();
  const waiting = families(sessions);
  let failures = 0;
  const work = async () => {
    for (let family = waiting.shift(); family; family = waiting.shift()) {
      for (const session of family) {
        const isOver = tools.stop.aborted || failures >= FAILURES_IN_A_ROW;
        const outcome: Outcome = isOver ? { kind: 'not tried' } : await exportOne(session, tools);
        if (outcome.kind === 'failed' && !tools.isServerWell()) failures += 1;
        else if (outcome.kind === 'exported') failures = 0;
        results.set(session, { session, outcome });
        tools.progress.end({ session, outcome });
      }
    }
  };
  await Promise.all(Array.from({ length: tools.concurrency }, work));
  return sessions.flatMap((session) => results.get(session) ?? []);
}

/**
 * Sessions that begin with the same prompt, in the order of their beginnings: up to 2.1.197 a fork bears no mark, and what
 * the session that it was forked from has exported must be known before the fork is.
 */
function families(sessions: readonly SessionOverview[]): SessionOverview[][] {
  const byPrompt = new Map<string, SessionOverview[]>();
  const inOrder = sessions.toSorted(
    (a, b) => beginningOf(a) - beginningOf(b) || a.bornAt - b.bornAt || a.lastActivityAt - b.lastActivityAt,
  );
  for (const session of inOrder) {
    const key = session.firstPrompt ?? findFirstPromptUuid(session.path) ?? session.path;
    byPrompt.set(key, [...(byPrompt.get(key) ?? []), session]);
  }
  return [...byPrompt.values()];
}

function beginningOf({ startedAt, bornAt }: SessionOverview): number {
  return startedAt ?? bornAt;
}

const STILL_WRITTEN = 'is still being written; --include-open takes its last turn';

const ONLY_COPIED = 'has only turns that were copied from another session';

async function exportOne(session: SessionOverview, tools: BackfillTools): Promise<Outcome> {
  const { sessionId, path } = session;
  const { store, log, isAnew, destination } = tools;
  const known = store.read(sessionId);
  const isElsewhere = known && destination !== undefined && !mayBeFor(known, destination);
  if (isElsewhere && !isAnew)
    return { kind: 'skipped', reason: 'was exported to another project; --force sends it to this one, too' };
  tools.progress.begin(session, isAnew ? 0 : (known?.offset ?? 0));
  const isIdle = Date.now() - session.changedAt > IDLE_MS;
  const agents = { running: new Set<string>(), areOver: false, mayBeBeside: isIdle };
  const closing = { kind: tools.includeOpen ? 'everything' : 'nothing' } as const;
  let sent = NOTHING;
  try {
    const { failure, isStopped } = await exportSession(
      { sessionId, path, occasion: 'backfill', closing, agents, isAnew },
      {
        ...tools,
        ...(await tools.describe(isAnew ? undefined : known?.given)),
        destination: destination ?? '',
        waitUntil: Date.now() + LOCK_WAIT_MS,
        readUntil: Number.POSITIVE_INFINITY,
        onRead: (offset) => tools.progress.read(session, offset),
        onTaken: (taken) => {
          sent = sum([sent, taken]);
          tools.progress.taken(taken);
        },
      },
    );
    if (isStopped) return { kind: 'stopped', sent };
    if (failure !== undefined) return { kind: 'failed', reason: failure, sent };
    if (sent.observations > 0) return { kind: 'exported', sent };
    if ((known?.turn_count ?? 0) > 0) return { kind: 'already there' };
    if (!isIdle && !tools.includeOpen) return { kind: 'skipped', reason: STILL_WRITTEN };
    const hasCopied = (store.read(sessionId)?.turn_count ?? 0) > 0;
    return { kind: 'skipped', reason: hasCopied ? ONLY_COPIED : 'has no turn that was answered' };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    log.error(reason, { session: sessionId, file: path });
    return { kind: 'failed', reason, sent };
  }
}
