import type { Limits, Outgoing } from '../langfuse/destination.js';
import type { TraceSettings } from '../observations/build/trace.js';
import { replaceMissingMedia } from '../observations/content/media.js';
import type { Media, Observation } from '../observations/model.js';
import { type Failure, otherFailure } from '../shared/failure.js';
import { type Change, mergeChanges } from '../state/entry.js';
import type { SessionRun } from './session-run.js';
import { countObservation, NOTHING, sumTallies, type Tally } from './tally.js';

/** An observation, a change of the state, or both. The change is saved once this and everything before it are acknowledged. */
export interface OutboxItem {
  readonly change: Change;
  readonly observation?: Observation;
  /** Those of the observation's turn. */
  readonly settings?: TraceSettings;
  /** Whether it is the root of a turn that ran without tracing. */
  readonly isUntraced?: boolean;
}

interface EncodedSpan {
  readonly outgoing: Outgoing;
  readonly label: string;
  readonly tally: Tally;
}

interface EncodedItem {
  readonly change: Change;
  readonly span: EncodedSpan | undefined;
}

// Larger requests save few round trips, and what waits in them survives the garbage collector's first pass: a backfill takes
// 190 MB with this size, 200 with 1 MB, and twice that with 4 MB. With 0.5 MB it takes a tenth longer.
const REQUEST_BYTES = 800_000;
/** An observation may need a large request body or an upload before it can be sent. */
const PREPARED_AT_ONCE = 8;
/** How long a backfill, which nobody waits for, lets a server be unavailable or ask it to wait. */
const BACKFILL_PATIENCE_MS = 10 * 60_000;

/**
 * Gathers observations into requests, and saves the state with each acknowledgement, never before. What one `add` brings is sent
 * in one request if it fits.
 */
export class Outbox {
  readonly #run: SessionRun;
  readonly #reported = new Set<string>();
  /** What the server has acknowledged. */
  sent = NOTHING;
  /** Why something was not sent. Nothing more is sent then: what comes later must not be acknowledged before it. */
  failure: Failure | undefined;
  /** Whether the export has to begin again. */
  isOutdated = false;
  #isRefused = false;
  #items: EncodedItem[] = [];
  #bytes = 0;
  #isChecked = false;

  constructor(run: SessionRun) {
    this.#run = run;
  }

  /** Whether something has not been tried yet. */
  get isWaiting(): boolean {
    return this.#items.length > 0;
  }

  /** Sends nothing more, since something must not be sent as it is. */
  hold(failure: Failure): void {
    this.failure ??= failure;
  }

  async add(items: Iterable<OutboxItem>): Promise<void> {
    let together: EncodedItem[] = [];
    let bytes = 0;
    for (const batch of inBatches(items, PREPARED_AT_ONCE)) {
      if (this.failure !== undefined) return;
      for (const item of await Promise.all(batch.map((each) => this.#prepare(each)))) {
        const encoded = this.#encode(item);
        together.push(encoded);
        bytes += sizeOf(encoded);
        if (bytes <= REQUEST_BYTES) continue;
        // It does not fit into one request: use as few as possible, together with what waits already.
        for (const each of together) await this.#queue([each], sizeOf(each));
        together = [];
      }
    }
    if (together.length > 0) await this.#queue(together, bytes);
  }

  /** Sends what waits. If it saves 'later', `writer` saves the change together with the next one, or when it is told to. */
  async flush(saves: 'now' | 'later' = 'now'): Promise<void> {
    const items = this.#items;
    this.#items = [];
    this.#bytes = 0;
    if (this.#isRefused || items.length === 0) return;
    if (this.#mustStop()) return;
    const { context, writer } = this.#run;
    const settled = await this.#send(items.flatMap(({ span }) => span ?? []));
    // Where the session was sent before, that is known.
    if (settled > 0 && !writer.known.acknowledged) context.state.acknowledge(context.destinationId);
    const change = changeUpTo(items, settled);
    const isLeft = this.failure !== undefined && { file: undefined };
    if (!change) return;
    writer.saveLater({ ...change, ...(settled > 0 && { acknowledged: true }), ...isLeft });
    if (saves === 'now') await writer.saveUnsaved();
  }

  /**
   * Sends the scores that are due, and returns why some still are. The state records a turn's scores as due in the same change that
   * records the turn as acknowledged, and until they are acknowledged themselves: so they never hold up a turn, and none is lost.
   */
  async sendScores(): Promise<Failure | undefined> {
    const { context, request, writer } = this.#run;
    const { sessionId: session } = request;
    const { destination } = context;
    const due = Object.entries(writer.scores ?? {}).flatMap(([root, turn]) => (turn ? [{ root, turn }] : []));
    // Those that are due for another kind of destination stay so.
    if (due.length === 0 || !destination.sendScores) return undefined;
    await writer.saveUnsaved();
    const turns = due.map(({ turn }) => turn);
    writer.checkLock();
    const { settled, refused, failure } = await destination.sendScores(turns, this.#limits);
    for (const score of refused) context.log.warn('the server refuses a score, it is skipped', { session, score });
    const taken = due.slice(0, settled).map(({ root }) => [root, undefined]);
    if (taken.length > 0) await writer.save({ scores: Object.fromEntries(taken) });
    return failure && { ...failure, text: `scores were not sent: ${failure.text}` };
  }

  /** Whether something that was built may no longer leave: the user has muted the session, or another process has ended a run. */
  #mustStop(): boolean {
    const { request, context, lookup, writer } = this.#run;
    writer.checkLock();
    const known = context.state.readSession(request.sessionId);
    this.isOutdated ||= known !== undefined && lookup.isOutdated(known);
    if (this.isOutdated)
      this.hold(otherFailure('the session was muted, or a run of it has begun or ended, while it was exported'));
    return this.isOutdated;
  }

  /** When to give up what is sent now. */
  get #limits(): Limits {
    const { request, context } = this.#run;
    const isBackfill = request.occasion === 'backfill';
    return { deadline: isBackfill ? Date.now() + BACKFILL_PATIENCE_MS : context.deadline, stop: context.stop };
  }

  async #queue(items: readonly EncodedItem[], bytes: number): Promise<void> {
    if (this.#bytes > 0 && this.#bytes + bytes > REQUEST_BYTES) await this.flush();
    this.#items.push(...items);
    this.#bytes += bytes;
  }

  /** Adds the whole request and uploads the media; what could not be uploaded is replaced by a placeholder. */
  async #prepare({ change, observation, settings, isUntraced = false }: OutboxItem): Promise<OutboxItem> {
    if (!observation) return { change };
    const { context, requests } = this.#run;
    if (!this.#isChecked) context.state.checkWritable();
    this.#isChecked = true;
    const complete = (settings && (await requests?.withRequest(observation, settings))) ?? observation;
    if (!complete.media?.length || this.#mustStop()) return { change, isUntraced, observation: complete };
    const { missing, failure } = (await context.destination.uploadMedia?.(complete, this.#limits)) ?? {};
    if (failure !== undefined) this.#warnOnce(failure);
    return {
      change,
      isUntraced,
      observation: replaceMissingMedia(complete, missing ?? listReferences(complete.media)),
    };
  }

  /** Keeps of an observation only what its transport needs: it may be large. */
  #encode({ change, observation, isUntraced }: OutboxItem): EncodedItem {
    if (!observation) return { change, span: undefined };
    const { destination, observer } = this.#run.context;
    observer?.onObservation?.(observation);
    const outgoing = destination.encode(observation);
    const { type, id, trace } = observation;
    const about = { scores: change.scores?.[id], isUntraced };
    const tally = countObservation(observation, Buffer.byteLength(outgoing.json), about);
    return { change, span: { outgoing, label: `${type} ${id} of trace ${trace.id}`, tally } };
  }

  /** Returns how many spans, counted from the first, need not be sent again. */
  async #send(spans: readonly EncodedSpan[]): Promise<number> {
    if (spans.length === 0) return 0;
    const { destination, observer, log } = this.#run.context;
    const session = this.#run.request.sessionId;
    const outgoing = spans.map((span) => span.outgoing);
    const { settled, dropped, cut = [], rejected, failure } = await destination.send(outgoing, this.#limits);
    for (const place of dropped)
      log.warn('the server refuses an observation, it is skipped', { session, span: spans[place]?.label });
    for (const place of cut)
      log.warn('an observation is too large for the server, it was cut', { session, span: spans[place]?.label });
    const accepted = spans.slice(0, settled).filter((_, place) => !dropped.includes(place));
    if (rejected)
      log.warn('the Collector rejected part of a request', {
        session,
        rejected: rejected.spans,
        sent: accepted.length,
        reason: rejected.reason,
      });
    const whole = sumTallies(accepted.map(({ tally }) => tally));
    const acknowledged = { ...whole, observations: Math.max(0, whole.observations - (rejected?.spans ?? 0)) };
    this.sent = sumTallies([this.sent, acknowledged]);
    observer?.onAcknowledged?.(acknowledged);
    this.#isRefused = failure !== undefined;
    this.failure ??= failure;
    return settled;
  }

  #warnOnce(reason: string): void {
    const { context, request } = this.#run;
    const message = 'an image or document was not uploaded, a placeholder replaces it';
    if (!this.#reported.has(reason)) context.log.warn(message, { session: request.sessionId, reason });
    this.#reported.add(reason);
  }
}

/**
 * Pairs observations with the change to save once they are acknowledged. Several may depend on the same line: only the last of
 * them completes it.
 */
export function* withStateChanges(
  parts: Iterable<{ readonly observation: Observation; readonly settings: TraceSettings }>,
  changeAt: (line: number) => Change,
): Generator<OutboxItem, void, undefined> {
  let last: Required<Pick<OutboxItem, 'observation' | 'settings'>> | undefined;
  for (const part of parts) {
    const { line } = part.observation;
    if (last) yield { ...last, change: last.observation.line === line ? {} : changeAt(last.observation.line) };
    last = part;
  }
  if (last) yield { ...last, change: changeAt(last.observation.line) };
}

function sizeOf({ span }: EncodedItem): number {
  return span?.tally.bytes ?? 0;
}

function* inBatches<T>(items: Iterable<T>, size: number): Generator<T[], void, undefined> {
  let batch: T[] = [];
  for (const item of items) {
    batch.push(item);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Merges the changes of all items before the first span that is not settled. */
function changeUpTo(items: readonly EncodedItem[], settledSpans: number): Change | undefined {
  let spans = 0;
  let change: Change | undefined;
  for (const item of items) {
    if (item.span !== undefined) spans += 1;
    if (spans > settledSpans) break;
    change = mergeChanges(change ?? {}, item.change);
  }
  return change;
}

function listReferences(media: readonly Media[]): Set<string> {
  return new Set(media.map(({ reference }) => reference));
}
