import { setTimeout as sleep } from 'node:timers/promises';
import type { Observation } from '../observations/model.js';
import type { SendReport } from './destination.js';
import { isPassing, isSuccess, TOO_MANY } from './http/status.js';
import { type Outgoing, REQUEST_TIMEOUT_MS, type Rejected, type Reply, type Transport } from './transport.js';

const ATTEMPTS = 4;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;
/** A server that refuses whatever it is sent is not to be asked about each span: after as many it is asked once more. */
const REFUSALS_WITHOUT_SUCCESS = 16;
const REFUSES_EVERY_SPAN = 'the server refuses every span (400)';

interface Delivery {
  readonly outgoing: readonly Outgoing[];
  readonly deadline: number;
  readonly stop: AbortSignal | undefined;
  /** Places of observations. */
  readonly accepted: Set<number>;
  readonly refused: Set<number>;
  rejected: Rejected | undefined;
}

/** Sends observations and knows of each whether the server has acknowledged it. Where the server asks to wait, all requests do. */
export class Sender {
  readonly #transport: Transport;
  #last: Reply | undefined;
  #pausedUntil = 0;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  encode(observation: Observation): Outgoing {
    return this.#transport.encode(observation);
  }

  /** `deadline` is when to give up, in ms since 1970; `stop` gives up what is not under way. */
  async send(outgoing: readonly Outgoing[], deadline: number, stop?: AbortSignal): Promise<SendReport> {
    const delivery: Delivery = {
      outgoing,
      deadline,
      stop,
      accepted: new Set(),
      refused: new Set(),
      rejected: undefined,
    };
    const failure = await this.#deliver([...outgoing.keys()], delivery);
    const { accepted, refused, rejected } = delivery;
    const isAlone = outgoing.length === 1 && refused.size === 1 && failure === undefined;
    if (accepted.size === 0 && !isAlone) return { settled: 0, dropped: [], failure: failure ?? REFUSES_EVERY_SPAN };
    const unsettled = outgoing.findIndex((_, place) => !accepted.has(place) && !refused.has(place));
    const settled = unsettled < 0 ? outgoing.length : unsettled;
    return { settled, dropped: [...refused].filter((place) => place < settled), rejected, failure };
  }

  /** What the server answered last; undefined where it did not. */
  get lastStatus(): number | undefined {
    return this.#last?.status;
  }

  /** Whether the server takes what it is sent, or refuses it for what it is: another session's may go through. */
  get isWell(): boolean {
    if (this.#last === undefined || this.#last.problem !== undefined) return false;
    const { status } = this.#last;
    return isSuccess(status) || status === 400 || status === 413;
  }

  /** Until when the server has asked to wait, in ms since 1970. */
  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  /** Delivers observations, by their places; a request that is refused for its size or for one bad span is halved. */
  async #deliver(places: readonly number[], delivery: Delivery, attempt = 1): Promise<string | undefined> {
    const { outgoing, accepted, refused } = delivery;
    const due = places.filter((place) => !accepted.has(place));
    const [first] = due;
    if (first === undefined) return undefined;
    const answer = await this.#request(
      due.flatMap((place) => outgoing[place] ?? []),
      delivery,
    );
    this.#last = typeof answer === 'string' ? undefined : answer;
    if (typeof answer === 'string') return answer;
    const { status, problem, rejected } = answer;
    if (problem !== undefined) return problem;
    if (isSuccess(status)) {
      const again = settle(due, answer.refusals, delivery);
      if (rejected) delivery.rejected = { ...rejected, spans: rejected.spans + (delivery.rejected?.spans ?? 0) };
      return again ? this.#deliverLater(again, delivery, attempt) : undefined;
    }
    if (status !== 400 && status !== 413) return refusal(status);
    if (due.length > 1) {
      const middle = Math.ceil(due.length / 2);
      return (
        (await this.#deliver(due.slice(0, middle), delivery)) ?? (await this.#deliver(due.slice(middle), delivery))
      );
    }
    if (status === 413) return 'the server refuses a single observation for its size (413)';
    refused.add(first);
    const last = outgoing.length - 1;
    if (last === 0) return this.#isAtFault(delivery);
    if (accepted.size > 0 || refused.size !== REFUSALS_WITHOUT_SUCCESS || first === last) return undefined;
    return (await this.#deliver([last], delivery)) ?? (accepted.size === 0 ? REFUSES_EVERY_SPAN : undefined);
  }

  /** What the server could not take of a request, for now. */
  async #deliverLater({ places, status }: Unsettled, delivery: Delivery, attempt: number): Promise<string | undefined> {
    const until = Date.now() + backoffMs(attempt);
    if (attempt >= ATTEMPTS || until >= delivery.deadline) return refusal(status);
    if (!(await this.#waitUntil(until, delivery.stop))) return 'stopped';
    return this.#deliver(places, delivery, attempt + 1);
  }

  /** A span alone in its request has no neighbours that could tell whether it is at fault: a request without spans does. */
  async #isAtFault(delivery: Delivery): Promise<string | undefined> {
    const answer = await this.#request([], delivery);
    const isTaken = typeof answer !== 'string' && isSuccess(answer.status) && answer.problem === undefined;
    return isTaken ? undefined : REFUSES_EVERY_SPAN;
  }

  /** The server's last word, or why there was none. */
  async #request(outgoing: readonly Outgoing[], { deadline, stop }: Delivery): Promise<Reply | string> {
    for (let attempt = 1; ; attempt += 1) {
      const isPauseTooLong = this.#pausedUntil >= deadline;
      if (isPauseTooLong) return { status: TOO_MANY, retryAfterMs: undefined, problem: undefined };
      if (!(await this.#waitUntil(this.#pausedUntil, stop))) return 'stopped';
      const left = deadline - Date.now();
      if (left <= 0) return 'out of time';
      const answer = await this.#transport
        .post(outgoing, Math.min(left, REQUEST_TIMEOUT_MS))
        .catch((error: Error & { code?: string }) => `cannot reach the server: ${error.code ?? error.message}`);
      const status = typeof answer === 'string' ? undefined : answer.status;
      const isFinal = status !== undefined && !isPassing(status);
      // A server that asks to wait is well: it is asked again as long as there is time.
      if (isFinal || (attempt >= ATTEMPTS && status !== TOO_MANY)) return answer;
      const asked = typeof answer === 'string' ? undefined : answer.retryAfterMs;
      const until =
        Date.now() + (asked !== undefined && attempt < ATTEMPTS ? asked : Math.max(asked ?? 0, backoffMs(attempt)));
      if (status === TOO_MANY) this.#pausedUntil = Math.max(this.#pausedUntil, until);
      if (until >= deadline) return answer;
      if (!(await this.#waitUntil(until, stop))) return 'stopped';
    }
  }

  /** Whether nobody has stopped it. */
  async #waitUntil(until: number, stop: AbortSignal | undefined): Promise<boolean> {
    const left = until - Date.now();
    if (left > 0) await sleep(left, undefined, stop && { signal: stop }).catch(() => {});
    return !stop?.aborted;
  }
}

interface Unsettled {
  readonly places: readonly number[];
  readonly status: number;
}

/** Takes note of what became of each observation of a request that was taken; gives those that are to be sent once more. */
function settle(
  due: readonly number[],
  refusals: ReadonlyMap<number, number> | undefined,
  { accepted, refused }: Delivery,
): Unsettled | undefined {
  const places: number[] = [];
  let last: number | undefined;
  for (const [index, place] of due.entries()) {
    const status = refusals?.get(index);
    if (status === undefined) accepted.add(place);
    else if (!isPassing(status)) refused.add(place);
    else {
      places.push(place);
      last = status;
    }
  }
  return last === undefined ? undefined : { places, status: last };
}

function backoffMs(attempt: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), LONGEST_WAIT_MS) * (0.75 + Math.random() / 2);
}

function refusal(status: number): string {
  switch (status) {
    case 429:
      return 'the server asks to wait (429)';
    default:
      return status >= 300 && status < 400
        ? `the server redirects elsewhere (${status}), which is not followed`
        : `the server answers ${status}`;
  }
}
