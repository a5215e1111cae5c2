import type { Langfuse } from '../config.js';
import { isRecord, parseJson } from '../json.js';
import type { Media, Observation } from '../observations/model.js';
import { MediaConnections } from './media-connections.js';
import type { Answer } from './post.js';
import { authorization, urlOf } from './receiver.js';

/** What became of the images and documents that an observation refers to. */
export interface MediaReport {
  /** References to what is not there. */
  readonly missing: ReadonlySet<string>;
  /** Why. */
  readonly failure: string | undefined;
}

interface Place {
  readonly traceId: string;
  readonly observationId: string;
}

const AT_ONCE = 6;
/** A server that took none is not asked again for each: there may be many, and turns wait for them. */
const PAUSE_MS = 10 * 60_000;

/**
 * Brings images and documents to Langfuse. It is told of each, and to which field it belongs; it gives a URL of its storage,
 * or none where it has these bytes: so each goes there once.
 */
export class MediaUploads {
  readonly #receiver: Langfuse;
  readonly #connections = new MediaConnections();
  /** By hash: what is on its way is not to go twice. */
  readonly #underWay = new Map<string, Promise<unknown>>();
  #window: { readonly deadline: number; readonly until: number } | undefined;
  #pausedUntil = 0;
  #failure = '';

  constructor(receiver: Langfuse) {
    this.#receiver = receiver;
  }

  /** `deadline` is when the observations themselves must be there, in ms since 1970. */
  async bring({ media = [], id, trace }: Observation, deadline: number): Promise<MediaReport> {
    const place = { traceId: trace.id, observationId: id };
    const once = [...new Map(media.map((each) => [`${each.field} ${each.reference}`, each])).values()];
    const until = this.#untilFor(deadline);
    const missing = new Map<string, string>();
    for (let from = 0; from < once.length; from += AT_ONCE) {
      const bringing = once.slice(from, from + AT_ONCE).map(async (each) => {
        const failure = await this.#bringInTurn(each, place, until);
        if (failure !== undefined) missing.set(each.reference, failure);
      });
      await Promise.all(bringing);
    }
    return { missing: new Set(missing.keys()), failure: [...missing.values()][0] };
  }

  close(): Promise<void> {
    return this.#connections.close();
  }

  /** Of the time up to a deadline half is left for the observations. */
  #untilFor(deadline: number): number {
    if (this.#window?.deadline !== deadline) this.#window = { deadline, until: (Date.now() + deadline) / 2 };
    return this.#window.until;
  }

  async #bringInTurn(media: Media, place: Place, until: number): Promise<string | undefined> {
    const hash = media.sha256.toString('base64');
    const bringing = (this.#underWay.get(hash) ?? Promise.resolve()).then(() => this.#bringOne(media, place, until));
    this.#underWay.set(hash, bringing);
    const failure = await bringing;
    if (this.#underWay.get(hash) === bringing) this.#underWay.delete(hash);
    return failure;
  }

  /** Why it is not there. */
  async #bringOne(media: Media, place: Place, until: number): Promise<string | undefined> {
    if (Date.now() < this.#pausedUntil) return this.#failure;
    try {
      await this.#upload(media, place, until);
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

  async #upload({ reference, bytes, ...media }: Media, place: Place, until: number): Promise<void> {
    const sha256Hash = media.sha256.toString('base64');
    const { field, contentType, length: contentLength } = media;
    const about = { ...place, field, contentType, contentLength, sha256Hash };
    const { mediaId, uploadUrl } = uploadIn(await this.#ask('POST', '/api/public/media', about, until));
    if (!reference.includes(`|id=${mediaId}|`)) throw new Refusal('the server calls it otherwise');
    if (uploadUrl === undefined) return;
    const startedAt = Date.now();
    const headers = { 'content-type': contentType, ...storageHeaders(uploadUrl, sha256Hash) };
    const { status } = await this.#connections.ask(uploadUrl, { method: 'PUT', headers, body: bytes() }, until);
    const uploadedAt = new Date().toISOString();
    // Until it is told so the server does not show it.
    await this.#ask(
      'PATCH',
      `/api/public/media/${encodeURIComponent(mediaId)}`,
      { uploadedAt, uploadHttpStatus: status, uploadTimeMs: Date.now() - startedAt },
      until,
    );
    if (status >= 300) throw new Error(`the storage at ${uploadUrl.host} answers ${status}`);
  }

  async #ask(method: 'POST' | 'PATCH', path: string, content: object, until: number): Promise<Answer> {
    const body = Buffer.from(JSON.stringify(content));
    const headers = { authorization: authorization(this.#receiver), 'content-type': 'application/json' };
    const answer = await this.#connections.ask(urlOf(this.#receiver, path), { method, headers, body }, until);
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
