import { isRecord, parseJson } from '../../shared/json.js';
import { skippedAttachment } from './attachment.js';
import type { Place, SourceLine } from './reader.js';
import { AssistantLine, AttachmentLine, OtherLine, RequestLine, SystemLine, UserLine } from './schema.js';
import { parseTimestamp } from './time.js';

interface Timed {
  readonly place: Place;
  /** When it was written, in ms since 1970, where the line says so. */
  readonly at: number | undefined;
}

/** A line of a transcript. What is not understood is a value too: `other`, or `unreadable` with the reason. */
export type Line =
  | ({ kind: 'user'; content: unknown; fields: UserLine } & Timed)
  | ({ kind: 'assistant'; content: unknown; fields: AssistantLine } & Timed)
  | ({ kind: 'system'; fields: SystemLine } & Timed)
  | ({ kind: 'attachment'; type: string; fields: AttachmentLine } & Timed)
  | ({ kind: 'request'; fields: RequestLine } & Timed)
  | ({ kind: 'other'; type: string; fields: OtherLine; hash?: string | undefined } & Timed)
  | { kind: 'unreadable'; place: Place; reason: string };

/**
 * Most of a file is the bodies of these lines, which nobody reads here: they are known by their first bytes and not
 * parsed (a session's first 135 KB are nearly all attachments and request shapes).
 */
const SKIPPED = ['api-request-shape', 'api-request-blob', 'file-history-snapshot', 'file-history-delta'];
const HEAD_BYTES = 256;
/** What requests call the body by. */
const HASH = /"(?:hash|shapeHash)":"([0-9a-f]{64})"/;

export function toLine(source: SourceLine): Line | undefined {
  const { number, start, end, bytes } = source;
  const place = { number, start, end };
  const head = bytes.toString('latin1', 0, HEAD_BYTES);
  const skipped = SKIPPED.find((type) => head.startsWith(`{"type":"${type}"`));
  if (skipped) return { kind: 'other', type: skipped, fields: {}, hash: HASH.exec(head)?.[1], place, at: undefined };
  const attachment = skippedAttachment(head, bytes);
  if (attachment) return { kind: 'attachment', ...attachment, place, at: undefined };

  try {
    const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
    return text.trim() === '' ? undefined : parseLine(text, place);
  } catch (error) {
    return { kind: 'unreadable', place, reason: String(error) };
  }
}

/** A crash can leave a torn line with the next one written behind it, or a hole of NUL bytes: what is whole is taken. */
function parseLine(text: string, place: Place): Line {
  const value = parseJson(text);
  if (isRecord(value)) return toKnownLine(value, place);
  if (value !== undefined) return { kind: 'unreadable', place, reason: 'not a JSON object' };
  const starts = [...text.matchAll(LINE_START)].map(({ index }) => index).filter((index) => index > 0);
  for (const start of starts.slice(0, TORN_TRIES)) {
    const tail = parseJson(text.slice(start));
    const line = isRecord(tail) ? toKnownLine(tail, place) : undefined;
    if (line && line.kind !== 'other') return line;
  }
  return { kind: 'unreadable', place, reason: 'not JSON' };
}

const LINE_START = /\{"(?:parentUuid|type|message|sessionId)":/g;
const TORN_TRIES = 64;

function toKnownLine(value: Record<string, unknown>, place: Place): Line {
  const message = isRecord(value.message) ? value.message : {};
  const type = value.type ?? message.role;
  switch (type) {
    case 'user':
    case 'assistant': {
      const content = message.content ?? value.content;
      if (type === 'user') {
        const fields = UserLine.parse(value);
        return {
          kind: 'user',
          content,
          fields,
          place,
          at: parseTimestamp(fields.timestamp ?? fields.message?.timestamp),
        };
      }
      const fields = AssistantLine.parse(value);
      return {
        kind: 'assistant',
        content,
        fields,
        place,
        at: parseTimestamp(fields.timestamp ?? fields.message?.timestamp),
      };
    }
    case 'system': {
      const fields = SystemLine.parse(value);
      return { kind: 'system', fields, place, at: parseTimestamp(fields.timestamp) };
    }
    case 'attachment': {
      const fields = AttachmentLine.parse(value);
      return {
        kind: 'attachment',
        type: fields.attachment?.type ?? '',
        fields,
        place,
        at: parseTimestamp(fields.timestamp),
      };
    }
    case 'api-request': {
      const fields = RequestLine.parse(value);
      return { kind: 'request', fields, place, at: parseTimestamp(fields.timestamp) };
    }
    default: {
      const fields = OtherLine.parse(value);
      return { kind: 'other', type: String(type), fields, place, at: parseTimestamp(fields.timestamp) };
    }
  }
}
