import type { SendReport } from './langfuse/send.js';
import type { Entry } from './state/store.js';

/** What is true of the state once a span (or, where there is none, everything before) has been acknowledged. */
export interface Item {
  readonly span: string | undefined;
  readonly change: Partial<Entry>;
}

const REQUEST_BYTES = 4_000_000;

/**
 * Gathers spans into requests and moves the state on with each acknowledgement, never before it. What one `add` brings
 * goes in one request where it fits.
 */
export class Outbox {
  readonly #send: (spans: readonly string[]) => Promise<SendReport>;
  readonly #advance: (change: Partial<Entry>) => Promise<void>;
  readonly #onDropped: (span: string) => void;
  #items: Item[] = [];
  #bytes = 0;
  #sent = 0;
  #failure: string | undefined;

  constructor(
    send: (spans: readonly string[]) => Promise<SendReport>,
    advance: (change: Partial<Entry>) => Promise<void>,
    onDropped: (span: string) => void,
  ) {
    this.#send = send;
    this.#advance = advance;
    this.#onDropped = onDropped;
  }

  get failure(): string | undefined {
    return this.#failure;
  }

  get sent(): number {
    return this.#sent;
  }

  /** Once something has failed nothing more is taken: what comes later must not be acknowledged before it. */
  async add(items: readonly Item[]): Promise<void> {
    const bytes = items.reduce((sum, { span = '' }) => sum + Buffer.byteLength(span), 0);
    if (this.#bytes + bytes > REQUEST_BYTES) await this.flush();
    for (const item of items) {
      const itemBytes = Buffer.byteLength(item.span ?? '');
      if (this.#bytes > 0 && this.#bytes + itemBytes > REQUEST_BYTES) await this.flush();
      this.#items.push(item);
      this.#bytes += itemBytes;
    }
  }

  async flush(): Promise<void> {
    const items = this.#items;
    this.#items = [];
    this.#bytes = 0;
    if (this.#failure !== undefined || items.length === 0) return;
    const spans = items.flatMap(({ span }) => (span === undefined ? [] : [span]));
    const report = spans.length > 0 ? await this.#send(spans) : { settled: 0, dropped: [], failure: undefined };
    for (const place of report.dropped) this.#onDropped(spans[place] ?? '');
    this.#sent += report.settled - report.dropped.length;
    this.#failure = report.failure;
    const change = changeUpTo(items, report.settled);
    if (change) await this.#advance(change);
  }
}

/** The changes of all items before the first unsettled span, the later ones over the earlier. */
function changeUpTo(items: readonly Item[], settledSpans: number): Partial<Entry> | undefined {
  let spans = 0;
  let change: Partial<Entry> | undefined;
  for (const item of items) {
    if (item.span !== undefined) spans += 1;
    if (spans > settledSpans) break;
    change = { ...change, ...item.change };
  }
  return change;
}
