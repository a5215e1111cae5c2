import type { Outgoing, Rejected, SendReport } from '../langfuse/destination.js';
import type { Observation } from '../observations/model.js';
import { type Entry, merged } from '../state/entry.js';
import { NOTHING, sum, type Tally, tallyOf } from './tally.js';

/** What is true of the state as soon as all before it has been sent, itself included where it is an observation. */
export interface Item {
  readonly change: Partial<Entry>;
  readonly observation?: Observation;
}

interface Span {
  readonly outgoing: Outgoing;
  /** What it is called in the log. */
  readonly label: string;
  readonly tally: Tally;
}

interface Encoded {
  readonly change: Partial<Entry>;
  readonly span: Span | undefined;
}

export interface OutboxTools {
  /** Asked once, before anything is sent; throws where it must not be. */
  readonly ready: () => Promise<void>;
  /** Gives an observation what it still lacks. */
  readonly finish: (observation: Observation) => Promise<Observation>;
  readonly encode: (observation: Observation) => Outgoing;
  readonly send: (spans: readonly Outgoing[]) => Promise<SendReport>;
  readonly advance: (change: Partial<Entry>) => Promise<void>;
  /** Told of each observation that is to be sent, as it will be. */
  readonly onObservation: ((observation: Observation) => void) | undefined;
  readonly onTaken: ((taken: Tally) => void) | undefined;
  /** Told of what the server refuses for what it is. */
  readonly onDropped: (label: string) => void;
  /** Told of what it rejects without telling which, of how many. */
  readonly onRejected: (rejected: Rejected, sent: number) => void;
}

// Larger ones save few requests, and what waits in them outlives the garbage collector's first look: a backfill takes 190 MB
// with these, 200 with 1 MB, and twice that with 4 MB. Smaller ones cost time: with 0.5 MB a tenth more.
const REQUEST_BYTES = 800_000;
/** What an observation lacks may come from elsewhere, and may be large. */
const FINISHED_AT_ONCE = 8;

/**
 * Gathers spans into requests and moves the state on with each acknowledgement, never before it. What one `add` brings
 * goes in one request where it fits.
 */
export class Outbox {
  readonly #tools: OutboxTools;
  #items: Encoded[] = [];
  #bytes = 0;
  #sent = NOTHING;
  #failure: string | undefined;
  #ready: Promise<void> | undefined;

  constructor(tools: OutboxTools) {
    this.#tools = tools;
  }

  /** Why something was not sent. Nothing more is sent then: what comes later must not be acknowledged before it. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Whether something waits that was not tried. */
  get isWaiting(): boolean {
    return this.#items.length > 0;
  }

  /** What the server has taken. */
  get sent(): Tally {
    return this.#sent;
  }

  async add(items: readonly Item[]): Promise<void> {
    let together: Encoded[] = [];
    let bytes = 0;
    for (let from = 0; from < items.length; from += FINISHED_AT_ONCE) {
      if (this.#failure !== undefined) return;
      const some = items.slice(from, from + FINISHED_AT_ONCE);
      for (const item of await Promise.all(some.map((each) => this.#finished(each)))) {
        const encoded = this.#encode(item);
        const itsBytes = encoded.span?.tally.bytes ?? 0;
        if (bytes > 0 && bytes + itsBytes > REQUEST_BYTES) {
          await this.#take(together, bytes);
          together = [];
          bytes = 0;
        }
        together.push(encoded);
        bytes += itsBytes;
      }
    }
    await this.#take(together, bytes);
  }

  async #take(items: readonly Encoded[], bytes: number): Promise<void> {
    if (this.#bytes > 0 && this.#bytes + bytes > REQUEST_BYTES) await this.flush();
    this.#items.push(...items);
    this.#bytes += bytes;
  }

  async #finished({ change, observation }: Item): Promise<Item> {
    if (!observation) return { change };
    this.#ready ??= this.#tools.ready();
    await this.#ready;
    return { change, observation: await this.#tools.finish(observation) };
  }

  async flush(): Promise<void> {
    const items = this.#items;
    this.#items = [];
    this.#bytes = 0;
    if (this.#failure !== undefined || items.length === 0) return;
    const spans = items.flatMap(({ span }) => span ?? []);
    const nothing: SendReport = { settled: 0, dropped: [], failure: undefined };
    const report = spans.length > 0 ? await this.#tools.send(spans.map(({ outgoing }) => outgoing)) : nothing;
    for (const place of report.dropped) this.#tools.onDropped(spans[place]?.label ?? '');
    const settled = spans.slice(0, report.settled).filter((_, place) => !report.dropped.includes(place));
    const whole = sum(settled.map(({ tally }) => tally));
    const { rejected } = report;
    if (rejected) this.#tools.onRejected(rejected, settled.length);
    const taken = { ...whole, observations: Math.max(0, whole.observations - (rejected?.spans ?? 0)) };
    this.#sent = sum([this.#sent, taken]);
    this.#tools.onTaken?.(taken);
    this.#failure = report.failure;
    const change = changeUpTo(items, report.settled);
    if (change) await this.#tools.advance(change);
  }

  /** Until it is sent no more is kept of an observation than its transport needs: there is much in one. */
  #encode({ change, observation }: Item): Encoded {
    if (!observation) return { change, span: undefined };
    this.#tools.onObservation?.(observation);
    const outgoing = this.#tools.encode(observation);
    const { type, id, trace } = observation;
    const tally = tallyOf(observation, Buffer.byteLength(outgoing.json));
    return { change, span: { outgoing, label: `${type} ${id} of trace ${trace.id}`, tally } };
  }
}

/** The changes of all items before the first unsettled span, the later ones over the earlier. */
function changeUpTo(items: readonly Encoded[], settledSpans: number): Partial<Entry> | undefined {
  let spans = 0;
  let change: Partial<Entry> | undefined;
  for (const item of items) {
    if (item.span !== undefined) spans += 1;
    if (spans > settledSpans) break;
    change = merged(change ?? {}, item.change);
  }
  return change;
}
