import { createHash } from 'node:crypto';
import { isRecord, type Json, mapValues } from '../../shared/json.js';
import { type ContentPart, describeMedia, isMedia, type MediaBlock } from '../../transcript/file/content.js';
import type { Media, Observation } from '../model.js';
import type { Sanitizer } from './limits.js';

/** An image or a document on its way into a field. */
export class MediaPart {
  readonly media: Omit<Media, 'field'>;

  constructor(media: Omit<Media, 'field' | 'reference'>) {
    const id = media.sha256.replaceAll('+', '-').replaceAll('/', '_').slice(0, ID_CHARS);
    this.media = {
      ...media,
      reference: `@@@langfuseMedia:type=${media.contentType}|id=${id}|source=base64_data_uri@@@`,
    };
  }

  /** As Langfuse draws it in a message: the reference must be all of its string. */
  get value(): Json {
    const { contentType, reference } = this.media;
    return contentType.startsWith('image/')
      ? { type: 'image_url', image_url: { url: reference } }
      : { type: 'file', data: reference, mediaType: contentType };
  }
}

/** Langfuse's own rule: so it is known what an upload will be called. */
const ID_CHARS = 22;
const SHOWN_HASH_CHARS = 16;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** What images and documents are made fit with, and whether they may leave. */
export interface MediaRules {
  readonly fit: Sanitizer;
  readonly media: boolean;
}

interface TextPart {
  readonly type: 'text';
  readonly text: string;
}

/** What is said: text, or where it refers to images and documents, text and references. */
export function buildContent(parts: readonly ContentPart[], rules: MediaRules): string | (MediaPart | TextPart)[] {
  const shown = parts.filter((part) => part !== '').map((part) => (isMedia(part) ? mediaOf(part, rules) : part));
  if (!shown.some((part) => part instanceof MediaPart)) return shown.join('\n');
  return shown.map((part) => (part instanceof MediaPart ? part : { type: 'text', text: part }));
}

function mediaOf(block: MediaBlock, { fit, media: mayLeave }: MediaRules): MediaPart | string {
  const bytes = () => bytesOf(block, fit);
  const isLegible = block.encoding === 'text' || BASE64.test(block.data);
  const content = isLegible ? bytes() : Buffer.of();
  if (content.length === 0) return `[${describeMedia(block)}]`;
  const hash = createHash('sha256').update(content).digest();
  const placeholder = `[${describeMedia(block)}, sha256 ${hash.toString('hex').slice(0, SHOWN_HASH_CHARS)}]`;
  if (!mayLeave) return placeholder;
  const { mediaType: contentType } = block;
  return new MediaPart({ placeholder, contentType, sha256: hash.toString('base64'), length: content.length, bytes });
}

function bytesOf({ encoding, data }: MediaBlock, fit: Sanitizer): Buffer {
  return encoding === 'base64' ? Buffer.from(data, 'base64') : Buffer.from(fit.text(data, Number.POSITIVE_INFINITY));
}

/** The observation with a placeholder for each reference to what is not there. */
export function replaceMissingMedia(observation: Observation, missing: ReadonlySet<string>): Observation {
  if (missing.size === 0) return observation;
  const { media = [], input, output } = observation;
  const gone = media.filter(({ reference }) => missing.has(reference));
  return {
    ...observation,
    media: media.filter(({ reference }) => !missing.has(reference)),
    input: input && replaceMedia(input, gone),
    output: output && replaceMedia(output, gone),
  };
}

/** Content with a placeholder for each reference to these. */
export function replaceMedia(content: Json, media: readonly Pick<Media, 'reference' | 'placeholder'>[]): Json {
  return withPlaceholders(content, new Map(media.map(({ reference, placeholder }) => [reference, placeholder])));
}

type Placeholders = ReadonlyMap<string, string>;

function withPlaceholders(value: Json, placeholders: Placeholders): Json {
  if (Array.isArray(value)) {
    const isContent = value.some((part) => placeholders.has(referenceIn(part)));
    return isContent ? joined(value, placeholders) : value.map((item) => withPlaceholders(item, placeholders));
  }
  return isRecord(value) ? mapValues(value, (item) => withPlaceholders(item as Json, placeholders)) : value;
}

/** Where no reference is left, content is text again. */
function joined(parts: readonly Json[], placeholders: Placeholders): Json {
  const kept = parts.map((part) => {
    const text = placeholders.get(referenceIn(part));
    return text === undefined ? part : { type: 'text', text };
  });
  const texts = kept.map(textIn);
  return texts.every((text) => text !== undefined) ? texts.join('\n') : kept;
}

function referenceIn(part: Json): string {
  if (!isRecord(part)) return '';
  const reference = isRecord(part.image_url) ? part.image_url.url : part.data;
  return typeof reference === 'string' ? reference : '';
}

function textIn(part: Json): string | undefined {
  return isRecord(part) && part.type === 'text' && typeof part.text === 'string' ? part.text : undefined;
}
