import type { Limits, OpenDestination } from '../langfuse/destination.js';
import type { Observation } from '../observations/model.js';
import type { Failure } from '../shared/failure.js';
import type { Log } from '../shared/log.js';
import type { SessionState } from '../state/store.js';
import type { AgentFolders } from '../transcript/agents/agent-files.js';
import type { FirstPrompts } from '../transcript/sessions/related-sessions.js';
import type { AwaitedAnswer } from '../transcript/turns/answer-watcher.js';
import type { OwnRun } from './ledger.js';
import type { Tally } from './tally.js';

export interface ExportRequest {
  readonly sessionId: string;
  readonly path: string;
  /** Why it is exported: a hook event, one that was left to this run, what an earlier run has not sent, or the user's command. */
  readonly occasion: 'event' | 'left event' | 'recovery' | 'backfill';
  readonly closing: Closing;
  readonly agents: AgentStatus;
  /** The run that this is, if it is the session's own, or takes turns of no run. */
  readonly run?: OwnRun | undefined;
  /** Whether this run's destination replaces those that have never acknowledged anything. */
  readonly adopts?: boolean;
  /** Forget how far the session was exported, and send all of it again. */
  readonly force?: boolean;
}

/** What is known about a session's subagents. */
interface AgentStatus {
  /** Agents and workflows that Claude Code lists as running. */
  readonly running: ReadonlySet<string>;
  /** The session has ended, so its agents will write nothing more. */
  readonly sessionEnded: boolean;
  /** Calls and agents whose end another session's transcript has recorded, and when. */
  readonly ended?: ReadonlyMap<string, number>;
  /** The transcript of the session in which agents went on: no others are looked at. */
  readonly continuedIn?: string;
  /** Whether to look beside the transcript for agents that no call names. All files there are opened for it. */
  readonly includeLegacyFiles: boolean;
}

/** `deadline` is infinity if nobody waits, and `stop` is the user's wish to end. */
export interface ExportContext extends Limits {
  readonly state: SessionState;
  readonly destination: OpenDestination;
  readonly destinationId: string;
  /** The environment, in which each run's own variables replace those that describe and restrict. */
  readonly env: NodeJS.ProcessEnv;
  /** Environments that restrict every turn, whichever run it belongs to. */
  readonly restrictions?: readonly NodeJS.ProcessEnv[];
  readonly log: Log;
  /** What several exports in a row need not look for again. */
  readonly agentFolders?: AgentFolders;
  readonly firstPrompts?: FirstPrompts;
  readonly observer?: ExportObserver;
  /** How many bytes of a turn are read before what is settled of it is sent, if not as many as usual. */
  readonly partBytes?: number;
  /** How long each agent's file was when all was sent that was final: what several live exports in a row need not read again. */
  readonly agentsRead?: Map<string, number>;
}

/** What may be watched of an export. */
interface ExportObserver {
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
  readonly failure: Failure | undefined;
  readonly isStopped: boolean;
  /** Another run was working on the session, so nothing was done. */
  readonly isBusy?: boolean;
  /** What may be sent has changed meanwhile, so the rest was not. */
  readonly isOutdated?: boolean;
  /** Of a live export: whether a turn goes on. */
  readonly isOpen?: boolean;
}

/** Which turns are over. A turn that another one follows always is; this is about the last one. */
export type Closing =
  | { readonly kind: 'nothing' }
  /** All turns are over, or only those that begin before so many bytes. */
  | { readonly kind: 'everything'; readonly upTo?: number | undefined }
  /**
   * The last turn goes on. What is final of it is sent, and of the agents that work for it. Lines after so many bytes were written
   * when tracing may have been turned off already.
   */
  | { readonly kind: 'live'; readonly upTo: number }
  /** The turn with this answer is over, and all before it. The answer may not have reached the file yet. */
  | ({
      readonly kind: 'answer';
      readonly waitUntil: number;
      /** The turn may have been sent already. Then the one that is open now is another one. */
      readonly mayBeSent: boolean;
    } & AwaitedAnswer);
