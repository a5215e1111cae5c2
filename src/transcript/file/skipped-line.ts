import type { AttachmentFields } from './schema.js';

type SkippedLine =
  | { readonly kind: 'other'; readonly type: string; readonly fields: object; readonly hash: string | undefined }
  | { readonly kind: 'attachment'; readonly type: string; readonly fields: AttachmentFields };

const SKIPPED_TYPES = ['api-request-shape', 'api-request-blob', 'file-history-snapshot', 'file-history-delta'];
/** The attachments whose body is read. One of another type has no content and no time. */
export const READ_ATTACHMENTS = [
  'queued_command',
  'max_turns_reached',
  'hook_additional_context',
  'hook_blocking_error',
  'hook_non_blocking_error',
  'hook_success',
  'hook_stopped_continuation',
] as const;
export type ReadAttachment = (typeof READ_ATTACHMENTS)[number];
const HEAD_BYTES = 256;
/** The name by which requests refer to the body. */
const HASH = /"(?:hash|shapeHash)":"([0-9a-f]{64})"/;
const ATTACHMENT_HEAD =
  /^\{"parentUuid":(?:"([^"]*)"|null),(?:"\w+":(?:true|false|null|"[^"\\]*"),)*"attachment":\{"type":"([^"]*)"/;
const ATTACHMENT_END = '"type":"attachment","uuid":"';

/**
 * Recognizes by its first bytes a line whose body is not used, without parsing it. Most of a file is such bodies: a
 * session's first 135 KB are nearly all attachments and request shapes. Undefined if the line has to be parsed.
 */
export function parseSkippedLine(bytes: Buffer): SkippedLine | undefined {
  const head = bytes.toString('latin1', 0, HEAD_BYTES);
  const type = SKIPPED_TYPES.find((skipped) => head.startsWith(`{"type":"${skipped}"`));
  return type ? { kind: 'other', type, fields: {}, hash: HASH.exec(head)?.[1] } : parseSkippedAttachment(head, bytes);
}

/** Of most attachments only the link in the parent chain matters; the `uuid` comes after the body. */
function parseSkippedAttachment(head: string, bytes: Buffer): SkippedLine | undefined {
  const [match, parentUuid, type = ''] = ATTACHMENT_HEAD.exec(head) ?? [];
  const isRead = READ_ATTACHMENTS.some((read) => read === type) || (type === 'file' && hasImage(bytes));
  if (match === undefined || isRead) return undefined;
  const end = bytes.lastIndexOf(ATTACHMENT_END);
  if (end < 0) return undefined;
  const from = end + ATTACHMENT_END.length;
  const uuid = bytes.toString('latin1', from, bytes.indexOf('"', from));
  return { kind: 'attachment', type, fields: { uuid, parentUuid } };
}

/** Only paths come before the image, and none is longer than this. */
const BYTES_BEFORE_IMAGE = 8_192;

function hasImage(bytes: Buffer): boolean {
  return bytes.subarray(0, BYTES_BEFORE_IMAGE).includes('"content":{"type":"image"');
}
