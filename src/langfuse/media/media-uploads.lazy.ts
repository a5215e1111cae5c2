import type { LangfuseConfig } from '../../config/settings.js';
import type { Media, Observation } from '../../observations/model.js';
import { isRecord, parseJson } from '../../shared/json.js';
import type { MediaReport } from '../destination.js';
import type { Answer } from '../http/post.js';
import { isSuccess } from '../http/status.js';
import { authorization, langfuseUrl } from '../receiver.js';
import { MediaConnections, NO_TIME_LEFT, type Patience } from './media-connections.js';

interface Errand {
  readonly place: { readonly traceId: string; readonly observationId: string };
  readonly when: Patience;
}

/** Of all observations together: each may be large, and many observations come at once. */
const AT_ONCE = 6;
/** A server that took none is not asked again for each: there may be many, and turns wait for them. */
const PAUSE_MS = 10 * 60_000;

/**
 * Brings images and documents to Langfuse. It is told of each, and to which field it belongs; it gives a URL of its storage,
 * or none where it has these bytes: so each goes there once.
 */
export class MediaUploads {
  readonly #receiver: LangfuseConfig;
  readonly #connections = new MediaConnections();
  /** By hash: what is on its way is not to go twice. */
  readonly #underWay = new Map<string, Promise<unknown>>();
  /** Hashes: the server asks again for what its storage has taken with a 201, as Azure's does. */
  readonly #brought = new Set<string>();
  /** The last one in each of the rows in which they wait. */
  readonly #rows: Promise<unknown>[] = [];
  #nextRow = 0;
  #window: { readonly deadline: number; readonly until: number } | undefined;
  #pausedUntil = 0;
  #failure = '';

  constructor(receiver: LangfuseConfig) {
    this.#receiver = receiver;
  }

  /** `deadline` is when the observations themselves must be there, in ms since 1970; `stop` gives up what is not under way. */
  async bring({ media = [], id, trace }: Observation, deadline: number, stop?: AbortSignal): Promise<MediaReport> {
    const errand = {
      place: { traceId: trace.id, observationId: id },
      when: { until: this.#untilFor(deadline), stop },
    };
    const once = [...new Map(media.map((each) => [`${each.field} ${each.reference}`, each])).values()];
    const missing = new Map<string, string>();
    const bringing = once.map(async (each) => {
      const failure = await this.#bringInTurn(each, errand);
      if (failure !== undefined) missing.set(each.reference, failure);
    });
    await Promise.all(bringing);
    return { missing: new Set(missing.keys()), failure: stop?.aborted ? undefined : [...missing.values()][0] };
  }

  close(): Promise<void> {
    return this.#connections.close();
  }

  /** Of the time up to a deadline half is left for the observations. */
  #untilFor(deadline: number): number {
    if (this.#window?.deadline !== deadline) this.#window = { deadline, until: (Date.now() + deadline) / 2 };
    return this.#window.until;
  }

  async #bringInTurn(media: Media, errand: Errand): Promise<string | undefined> {
    const { sha256: hash } = media;
    const row = this.#nextRow;
    this.#nextRow = (row + 1) % AT_ONCE;
    const before = Promise.all([this.#rows[row], this.#underWay.get(hash)]);
    const bringing = before.then(() => this.#bringOne(media, errand));
    this.#rows[row] = bringing;
    this.#underWay.set(hash, bringing);
    const failure = await bringing;
    if (this.#underWay.get(hash) === bringing) this.#underWay.delete(hash);
    return failure;
  }

  /** Why it is not there. */
  async #bringOne(media: Media, errand: Errand): Promise<string | undefined> {
    if (errand.when.stop?.aborted) return 'stopped';
    if (Date.now() < this.#pausedUntil) return this.#failure;
    // The server was not asked: for what has more time it may be.
    if (Date.now() >= errand.when.until) return NO_TIME_LEFT;
    try {
      await this.#upload(media, errand);
      return undefined;
    } catch (error) {
      const { message } = error as Error;
      if (!(error instanceof Refusal)) {
        this.#pausedUntil = Date.now() + PAUSE_MS;
        this.#failure = message;
      }
      return message;
    }
  }

  async #upload({ reference, bytes, ...media }: Media, { place, when }: Errand): Promise<void> {
    const { field, contentType, length: contentLength, sha256: sha256Hash } = media;
    const about = { ...place, field, contentType, contentLength, sha256Hash };
    const { mediaId, uploadUrl } = uploadIn(await this.#ask('POST', '/api/public/media', about, when));
    if (!reference.includes(`|id=${mediaId}|`)) throw new Refusal('the server calls it otherwise');
    if (uploadUrl === undefined || this.#brought.has(sha256Hash)) return;
    const startedAt = Date.now();
    const headers = { 'content-type': contentType, ...storageHeaders(uploadUrl, sha256Hash) };
    const stored = await this.#connections.ask(uploadUrl, { method: 'PUT', headers, body: bytes() }, when);
    const { status } = stored;
    const said = `the storage at ${uploadUrl.host} answers ${status}`;
    // Google's storage calls its empty answer HTML.
    if (stored.isPage && stored.text.trim() !== '' && isSuccess(status)) throw new Error(`${said} with a page`);
    const uploadedAt = new Date().toISOString();
    // Until it is told so the server does not show it.
    await this.#ask(
      'PATCH',
      `/api/public/media/${encodeURIComponent(mediaId)}`,
      { uploadedAt, uploadHttpStatus: status, uploadTimeMs: Date.now() - startedAt },
      when,
    );
    if (status === 413) throw new Refusal(said);
    if (!isSuccess(status)) throw new Error(said);
    this.#brought.add(sha256Hash);
  }

  async #ask(method: 'POST' | 'PATCH', path: string, content: object, when: Patience): Promise<Answer> {
    const body = Buffer.from(JSON.stringify(content));
    const headers = { authorization: authorization(this.#receiver), 'content-type': 'application/json' };
    const answer = await this.#connections.ask(langfuseUrl(this.#receiver, path), { method, headers, body }, when);
    const { status, isPage } = answer;
    if (status === 400 || status === 413 || status === 422) throw new Refusal(`the server refuses it (${status})`);
    if (status === 404) throw new Error('the server takes no media (404)');
    if (status >= 300 || isPage)
      throw new Error(`the server answers ${status}${isPage ? ' with a page' : ''} to media`);
    return answer;
  }
}

/** Something about one of them, not about the server. */
class Refusal extends Error {}

function uploadIn({ text }: Answer): { mediaId: string; uploadUrl: URL | undefined } {
  const answer = parseJson(text);
  const { mediaId, uploadUrl } = isRecord(answer) ? answer : {};
  const url = typeof uploadUrl === 'string' && URL.canParse(uploadUrl) ? new URL(uploadUrl) : undefined;
  const isUsable = uploadUrl === null || uploadUrl === undefined || /^https?:$/.test(url?.protocol ?? '');
  if (typeof mediaId !== 'string' || !isUsable) throw new Error('what answers to media is no Langfuse');
  return { mediaId, uploadUrl: url };
}

/** Google's storage refuses headers that were not signed; S3 wants the one, Azure the other. */
function storageHeaders({ hostname }: URL, sha256Hash: string): { [name: string]: string } {
  const isGoogle = /(?:^|\.)storage\.googleapis\.com$/.test(hostname);
  return isGoogle ? {} : { 'x-amz-checksum-sha256': sha256Hash, 'x-ms-blob-type': 'BlockBlob' };
}
