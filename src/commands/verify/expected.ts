import type { ExportContext, WhyKept } from '../../export/export-request.js';
import { IDLE_MS } from '../../export/read-turns.js';
import { exportSession } from '../../export/session.js';
import { DryRunDestination } from '../../langfuse/dry-run-destination.js';
import { countUsage } from '../../observations/build/usage.js';
import type { Observation } from '../../observations/model.js';
import type { Log } from '../../shared/log.js';
import { DryRunState } from '../../state/dry-run.js';
import type { StateStore } from '../../state/store.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { lineOfEnd, type Turn } from '../../transcript/turns/turn.js';

/** In the order of the report. */
export const KINDS = ['turn', 'response', 'call', 'subagent', 'event', 'fee'] as const;
export type Kind = (typeof KINDS)[number];

/** An observation that Langfuse has to have. */
export interface Expected extends Pick<Observation, 'id' | 'type' | 'startTime' | 'level' | 'model' | 'usage'> {
  readonly kind: Kind;
  readonly traceId: string;
  /** The number of its turn; undefined for an agent that no turn started. */
  readonly turn: number | undefined;
  /** The id of the response that a generation shows. */
  readonly messageId: string | undefined;
}

/** Turns that are not sent for one reason. */
export interface KeptBack {
  readonly why: WhyKept;
  readonly turns: number;
  /** Those of the turns' own responses, without those of subagents. */
  readonly tokens: number;
}

/** What the transcripts say of a session. */
export interface SessionContent {
  readonly expected: readonly Expected[];
  readonly keptBack: readonly KeptBack[];
  /** When the turn that is not over began, in ms since 1970. */
  readonly openSince: number | undefined;
  /** Whether the last turn counts as over only because it has been sent. */
  readonly isLastSent: boolean;
  /** Why not everything could be read. */
  readonly problem: string | undefined;
}

/** Where a session is sent to, and the settings that restrict it. */
export interface Sending extends Pick<ExportContext, 'destinationId' | 'env' | 'restrictions'> {
  readonly state: StateStore;
}

/**
 * Returns what of a session has to be in Langfuse: what an export sends that sends everything again. Turns that ran without tracing
 * are not among it, unless a backfill has sent them.
 */
export async function findContent(session: SessionOverview, sending: Sending): Promise<SessionContent> {
  const { lastLine = 0 } = sending.state.read(session.sessionId, sending.destinationId) ?? {};
  const found = await exportDry(session, sending, { force: true });
  const isLastSent = found.open.length > 0 && found.open.every((turn) => lineOfEnd(turn) <= lastLine);
  const whole = isLastSent ? await exportDry(session, sending, { force: true, includesOpen: true }) : found;
  const { observations, kept, open, problem } = whole;
  return {
    expected: describe(observations.filter(({ trace }) => trace.sessionId === session.sessionId)),
    keptBack: addUp(kept),
    openSince: open.length > 0 ? Math.min(...open.map(({ prompts: [{ at }] }) => at)) : undefined,
    isLastSent,
    problem,
  };
}

/** Returns the ids of what the next export would send: Langfuse has not acknowledged it. */
export async function findUnsent(
  session: SessionOverview,
  sending: Sending,
  { isLastSent }: Pick<SessionContent, 'isLastSent'>,
): Promise<ReadonlySet<string>> {
  const { observations } = await exportDry(session, sending, { includesOpen: isLastSent });
  return new Set(observations.map(({ id }) => id));
}

type Slim = Omit<Observation, 'input' | 'output' | 'media'>;

interface KeptPart {
  readonly why: WhyKept;
  readonly first: number;
  readonly tokens: number;
}

async function exportDry(
  { sessionId, path, changedAt }: SessionOverview,
  { state, destinationId, env, restrictions = [] }: Sending,
  { force = false, includesOpen = false },
) {
  // If the state changes meanwhile, an export begins again.
  const observations = new Map<string, Slim>();
  const kept = new Map<string, KeptPart>();
  const open = new Map<number, Turn>();
  const isEnded = state.readSession(sessionId)?.endedAt !== undefined;
  const { failure } = await exportSession(
    {
      sessionId,
      path,
      occasion: 'backfill',
      includesOpen,
      includeLegacyFiles: isEnded || Date.now() - changedAt > IDLE_MS,
      force,
    },
    {
      state: new DryRunState(state),
      destination: new DryRunDestination(),
      destinationId,
      env,
      restrictions,
      deadline: Number.POSITIVE_INFINITY,
      log: NO_LOG,
      observer: {
        onObservation: ({ input: _, output: __, media: ___, ...observation }) =>
          observations.set(observation.id, observation),
        onKept: (turn, why) => {
          const [{ offset: first }] = turn.prompts;
          if (why === 'open') open.set(first, turn);
          kept.set(`${first} ${lineOfEnd(turn)}`, { why, first, tokens: countTokens(turn) });
        },
      },
    },
  );
  return {
    observations: [...observations.values()],
    kept: [...kept.values()],
    open: [...open.values()],
    problem: failure?.text,
  };
}

/** Whatever is to be said of the transcripts, the hooks have logged. */
const NO_LOG: Log = { debug() {}, info() {}, warn() {}, error() {}, async flush() {} };

function countTokens({ responses }: Turn): number {
  return responses.reduce((sum, { usage }) => sum + (countUsage(usage)?.total ?? 0), 0);
}

/** Leaves out turns that are not over: of those, a long one has parts that may have been sent. */
function describe(observations: readonly Slim[]): Expected[] {
  // A turn in a caller's trace has a scope of its own.
  const over = new Set(observations.filter(isRoot).map(({ trace }) => trace.scope));
  return observations
    .filter(({ trace }) => over.has(trace.scope))
    .map((observation) => {
      const { id, type, startTime, level, model, usage, trace, metadata } = observation;
      const { turn_number: turn } = trace.metadata;
      const { message_id: messageId } = metadata;
      return {
        id,
        type,
        startTime,
        level,
        model,
        usage,
        kind: findKind(observation),
        traceId: trace.id,
        turn: typeof turn === 'number' ? turn : undefined,
        messageId: typeof messageId === 'string' ? messageId : undefined,
      };
    });
}

function isRoot({ type, parentId, trace }: Slim): boolean {
  return type === 'agent' && parentId === trace.parentId;
}

function findKind(observation: Slim): Kind {
  const { type, trace, cost } = observation;
  if (type === 'agent') return isRoot(observation) && trace.metadata.turn_number !== undefined ? 'turn' : 'subagent';
  if (type === 'generation') return cost ? 'fee' : 'response';
  return type === 'tool' ? 'call' : 'event';
}

function addUp(kept: readonly KeptPart[]): KeptBack[] {
  return [...new Set(kept.map(({ why }) => why))].map((why) => {
    const parts = kept.filter((each) => each.why === why);
    return {
      why,
      turns: new Set(parts.map(({ first }) => first)).size,
      tokens: parts.reduce((sum, { tokens }) => sum + tokens, 0),
    };
  });
}
