import { createHash } from 'node:crypto';
import { isRecord, type Json, mapValues } from '../../shared/json.js';
import { type ContentPart, describeMedia, type MediaBlock } from '../../transcript/file/content.js';
import type { ContentSettings, MediaFile, Observation } from '../model.js';

const SHOWN_HASH_CHARS = 16;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Langfuse derives the name of an upload from its hash by this rule, so the reference is known before the upload. */
const ID_CHARS = 22;

export class MediaPart {
  readonly media: MediaFile;

  constructor(media: Omit<MediaFile, 'reference'>) {
    const id = media.sha256.replaceAll('+', '-').replaceAll('/', '_').slice(0, ID_CHARS);
    const reference = `@@@langfuseMedia:type=${media.contentType}|id=${id}|source=base64_data_uri@@@`;
    this.media = { ...media, reference };
  }

  /** Langfuse draws a bare reference in a message, or as a whole output. A part of any other shape turns the message into a table. */
  get value(): Json {
    return this.media.reference;
  }
}

/** Builds the content of a message: text, or a list of texts and references if there are images or documents. */
export function buildContent(
  parts: readonly ContentPart[],
  settings: ContentSettings,
): string | (MediaPart | { type: 'text'; text: string })[] {
  const shown = parts
    .filter((part) => part !== '')
    .map((part) => (typeof part === 'string' ? part : buildMediaPart(part, settings)));
  if (!shown.some((part) => part instanceof MediaPart)) return shown.join('\n');
  return shown.map((part) => (part instanceof MediaPart ? part : { type: 'text', text: part }));
}

/** Returns a placeholder if the bytes may not leave, and a shorter one if there are none. */
function buildMediaPart(block: MediaBlock, { redact, media: mayLeave }: ContentSettings): MediaPart | string {
  const { encoding, data, mediaType: contentType } = block;
  const bytes = () => (encoding === 'base64' ? Buffer.from(data, 'base64') : Buffer.from(redact ? redact(data) : data));
  const isReadable = encoding === 'text' || BASE64.test(data);
  const content = isReadable ? bytes() : Buffer.of();
  if (content.length === 0) return `[${describeMedia(block)}]`;
  const hash = createHash('sha256').update(content).digest();
  const placeholder = `[${describeMedia(block)}, sha256 ${hash.toString('hex').slice(0, SHOWN_HASH_CHARS)}]`;
  if (!mayLeave) return placeholder;
  return new MediaPart({ placeholder, contentType, sha256: hash.toString('base64'), length: content.length, bytes });
}

/** Replaces each reference to something that was not uploaded by its placeholder. */
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

export function replaceMedia(content: Json, media: readonly MediaFile[]): Json {
  const placeholders = new Map(media.map(({ reference, placeholder }) => [reference, placeholder]));
  const replaceIn = (value: Json): Json => {
    if (typeof value === 'string') return placeholders.get(value) ?? value;
    if (!Array.isArray(value)) return isRecord(value) ? mapValues(value, (item) => replaceIn(item as Json)) : value;
    const isContent = value.some((part) => typeof part === 'string' && placeholders.has(part));
    return isContent ? replaceParts(value, placeholders) : value.map(replaceIn);
  };
  return replaceIn(content);
}

/** Content without any reference left is text again. */
function replaceParts(parts: readonly Json[], placeholders: ReadonlyMap<string, string>): Json {
  const replaced = parts.map((part) => {
    const text = typeof part === 'string' ? placeholders.get(part) : undefined;
    return text === undefined ? part : { type: 'text', text };
  });
  const texts = replaced.map((part) => (isRecord(part) && part.type === 'text' ? part.text : undefined));
  return texts.every((text) => typeof text === 'string') ? texts.join('\n') : replaced;
}
