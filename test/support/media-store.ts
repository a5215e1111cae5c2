import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import * as z from 'zod/mini';
import { parseJson } from '../../src/shared/json.js';
import type { ApiAnswer } from './langfuse-api.js';
import type { StoredObservation } from './langfuse-server.js';

const Announcement = z.object({
  traceId: z.string(),
  observationId: z.optional(z.nullable(z.string())),
  contentType: z.enum(['image/png', 'image/jpeg', 'image/webp', 'image/gif', 'application/pdf', 'text/plain']),
  contentLength: z.int().check(z.positive()),
  sha256Hash: z.string().check(z.regex(/^[A-Za-z0-9+/=]{44}$/)),
  field: z.enum(['input', 'output', 'metadata']),
});
type Announcement = z.infer<typeof Announcement>;

const Upload = z.object({ uploadedAt: z.iso.datetime(), uploadHttpStatus: z.int() });

interface StoredMedia {
  readonly id: string;
  readonly contentType: string;
  readonly contentLength: number;
  readonly sha256Hash: string;
  bytes: Buffer | undefined;
  /** The result that the client reported for its upload. Langfuse shows no file before that. */
  uploadStatus: number | undefined;
  /** How many times its bytes have arrived. */
  arrivals: number;
  /** The fields that refer to it, as `trace observation field`. */
  readonly fields: Set<string>;
}

const SIGNATURE = 'X-Signature=presigned';

/** Langfuse's media API, and its storage, which accepts exactly what was signed, and without keys. */
export class MediaStore {
  readonly stored = new Map<string, StoredMedia>();
  readonly #url: () => string;

  constructor(url: () => string) {
    this.#url = url;
  }

  /** Answers a request to the API. Returns undefined for other requests. */
  answer(request: string, body: Buffer): ApiAnswer | undefined {
    const value = parseJson(body.toString('utf8'));
    if (request === 'POST /api/public/media') return this.#announced(Announcement.safeParse(value).data);
    const [, id = ''] = /^PATCH \/api\/public\/media\/([\w-]+)$/.exec(request) ?? [];
    const media = this.stored.get(id);
    const { data: upload } = Upload.safeParse(value);
    if (!media) return undefined;
    if (!upload) return { status: 400 };
    return {
      status: 200,
      keep: () => {
        media.uploadStatus = upload.uploadHttpStatus;
      },
    };
  }

  /** Answers an upload to the storage. Returns undefined for other requests. */
  store(request: string, headers: IncomingHttpHeaders, body: Buffer): ApiAnswer | undefined {
    const [, id = ''] = /^PUT \/storage\/([\w-]+)\?X-Signature=presigned$/.exec(request) ?? [];
    const media = this.stored.get(id);
    if (!media) return undefined;
    const hash = createHash('sha256').update(body).digest('base64');
    const isAsSigned =
      headers.authorization === undefined &&
      headers['content-type'] === media.contentType &&
      headers['x-amz-checksum-sha256'] === hash &&
      media.sha256Hash === hash &&
      media.contentLength === body.length;
    if (!isAsSigned) return { status: 403 };
    return {
      status: 200,
      keep: () => {
        media.bytes = body;
        media.arrivals += 1;
      },
    };
  }

  #announced(announcement: Announcement | undefined): ApiAnswer {
    if (!announcement) return { status: 400 };
    const { sha256Hash, contentType, contentLength, traceId, observationId, field } = announcement;
    const id = sha256Hash.replaceAll('+', '-').replaceAll('/', '_').slice(0, 22);
    const known = this.stored.get(id);
    const media = known ?? {
      ...{ id, contentType, contentLength, sha256Hash },
      ...{ bytes: undefined, uploadStatus: undefined, arrivals: 0, fields: new Set<string>() },
    };
    const uploadUrl = media.uploadStatus === 200 ? null : `${this.#url()}/storage/${id}?${SIGNATURE}`;
    return {
      status: 201,
      body: JSON.stringify({ mediaId: id, uploadUrl }),
      keep: () => {
        this.stored.set(id, media);
        media.fields.add(`${traceId} ${observationId ?? ''} ${field}`);
      },
    };
  }
}

/** Finds the fields that refer to an upload, named as in `StoredMedia.fields`. */
export function fieldsReferringTo(mediaId: string, observations: readonly StoredObservation[]): Set<string> {
  const fields = observations.flatMap(({ traceId, id, input, output }) =>
    Object.entries({ input, output }).flatMap(([field, content]) =>
      JSON.stringify(content ?? null).includes(`|id=${mediaId}|`) ? [`${traceId} ${id} ${field}`] : [],
    ),
  );
  return new Set(fields);
}
