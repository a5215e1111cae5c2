import { lstatSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { readHookSettings } from '../../config/folder-settings.js';
import type { ExportReport } from '../../export/export-request.js';
import { exportSession } from '../../export/session.js';
import type { Destination } from '../../langfuse/destination.js';
import type { Log } from '../../shared/log.js';
import { isRunning, type Lock } from '../../state/lock.js';
import { forgetOutage, isOngoing, readOutage, rememberOutage } from '../../state/servers.js';
import { StateStore } from '../../state/store.js';
import { findAgentFiles } from '../../transcript/agents/agent-files.js';
import { locateTranscript } from '../../transcript/sessions/related-sessions.js';
import type { BudgetWatch } from './budget.lazy.js';

const POLL_MS = 2_000;
/** A pass holds the session's lock, and a hook may be waiting for it. The next pass sends the rest. */
const PASS_MS = 5_000;
/** An export of a long session, or of many agents, must not follow the last one at once. */
const REST = 10;
const LONGEST_REST_MS = 6_000;
/** An agent counts as over some time after the result of its call, without another line. */
const LAST_LOOK_MS = 3_000;
const FIRST_PAUSE_MS = 4_000;
const LONGEST_PAUSE_MS = 5 * 60_000;
/** How long nothing may be written after a turn, in a turn, and in a turn of a Claude Code that is known to be alive. */
const AFTER_TURN_MS = 60_000;
const IN_TURN_MS = 10 * 60_000;
const ALIVE_IN_TURN_MS = 2 * 60 * 60_000;

/** What a follower knows of its session. */
interface Followed {
  readonly sessionId: string;
  readonly path: string;
  readonly workedIn: string | undefined;
  /** The process of Claude Code; undefined if it is not known. */
  readonly claude: number | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly folder: string;
  /** The right to be the session's only follower. */
  readonly lock: Lock;
  readonly destination: Destination;
  readonly destinationId: string;
  /** Undefined if there is no limit. */
  readonly watch: BudgetWatch | undefined;
  readonly log: Log;
}

/**
 * Exports the final parts of a session's turns while they run, a few seconds after they were written. It holds the session's lock
 * only while it exports. Ending a turn is left to the hooks.
 */
export class Follower {
  readonly #followed: Followed;
  readonly #state: StateStore;
  readonly #agentsRead = new Map<string, number>();
  #path: string;
  /** How long the transcript was before the settings were looked at. */
  #bytes = 0;
  #isOpen = true;
  #passedAt = 0;
  #failures = 0;
  #lastFailure: string | undefined;

  constructor(followed: Followed) {
    this.#followed = followed;
    this.#path = followed.path;
    // The hooks say that the file is corrupt, and set it aside.
    this.#state = new StateStore(followed.folder);
  }

  /** Resolves when the turns are over, when Claude Code is gone, or when nothing has been written for long. */
  async run(): Promise<void> {
    const { lock, claude } = this.#followed;
    let sizes: string | undefined;
    let grownAt = Date.now();
    let isDue = false;
    let nextAt = 0;
    for (;;) {
      // What it wrote before it ended is still sent.
      const isGone = claude !== undefined && !isRunning(claude);
      const before = sizes;
      sizes = this.#measure();
      const isGrown = sizes !== before;
      if (isGrown) grownAt = Date.now();
      isDue ||= isGrown || this.#isLastLook(grownAt);
      if (isDue && sizes !== undefined && (Date.now() >= nextAt || isGone)) {
        if (await this.#isOptedOut()) return;
        const { isDone, restMs } = await this.#pass();
        isDue = !isDone;
        nextAt = Date.now() + restMs;
      }
      this.#followed.watch?.look(this.#path, isGrown);
      if (isGone || !lock.isHeld() || Date.now() - grownAt > this.#patienceMs) return;
      await sleep(POLL_MS);
    }
  }

  /** Whether some time has passed since something was written, and nothing was sent since. */
  #isLastLook(grownAt: number): boolean {
    const isIt = this.#passedAt < grownAt + LAST_LOOK_MS && Date.now() >= grownAt + LAST_LOOK_MS;
    return isIt && this.#passedAt > 0;
  }

  get #patienceMs(): number {
    if (!this.#isOpen) return AFTER_TURN_MS;
    return this.#followed.claude === undefined ? IN_TURN_MS : ALIVE_IN_TURN_MS;
  }

  /** Undefined if there is no transcript yet. It moves with a session that enters a worktree. */
  #measure(): string | undefined {
    const find = (path: string) => lstatSync(path, { throwIfNoEntry: false });
    if (!find(this.#path)) this.#path = locateTranscript(this.#path, this.#followed.sessionId) ?? this.#path;
    const file = find(this.#path);
    this.#bytes = file?.size ?? 0;
    const agents = findAgentFiles(this.#path).map(({ agentId, bytes }) => `${agentId} ${bytes}`);
    return file && [file.ino, file.size, ...agents].join('\n');
  }

  async #isOptedOut(): Promise<boolean> {
    const { env, workedIn } = this.#followed;
    return workedIn !== undefined && (await readHookSettings(env, workedIn)).optOut !== undefined;
  }

  /** Returns whether everything is sent that is final, and how long to wait then. */
  async #pass(): Promise<{ isDone: boolean; restMs: number }> {
    const { folder, destination, destinationId } = this.#followed;
    const startedAt = Date.now();
    const outage = readOutage(folder, destinationId);
    if (isOngoing(outage, startedAt)) return { isDone: false, restMs: POLL_MS };
    const report = await this.#export(startedAt);
    this.#passedAt = Date.now();
    const restMs = Math.min((Date.now() - startedAt) * REST, LONGEST_REST_MS);
    if (report?.isBusy) return { isDone: false, restMs: 0 };
    if (report && report.failure === undefined) {
      this.#failures = 0;
      this.#lastFailure = undefined;
      this.#isOpen = report.isOpen ?? false;
      if (outage && destination.health.isHealthy) forgetOutage(folder, destinationId);
      return { isDone: true, restMs };
    }
    // Nobody knows to which agent the unacknowledged part belongs.
    this.#agentsRead.clear();
    this.#failures += 1;
    if (destination.health.trouble?.kind === 'outage') rememberOutage(folder, destinationId, Date.now());
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** (this.#failures - 1), LONGEST_PAUSE_MS);
    return { isDone: false, restMs: pause };
  }

  async #export(startedAt: number): Promise<ExportReport | undefined> {
    const { sessionId, env, destination, destinationId, log } = this.#followed;
    const session = { sessionId, path: this.#path };
    const context = { state: this.#state, destination, destinationId, env, log, agentsRead: this.#agentsRead };
    try {
      const limited = { ...context, deadline: startedAt + PASS_MS };
      const report = await exportSession({ ...session, occasion: 'live', upTo: this.#bytes }, limited);
      if (!report.isBusy) this.#logOnce(report.failure?.text);
      if (report.sent.observations > 0)
        log.debug('sent while it runs', { session: sessionId, observations: report.sent.observations });
      return report;
    } catch (error) {
      this.#logOnce((error as Error).message);
      return undefined;
    }
  }

  #logOnce(failure: string | undefined): void {
    const { sessionId: session, log } = this.#followed;
    if (failure !== undefined && failure !== this.#lastFailure)
      log.warn(`while the turn runs: ${failure}`, { session });
    this.#lastFailure = failure;
  }
}
