import type { Json } from '../../shared/json.js';
import type { Media } from '../model.js';

/** An image or a document, before it is known in which field it is referred to. */
export type MediaFile = Omit<Media, 'field'>;

/** Langfuse derives the name of an upload from its hash by this rule, so the reference is known before the upload. */
const ID_CHARS = 22;

export class MediaPart {
  readonly media: MediaFile;

  constructor(media: Omit<MediaFile, 'reference'>) {
    const id = media.sha256.replaceAll('+', '-').replaceAll('/', '_').slice(0, ID_CHARS);
    const reference = `@@@langfuseMedia:type=${media.contentType}|id=${id}|source=base64_data_uri@@@`;
    this.media = { ...media, reference };
  }

  /** The shape that Langfuse draws in a message. The reference must be the whole string. */
  get value(): Json {
    const { contentType, reference } = this.media;
    return contentType.startsWith('image/')
      ? { type: 'image_url', image_url: { url: reference } }
      : { type: 'file', data: reference, mediaType: contentType };
  }
}
