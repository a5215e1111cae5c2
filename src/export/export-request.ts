import type { SettingsReader } from '../config/settings-reader.js';
import type { Destination, Limits } from '../langfuse/destination.js';
import type { Observation } from '../observations/model.js';
import type { Failure } from '../shared/failure.js';
import type { Log } from '../shared/log.js';
import type { RunIdentity } from '../state/runs.js';
import type { SessionState } from '../state/store.js';
import type { AgentFolders } from '../transcript/agents/agent-files.js';
import type { FirstPrompts } from '../transcript/sessions/related-sessions.js';
import type { Turn } from '../transcript/turns/turn.js';
import type { Tally } from './tally.js';

export interface ExportRequest {
  readonly sessionId: string;
  readonly path: string;
  /** Why it is exported: a hook event, what an earlier run has not sent, while its turn runs, or the user's command. */
  readonly occasion: 'event' | 'recovery' | 'live' | 'backfill';
  /** In a live export: when lines after so many bytes were written, tracing may already have been off. */
  readonly upTo?: number;
  /** Whether to send the last turn even if it is not over. */
  readonly includesOpen?: boolean;
  /** The Claude Code run, or the backfill, behind this export. Undefined for another session, and in a live export. */
  readonly run?: RunIdentity | undefined;
  /** Whether turns that belong to no run are sent, too. */
  readonly takesAll?: boolean | undefined;
  /** Whether to look for turns before the last exported one that have not been sent. */
  readonly looksBack?: boolean;
  /** Whether this run's destination replaces those that have never acknowledged anything. */
  readonly replacesFailedDestination?: boolean;
  /** Forget how far the session was exported, and send all of it again. */
  readonly force?: boolean;
  /** Whether to look beside the transcript for agents that no call names. All files there are opened for it. */
  readonly includeLegacyFiles?: boolean;
  /** What another session's export knows of agents that this one started. */
  readonly continued?: Continuation;
}

/** Agents of a session went on in another one. */
export interface Continuation {
  /** The transcript of that one: no others are looked at. */
  readonly in: string;
  /** Calls and agents whose end it has recorded, and when. */
  readonly ended: ReadonlyMap<string, number>;
  /** Its agents and workflows that Claude Code lists as running, when it did so, and when the last run there ended. */
  readonly running: readonly string[];
  readonly at: number;
  readonly endedAt: number | undefined;
}

/** `deadline` is infinity if nobody waits, and `stop` is the user's wish to end. */
export interface ExportContext extends Limits {
  readonly state: SessionState;
  readonly destination: Destination;
  readonly destinationId: string;
  /** The environment, in which each run's own variables replace those that describe and restrict. */
  readonly env: NodeJS.ProcessEnv;
  /** Environments that restrict every turn, whichever run it belongs to. */
  readonly restrictions?: readonly NodeJS.ProcessEnv[];
  readonly log: Log;
  /** What has read the settings, if they are to count as they were then. */
  readonly settingsReader?: SettingsReader;
  /** What several exports in a row need not look for again. */
  readonly agentFolders?: AgentFolders;
  readonly firstPrompts?: FirstPrompts;
  readonly observer?: ExportObserver;
  /** How many bytes of a turn are read before its settled part is sent, if not as many as usual. */
  readonly partBytes?: number;
  /** How long each agent's file was when its final part had been sent: later live exports need not read it again. */
  readonly agentsRead?: Map<string, number>;
}

/**
 * Why a turn is not sent: it is not over; the session was muted; it is a copy, or another session decides about it; its folder is
 * excluded; it belongs to no run, to a run for another destination, or to one without a destination.
 */
export type WhyKept =
  | 'open'
  | 'muted'
  | 'copied'
  | 'another session'
  | 'excluded'
  | 'untraced'
  | 'another project'
  | 'no project';

/** What may be watched of an export. */
interface ExportObserver {
  /** Up to which byte the transcript has been read; called from time to time. */
  onRead?(offset: number): void;
  /** Called with each observation before it is sent. */
  onObservation?(observation: Observation): void;
  /** Called with a turn that is not sent, or with a part of it. */
  onKept?(turn: Turn, why: WhyKept): void;
  /** Called with what the server has acknowledged, request by request. */
  onAcknowledged?(acknowledged: Tally): void;
}

export interface ExportReport {
  readonly sent: Tally;
  /** Why something is still to be sent. */
  readonly failure: Failure | undefined;
  readonly isStopped: boolean;
  /** Another run was working on the session, so nothing was done. */
  readonly isBusy?: boolean;
  /** What may be sent has changed meanwhile, so the rest was not. */
  readonly isOutdated?: boolean;
  /** A Stop has named a turn that is not after the last one which was sent. */
  readonly hasPassedBy?: boolean;
  /** Of a live export: whether a turn goes on. */
  readonly isOpen?: boolean;
}
