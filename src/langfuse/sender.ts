import type { Observation } from '../observations/model.js';
import { type Failure, otherFailure, toFailure } from '../shared/failure.js';
import { cutOutgoing } from './cut-outgoing.js';
import type { Destination, Health, Limits, Outgoing, Rejected, SendReport, Trouble } from './destination.js';
import { isRefusal, isSuccess, NoResponseError } from './http/client.js';
import { isRetryable, nextAttemptAt, type RetryingHttpClient, waitUntil } from './http/retry.js';
import { encodeSpan } from './otlp/span.js';
import { isAccepted, type Reply, type Transport } from './transport.js';
import type { Refusal } from './words.js';

/** After this many refused spans without an accepted one, one more is tried: the server may refuse every span. */
const MAX_REFUSALS_WITHOUT_SUCCESS = 16;

/** Asking why a request was refused takes at most this part of the time that is left: a quarter. */
const ASKING_SHARE = 4;

/** What is known so far of the observations of one `send`, by their indexes. */
interface Delivery {
  readonly outgoing: readonly Outgoing[];
  readonly limits: Limits;
  readonly accepted: Set<number>;
  readonly refused: Set<number>;
  /** Those of which the server has accepted only a part, since they were too large. */
  readonly cut: Set<number>;
  /** How the server last refused a span. */
  refusal: 400 | 413;
  rejected: Rejected | undefined;
}

/** The words in which messages name a server. */
interface Described {
  readonly host: string;
  describeRefusal(refusal: Refusal): string;
}

/** What all destinations that are reached by HTTP share: sends observations and finds out which the server has acknowledged. */
export class Sender implements Destination {
  health: Health = { isHealthy: false, hasAnswered: false };
  protected readonly http: RetryingHttpClient;
  readonly #transport: Transport;
  readonly #server: Described;
  #last: Reply | undefined;
  #trouble: Trouble | undefined;

  constructor(transport: Transport, http: RetryingHttpClient, server: Described) {
    this.#transport = transport;
    this.#server = server;
    this.http = http;
  }

  get waitingSince(): number | undefined {
    return this.http.waitingSince;
  }

  get pausedUntil(): number {
    return this.http.pausedUntil;
  }

  encode(observation: Observation): Outgoing {
    const json = (this.#transport.encodeSpan ?? encodeSpan)(observation);
    return this.#transport.needsObservations ? { json, observation } : { json };
  }

  async send(outgoing: readonly Outgoing[], limits: Limits): Promise<SendReport> {
    const report = await this.#sendAll(outgoing, limits);
    const hasAnswered = this.#last !== undefined;
    const isHealthy = hasAnswered && this.#last?.status !== 429 && this.#trouble === undefined;
    this.health = { isHealthy, hasAnswered, trouble: this.#trouble };
    return report;
  }

  async #sendAll(outgoing: readonly Outgoing[], limits: Limits): Promise<SendReport> {
    const [accepted, refused, cut] = [new Set<number>(), new Set<number>(), new Set<number>()];
    const delivery: Delivery = { outgoing, limits, accepted, refused, cut, refusal: 400, rejected: undefined };
    let failure: Failure | undefined;
    try {
      await this.#deliver([...outgoing.keys()], delivery);
    } catch (error) {
      failure = toFailure(error as Error);
    }
    const { rejected } = delivery;
    const isSingleRefusal = outgoing.length === 1 && refused.size === 1 && failure === undefined;
    if (accepted.size === 0 && !isSingleRefusal)
      return { settled: 0, dropped: [], failure: failure ?? otherFailure(describeRefusals(delivery)) };
    const unsettled = [...outgoing.keys()].find((index) => !accepted.has(index) && !refused.has(index));
    const settled = unsettled ?? outgoing.length;
    const select = (indexes: Set<number>) => [...indexes].filter((index) => index < settled);
    return { settled, dropped: select(refused), ...(cut.size > 0 && { cut: select(cut) }), rejected, failure };
  }

  close(): Promise<void> {
    return this.http.client.close();
  }

  /** Halves a request that is refused for its size or because of one bad span. Throws if the rest cannot be delivered. */
  async #deliver(indexes: readonly number[], delivery: Delivery, attempt = 1): Promise<void> {
    const { accepted, refused } = delivery;
    const due = indexes.filter((index) => !accepted.has(index) && !refused.has(index));
    if (due.length === 0) return;
    const reply = await this.#post(due, delivery);
    const { status, problem } = reply;
    if (problem !== undefined) throw new Error(problem);
    if (isSuccess(status)) return this.#settle(due, reply, delivery, attempt);
    if (status !== 400 && status !== 413) throw new Error(describeStatus(status));
    if (due.length > 1) {
      const middle = Math.ceil(due.length / 2);
      await this.#deliver(due.slice(0, middle), delivery);
      return this.#deliver(due.slice(middle), delivery);
    }
    return status === 413 ? this.#deliverCut(due, delivery) : this.#refuse(due, 400, delivery);
  }

  /** Sends of a single observation that is too large as much as the server accepts. */
  async #deliverCut(due: readonly number[], delivery: Delivery): Promise<void> {
    const [index = 0] = due;
    const whole = delivery.outgoing[index];
    for (const cut of whole ? cutOutgoing(whole) : []) {
      const reply = await this.#postRequest([cut], delivery.limits);
      const { status, problem } = reply;
      if (problem !== undefined) throw new Error(problem);
      if (isSuccess(status)) {
        await this.#settle(due, reply, delivery, 1);
        if (delivery.accepted.has(index)) delivery.cut.add(index);
        return;
      }
      if (status === 400) return this.#refuse(due, 400, delivery);
      if (status !== 413) throw new Error(describeStatus(status));
    }
    return this.#refuse(due, 413, delivery);
  }

  #post(indexes: readonly number[], { outgoing, limits }: Delivery): Promise<Reply> {
    const request = indexes.flatMap((index) => outgoing[index] ?? []);
    return this.#postRequest(request, limits);
  }

  async #postRequest(request: readonly Outgoing[], limits: Limits): Promise<Reply> {
    const reply = await this.#postAndAsk(request, limits).catch((error: Error) => error);
    this.#last = reply instanceof Error ? undefined : reply;
    if (!(reply instanceof Error)) this.#trouble = findTrouble(reply, this.#server);
    // Any other error, as that there was no time left, says nothing about the server.
    else if (reply instanceof NoResponseError)
      this.#trouble = { kind: isFair(reply) ? 'outage' : 'other', text: reply.message };
    if (reply instanceof Error) throw reply;
    return reply;
  }

  /**
   * If a request is refused as with wrong keys, asks again without observations. The answer to that has the server's own words,
   * and none of what was said. If it is accepted after a 403, the keys are good, and something objects to the content.
   */
  async #postAndAsk(request: readonly Outgoing[], limits: Limits): Promise<Reply> {
    const reply = await this.#transport.post(request, limits);
    if (!isRefusal(reply.status) || request.length === 0) return reply;
    const now = Date.now();
    // Somebody may be waiting, and each turn is refused again.
    const deadline = now + (limits.deadline - now) / ASKING_SHARE;
    const answer = await this.#transport.post([], { ...limits, deadline }).catch(() => undefined);
    if (answer && isRefusal(answer.status)) return answer;
    if (reply.status !== 403 || !answer || !isAccepted(answer)) return reply;
    return { status: reply.status, problem: OBJECTION, isAboutContent: true };
  }

  /** Records the result of each observation of an accepted request, and sends again those that may be accepted later. */
  async #settle(due: readonly number[], reply: Reply, delivery: Delivery, attempt: number): Promise<void> {
    const { accepted, refused, limits } = delivery;
    const { refusals = new Map<number, number>(), rejected } = reply;
    if (rejected) delivery.rejected = { ...rejected, spans: rejected.spans + (delivery.rejected?.spans ?? 0) };
    for (const [place, index] of due.entries()) {
      const status = refusals.get(place);
      if (status === undefined) accepted.add(index);
      else if (!isRetryable(status)) refused.add(index);
    }
    const temporary = [...refusals.values()].findLast(isRetryable);
    if (temporary === undefined) return;
    const until = nextAttemptAt(attempt);
    if (until >= limits.deadline) throw new Error(describeStatus(temporary));
    await waitUntil(until, limits.stop);
    return this.#deliver(due, delivery, attempt + 1);
  }

  /** A span that is refused on its own is at fault only if the server accepts something else. */
  async #refuse([index = 0]: readonly number[], status: Delivery['refusal'], delivery: Delivery): Promise<void> {
    const { outgoing, accepted, refused } = delivery;
    refused.add(index);
    delivery.refusal = status;
    const last = outgoing.length - 1;
    if (last === 0) {
      if (!isAccepted(await this.#post([], delivery))) throw new Error(describeRefusals(delivery));
    } else if (accepted.size === 0 && refused.size === MAX_REFUSALS_WITHOUT_SUCCESS && index !== last) {
      await this.#deliver([last], delivery);
      if (accepted.size === 0) throw new Error(describeRefusals(delivery));
    }
  }
}

function describeRefusals({ refusal }: Delivery): string {
  const advice = refusal === 413 ? ', also halved and cut: raise the limit of the proxy in front of it' : '';
  return `the server refuses every span (${refusal})${advice}`;
}

const OBJECTION =
  'the server accepts the keys, but not this content (403): a firewall in front of it may object to what was said';

/** A server that had less time to answer than this may be well. */
const FAIR_WAIT_MS = 1_000;

function isFair({ waitedMs = FAIR_WAIT_MS }: NoResponseError): boolean {
  return waitedMs >= FAIR_WAIT_MS;
}

function findTrouble(reply: Reply, { host, describeRefusal }: Described): Trouble | undefined {
  const { status, problem, words, isAboutContent = false } = reply;
  // Another session may get through.
  if (isAboutContent) return undefined;
  if (problem === undefined && (isSuccess(status) || status === 400 || status === 413 || status === 429))
    return undefined;
  if (isRefusal(status)) return { kind: 'refusal', text: describeRefusal({ status, words }) };
  const text = `sending to ${host} fails: ${problem ?? describeStatus(status)}`;
  return { kind: status === 408 || status >= 500 ? 'outage' : 'other', text };
}

function describeStatus(status: number): string {
  if (status === 429) return 'the server asks to wait (429)';
  return status >= 300 && status < 400
    ? `the server redirects elsewhere (${status}); redirects are not followed`
    : `the server answers ${status}`;
}
