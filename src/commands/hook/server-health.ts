import type { Destination } from '../../langfuse/destination.js';
import { forgetOutage, hasAcknowledged, isOngoing, readOutage, rememberOutage } from '../../state/servers.js';

/** During an outage somebody waits no longer than this. It is enough to find that the server works again. */
const DURING_OUTAGE_MS = 1_500;
/** Once a run in front would have given up, a request counts as hanging after this long without an answer. */
const HANGING_MS = 1_000;
/** A destination that worked before is said to be wrong only after this long: until then, waiting is all that the user could do. */
const LONG_OUTAGE_MS = 24 * 60 * 60_000;

/** What a hook knows of its own time. Nobody waits for a worker. */
interface Timing {
  readonly folder: string;
  readonly startedAt: number;
  readonly deadline: number;
  readonly worker: object | undefined;
  readonly settings: { readonly timeoutMs: number };
}

/** Whether a server that takes nothing is the wrong one: nothing has ever arrived there, or for a day nothing has any more. */
export function isWrongUrl(folder: string, destinationId: string): boolean {
  const since = readOutage(folder, destinationId)?.since ?? Date.now();
  return Date.now() - since > LONG_OUTAGE_MS || !hasAcknowledged(folder, destinationId);
}

/** Knows whether the server works, and remembers it for later runs. */
export class ServerHealth {
  /** When to give up, in ms since 1970. While a server is down, only the first run in front waits the whole time. */
  readonly deadline: number;
  readonly #folder: string;
  readonly #destination: Destination;
  readonly #id: string;
  #timer: NodeJS.Timeout | undefined;
  #isForgotten: boolean;

  constructor({ folder, startedAt, deadline, worker, settings }: Timing, destination: Destination, id: string) {
    this.#folder = folder;
    this.#destination = destination;
    this.#id = id;
    const outage = worker ? undefined : readOutage(folder, id);
    this.deadline = isOngoing(outage, startedAt) ? Math.min(deadline, startedAt + DURING_OUTAGE_MS) : deadline;
    // If another process remembers an outage meanwhile, the next run forgets it.
    this.#isForgotten = !worker && outage === undefined;
    // A run in front may be waiting for this worker's lock, and cannot know why the worker keeps it.
    if (worker) this.#watchIn(startedAt + settings.timeoutMs - Date.now());
  }

  save(): void {
    const { trouble, isHealthy } = this.#destination.health;
    if (isHealthy) this.#forget();
    else if (trouble?.kind === 'outage') this.#remember(Date.now());
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #watchIn(ms: number): void {
    this.#timer = setTimeout(() => {
      const now = Date.now();
      const { waitingSince = now, pausedUntil } = this.#destination;
      // A server that has asked to wait works.
      if (now - waitingSince < HANGING_MS || pausedUntil > now) this.#watchIn(HANGING_MS);
      else this.#remember(now);
    }, ms).unref();
  }

  #remember(now: number): void {
    this.#isForgotten = false;
    rememberOutage(this.#folder, this.#id, now);
  }

  #forget(): void {
    if (!this.#isForgotten) forgetOutage(this.#folder, this.#id);
    this.#isForgotten = true;
  }
}
