import { isRecord, parseJson } from '../../shared/json.js';
import { type LineLocation, LONGEST_LINE_BYTES, type SourceLine } from './reader.js';
import {
  AssistantFields,
  AttachmentFields,
  OtherFields,
  ProgressFields,
  RequestFields,
  SystemFields,
  UserFields,
} from './schema.js';
import { parseSkippedLine } from './skipped-line.js';

interface Located {
  readonly location: LineLocation;
  /** When it was written, in ms since 1970, if the line says so. */
  readonly at: number | undefined;
}

export type UserLine = { kind: 'user'; content: unknown; fields: UserFields } & Located;
export type AssistantLine = { kind: 'assistant'; content: unknown; fields: AssistantFields } & Located;
export type SystemLine = { kind: 'system'; fields: SystemFields } & Located;
export type AttachmentLine = { kind: 'attachment'; type: string; fields: AttachmentFields } & Located;
export type RequestLine = { kind: 'request'; fields: RequestFields } & Located;
export type OtherLine = { kind: 'other'; type: string; fields: OtherFields; hash?: string | undefined } & Located;

/** A line that can be a link in the parent chain. */
export type ChainLine = UserLine | AssistantLine | SystemLine | AttachmentLine | OtherLine;

/** A line of a transcript. What is not understood is a value too: `other`, or `unreadable` with the reason. */
export type Line = ChainLine | RequestLine | { kind: 'unreadable'; location: LineLocation; reason: string };

/** Undefined for an empty line. */
export function parseLine({ number, start, end, bytes, isTooLong }: SourceLine): Line | undefined {
  const location = { number, start, end };
  if (isTooLong) return { kind: 'unreadable', location, reason: `longer than ${LONGEST_LINE_BYTES} bytes` };
  const skipped = parseSkippedLine(bytes);
  if (skipped) return { ...skipped, location, at: undefined };
  try {
    const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
    return text.trim() === '' ? undefined : parseText(text, location);
  } catch (error) {
    return { kind: 'unreadable', location, reason: String(error) };
  }
}

const LINE_START = /\{"(?:parentUuid|type|sessionId)":/g;
const MAX_STARTS_TRIED = 64;

/** A crash can leave half a line, or a hole of NUL bytes, in front of the next line: that line is still read. */
function parseText(text: string, location: LineLocation): Line {
  const value = parseJson(text);
  if (isRecord(value)) return parseFields(value, location);
  if (value !== undefined) return { kind: 'unreadable', location, reason: 'not a JSON object' };
  const starts = [...text.matchAll(LINE_START)].map(({ index }) => index).filter((index) => index > 0);
  for (const start of starts.slice(0, MAX_STARTS_TRIED)) {
    const tail = parseJson(text.slice(start));
    const line = isRecord(tail) ? parseFields(tail, location) : undefined;
    if (line && line.kind !== 'other') return line;
  }
  return { kind: 'unreadable', location, reason: 'not JSON' };
}

function parseFields(value: Record<string, unknown>, location: LineLocation): Line {
  const { content } = isRecord(value.message) ? value.message : {};
  const located = { location, at: parseTimestamp(value.timestamp) };
  switch (value.type) {
    case 'user':
      return { kind: 'user', content, fields: UserFields.parse(value), ...located };
    case 'assistant':
      return { kind: 'assistant', content, fields: AssistantFields.parse(value), ...located };
    case 'system':
      return { kind: 'system', fields: SystemFields.parse(value), ...located };
    case 'attachment': {
      const fields = AttachmentFields.parse(value);
      return { kind: 'attachment', type: fields.attachment?.type ?? '', fields, ...located };
    }
    case 'api-request':
      return { kind: 'request', fields: RequestFields.parse(value), ...located };
    default:
      return { kind: 'other', type: String(value.type), fields: OtherFields.parse(value), ...located };
  }
}

/** Reads what a subagent answered from a line of the main thread, and who that was; undefined if it is another line. */
export function parseProgress({ number, start, end, bytes }: SourceLine) {
  const { data: fields } = ProgressFields.safeParse(parseJson(bytes.toString('utf8')));
  const answer = fields && parseFields(fields.data.message, { number, start, end });
  return answer?.kind === 'assistant'
    ? { answer, agentId: fields?.data.agentId, callId: fields?.parentToolUseID }
    : undefined;
}

// Langfuse takes times as 64-bit nanoseconds: a date before 1970 or after 2500 does not fit.
const LATEST_TIME_MS = Date.UTC(2500, 0);

/** A timestamp in ms since 1970; undefined if it is not a valid one. */
export function parseTimestamp(timestamp: unknown): number | undefined {
  const at = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN;
  return at >= 0 && at < LATEST_TIME_MS ? Math.trunc(at) : undefined;
}
