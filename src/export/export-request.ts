import type { GitIdentity } from '../git/identity.js';
import type { Destination, Limits } from '../langfuse/destination.js';
import type { TraceSettings } from '../observations/build/trace.js';
import type { Caller, Observation } from '../observations/model.js';
import type { Log } from '../shared/log.js';
import type { SessionState } from '../state/store.js';
import type { Tally } from './tally.js';

export interface ExportRequest {
  readonly sessionId: string;
  readonly path: string;
  /** Why it is exported: a hook event, something that an earlier run left unsent, or the user's command. */
  readonly occasion: 'event' | 'recovery' | 'backfill';
  readonly closing: Closing;
  readonly agents: AgentStatus;
  /** What started this run, if it is the session's own. */
  readonly caller?: Caller;
  /** Forget how far the session was exported, and send all of it again. */
  readonly force?: boolean;
}

/** What is known about a session's subagents. */
export interface AgentStatus {
  /** Agents and workflows that Claude Code lists as running. */
  readonly running: ReadonlySet<string>;
  /** The session has ended, so its agents will write nothing more. */
  readonly sessionEnded: boolean;
  /** Whether to look beside the transcript for agents that no call names. All files there are opened for it. */
  readonly includeLegacyFiles: boolean;
}

/** `deadline` is infinity if nobody waits, and `stop` is the user's wish to end. */
export interface ExportContext extends Limits {
  readonly state: SessionState;
  readonly destination: Destination;
  readonly destinationId: string;
  readonly settings: TraceSettings & {
    /** Set if the user is identified by git's e-mail address. */
    readonly gitIdentity?: GitIdentity | undefined;
  };
  /** The variables that these settings were read from: whichever run sends the rest uses them, too. */
  readonly given: { readonly [variable: string]: string };
  readonly log: Log;
  readonly observer?: ExportObserver;
}

/** What may be watched of an export. */
export interface ExportObserver {
  /** Up to which byte the transcript has been read; called from time to time. */
  onRead?(offset: number): void;
  /** Called with each observation before it is sent. */
  onObservation?(observation: Observation): void;
  /** Called with what the server has acknowledged, request by request. */
  onAcknowledged?(acknowledged: Tally): void;
}

export interface ExportReport {
  readonly sent: Tally;
  /** Why something is still to be sent. */
  readonly failure: string | undefined;
  readonly isStopped: boolean;
}

/** Which turns are over. A turn that another one follows always is; this is about the last one. */
export type Closing =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'everything' }
  /** The turn with this answer is over, and all before it. The answer may not have reached the file yet. */
  | {
      readonly kind: 'answer';
      readonly text: string;
      readonly promptId: string | undefined;
      readonly waitUntil: number;
    };
