import { isRecord } from '../json.js';
import type { Place, SourceLine } from './reader.js';
import { AssistantLine, AttachmentLine, RequestLine, SystemLine, UserLine } from './schema.js';
import { timeOf } from './time.js';

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
  | ({ kind: 'other'; type: string; sessionId: string | undefined } & Timed)
  | { kind: 'unreadable'; place: Place; reason: string };

/**
 * Most of a file is the bodies of these lines, which nobody reads here: they are known by their first bytes and not
 * parsed (a session's first 135 KB are nearly all attachments and request shapes).
 */
const SKIPPED = ['api-request-shape', 'api-request-blob', 'file-history-snapshot', 'file-history-delta', 'progress'];
const ATTACHMENTS_READ = ['queued_command', 'max_turns_reached'];
const HEAD_BYTES = 256;

export function toLine(source: SourceLine): Line | undefined {
  const { number, start, end, bytes } = source;
  const place = { number, start, end };
  const head = bytes.toString('latin1', 0, HEAD_BYTES);
  const skipped = SKIPPED.find((type) => head.startsWith(`{"type":"${type}"`));
  if (skipped) return { kind: 'other', type: skipped, sessionId: undefined, place, at: undefined };
  const attachment = skippedAttachment(head, bytes);
  if (attachment) return { kind: 'attachment', ...attachment, place, at: undefined };

  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  if (text.trim() === '') return undefined;
  const parsed = parse(text);
  if ('reason' in parsed) return { kind: 'unreadable', place, reason: parsed.reason };
  return toKnownLine(parsed.value, place);
}

function toKnownLine(value: Record<string, unknown>, place: Place): Line {
  const message = isRecord(value.message) ? value.message : undefined;
  const role = value.type ?? message?.role;
  switch (role) {
    case 'user': {
      const fields = UserLine.parse(value);
      const { content } = message ?? fields;
      return { kind: 'user', content, fields, place, at: timeOf(fields.timestamp ?? fields.message?.timestamp) };
    }
    case 'assistant': {
      const fields = AssistantLine.parse(value);
      const { content } = message ?? fields;
      return { kind: 'assistant', content, fields, place, at: timeOf(fields.timestamp ?? fields.message?.timestamp) };
    }
    case 'system': {
      const fields = SystemLine.parse(value);
      return { kind: 'system', fields, place, at: timeOf(fields.timestamp) };
    }
    case 'attachment': {
      const fields = AttachmentLine.parse(value);
      return { kind: 'attachment', type: fields.attachment?.type ?? '', fields, place, at: timeOf(fields.timestamp) };
    }
    case 'api-request': {
      const fields = RequestLine.parse(value);
      return { kind: 'request', fields, place, at: timeOf(fields.timestamp) };
    }
    default: {
      const { timestamp, sessionId } = value;
      return {
        kind: 'other',
        type: String(role),
        sessionId: typeof sessionId === 'string' ? sessionId : undefined,
        place,
        at: timeOf(typeof timestamp === 'string' ? timestamp : undefined),
      };
    }
  }
}

const ATTACHMENT_HEAD =
  /^\{"parentUuid":(?:"([^"]*)"|null),(?:"\w+":(?:true|false|null|"[^"\\]*"),)*"attachment":\{"type":"([^"]*)"/;

/** Of most attachments only their place in the parent chain matters; `uuid` stands behind the body. */
function skippedAttachment(head: string, bytes: Buffer): { type: string; fields: AttachmentLine } | undefined {
  const match = ATTACHMENT_HEAD.exec(head);
  if (!match) return undefined;
  const [, parentUuid, type = ''] = match;
  if (ATTACHMENTS_READ.includes(type)) return undefined;
  const mark = '"type":"attachment","uuid":"';
  const found = bytes.lastIndexOf(mark);
  if (found < 0) return undefined;
  const from = found + mark.length;
  const uuid = bytes.toString('latin1', from, bytes.indexOf('"', from));
  return { type, fields: { uuid, parentUuid } };
}

/** A crash can leave a torn line with the next one written behind it, or a hole of NUL bytes: what is whole is taken. */
function parse(text: string): { value: Record<string, unknown> } | { reason: string } {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? { value } : { reason: 'not a JSON object' };
  } catch (error) {
    const value = wholeLineAtEnd(text);
    return value ? { value } : { reason: error instanceof SyntaxError ? 'not JSON' : String(error) };
  }
}

const LINE_START = /\{"(?:parentUuid|type|message|sessionId)":/g;
const TORN_TRIES = 64;

function wholeLineAtEnd(text: string): Record<string, unknown> | undefined {
  const starts = [...text.matchAll(LINE_START)].map(({ index }) => index).filter((index) => index > 0);
  for (const start of starts.slice(0, TORN_TRIES)) {
    try {
      const value: unknown = JSON.parse(text.slice(start));
      if (isRecord(value)) return value;
    } catch {
      // not from here
    }
  }
  return undefined;
}
