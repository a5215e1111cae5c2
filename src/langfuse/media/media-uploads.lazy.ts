import type { LangfuseConfig } from '../../config/settings.js';
import type { Media, Observation } from '../../observations/model.js';
import { isRecord, parseJson } from '../../shared/json.js';
import type { Limits, MediaReport } from '../destination.js';
import { apiRequest } from '../endpoint.js';
import { type Http, isSuccess } from '../http/client.js';

interface UploadJob {
  readonly media: Media;
  /** The observation that refers to it. */
  readonly owner: { readonly traceId: string; readonly observationId: string };
  readonly limits: Limits;
}

/** For all observations together: files may be large, and many observations may be exported at once. */
const MAX_PARALLEL = 6;
/** After a server has failed, it is not asked again for each of many files while their turns wait. */
const PAUSE_MS = 10 * 60_000;

/**
 * Uploads images and documents. Langfuse is told of each file and of the field to which it belongs; it answers with an
 * upload URL of its storage, or without one if it already has the file. So each file is uploaded once.
 */
export class MediaUploads {
  readonly #config: LangfuseConfig;
  readonly #http: Http;
  /** Hashes of files that were stored: the server asks again for one that its storage accepted with a 201, as Azure's does. */
  readonly #stored = new Set<string>();
  /** The upload under way of each hash: the same file waits for it. */
  readonly #underWay = new Map<string, Promise<unknown>>();
  /** The last upload of each of the queues among which uploads are dealt out. */
  readonly #queues: Promise<unknown>[] = [];
  #nextQueue = 0;
  #window: { readonly deadline: number; readonly end: number } | undefined;
  #pause: { readonly until: number; readonly failure: string } | undefined;

  constructor(config: LangfuseConfig, http: Http) {
    this.#config = config;
    this.#http = http;
  }

  /** `deadline` is that of the observation itself. */
  async upload({ media = [], id, trace }: Observation, { deadline, stop }: Limits): Promise<MediaReport> {
    const owner = { traceId: trace.id, observationId: id };
    const limits = { deadline: this.#endOfWindow(deadline), stop };
    const unique = [...new Map(media.map((each) => [`${each.field} ${each.reference}`, each])).values()];
    const failures = await Promise.all(unique.map((each) => this.#enqueue({ media: each, owner, limits })));
    const missing = unique.filter((_, place) => failures[place] !== undefined).map(({ reference }) => reference);
    return { missing: new Set(missing), failure: stop?.aborted ? undefined : failures.find(Boolean) };
  }

  /** Half of the time up to the deadline is left for the observations. */
  #endOfWindow(deadline: number): number {
    if (this.#window?.deadline !== deadline) this.#window = { deadline, end: (Date.now() + deadline) / 2 };
    return this.#window.end;
  }

  async #enqueue(job: UploadJob): Promise<string | undefined> {
    const { sha256 } = job.media;
    const queue = this.#nextQueue;
    this.#nextQueue = (queue + 1) % MAX_PARALLEL;
    const before = Promise.all([this.#queues[queue], this.#underWay.get(sha256)]);
    const upload = before.then(() => this.#run(job));
    this.#queues[queue] = upload;
    this.#underWay.set(sha256, upload);
    const failure = await upload;
    if (this.#underWay.get(sha256) === upload) this.#underWay.delete(sha256);
    return failure;
  }

  /** Returns why the file was not uploaded. */
  async #run(job: UploadJob): Promise<string | undefined> {
    const { deadline, stop } = job.limits;
    if (stop?.aborted) return 'stopped';
    if (this.#pause && Date.now() < this.#pause.until) return this.#pause.failure;
    // Not the server's fault: a file that has more time is tried.
    if (Date.now() >= deadline) return 'no time was left to upload it';
    try {
      await this.#upload(job);
      return undefined;
    } catch (error) {
      const { message } = error as Error;
      if (!(error instanceof FileRefusal)) this.#pause = { until: Date.now() + PAUSE_MS, failure: message };
      return message;
    }
  }

  async #upload({ media, owner, limits }: UploadJob): Promise<void> {
    const { field, contentType, length: contentLength, sha256: sha256Hash } = media;
    const announcement = { ...owner, field, contentType, contentLength, sha256Hash };
    const answer = await this.#askLangfuse('POST', '/api/public/media', announcement, limits);
    const { mediaId, uploadUrl } = parseUploadUrl(answer);
    if (!media.reference.includes(`|id=${mediaId}|`)) throw new FileRefusal('the server uses another media ID');
    if (uploadUrl === undefined || this.#stored.has(sha256Hash)) return;
    const startedAt = Date.now();
    const headers = { 'content-type': contentType, ...storageHeaders(uploadUrl, sha256Hash) };
    const request = { method: 'PUT', url: uploadUrl, headers, body: media.bytes() } as const;
    const { status, isPage, body } = await this.#http.request(request, limits);
    const outcome = `the storage at ${uploadUrl.host} answers ${status}`;
    // Google's storage calls its empty answer HTML.
    if (isPage && body.trim() !== '' && isSuccess(status)) throw new Error(`${outcome} with a web page`);
    const uploadedAt = new Date().toISOString();
    const result = { uploadedAt, uploadHttpStatus: status, uploadTimeMs: Date.now() - startedAt };
    // The server shows the file only once it has been told the result.
    await this.#askLangfuse('PATCH', `/api/public/media/${encodeURIComponent(mediaId)}`, result, limits);
    if (status === 413) throw new FileRefusal(outcome);
    if (!isSuccess(status)) throw new Error(outcome);
    this.#stored.add(sha256Hash);
  }

  /** Returns the body of the answer. */
  async #askLangfuse(method: 'POST' | 'PATCH', path: string, content: object, limits: Limits): Promise<string> {
    const request = await apiRequest(this.#config, limits, method, path, content);
    const { status, isPage, body } = await this.#http.request(request, limits);
    if (status === 400 || status === 413 || status === 422)
      throw new FileRefusal(`the server refuses the file (${status})`);
    if (status === 404) throw new Error('the server accepts no media (404)');
    if (status >= 300 || isPage)
      throw new Error(`the server answers ${status}${isPage ? ' with a web page' : ''} to a media request`);
    return body;
  }
}

/** The fault is the file's, not the server's. */
class FileRefusal extends Error {}

function parseUploadUrl(body: string): { mediaId: string; uploadUrl: URL | undefined } {
  const answer = parseJson(body);
  const { mediaId, uploadUrl } = isRecord(answer) ? answer : {};
  const url = typeof uploadUrl === 'string' && URL.canParse(uploadUrl) ? new URL(uploadUrl) : undefined;
  const isUsable = uploadUrl === null || uploadUrl === undefined || /^https?:$/.test(url?.protocol ?? '');
  if (typeof mediaId !== 'string' || !isUsable)
    throw new Error('this is not Langfuse: its answer to a media request has no media ID or no usable upload URL');
  return { mediaId, uploadUrl: url };
}

/** Google's storage refuses headers that were not signed; S3 needs the first, Azure the second. */
function storageHeaders({ hostname }: URL, sha256Hash: string): { [name: string]: string } {
  const isGoogle = /(?:^|\.)storage\.googleapis\.com$/.test(hostname);
  return isGoogle ? {} : { 'x-amz-checksum-sha256': sha256Hash, 'x-ms-blob-type': 'BlockBlob' };
}
