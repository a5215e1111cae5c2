import { type MediaBlock, parseMedia } from './content.js';
import type { AttachmentLine } from './schema.js';

const READ = ['queued_command', 'max_turns_reached'];

const ATTACHMENT_HEAD =
  /^\{"parentUuid":(?:"([^"]*)"|null),(?:"\w+":(?:true|false|null|"[^"\\]*"),)*"attachment":\{"type":"([^"]*)"/;

/** Of most attachments only their place in the parent chain matters; `uuid` stands behind the body. */
export function skippedAttachment(head: string, bytes: Buffer): { type: string; fields: AttachmentLine } | undefined {
  const match = ATTACHMENT_HEAD.exec(head);
  if (!match) return undefined;
  const [, parentUuid, type = ''] = match;
  if (READ.includes(type) || (type === 'file' && isImage(bytes))) return undefined;
  const mark = '"type":"attachment","uuid":"';
  const found = bytes.lastIndexOf(mark);
  if (found < 0) return undefined;
  const from = found + mark.length;
  const uuid = bytes.toString('latin1', from, bytes.indexOf('"', from));
  return { type, fields: { uuid, parentUuid } };
}

const IMAGE = '"content":{"type":"image"';
/** What stands before it: the longest path that there is. */
const BEFORE_IMAGE_BYTES = 8_192;

function isImage(bytes: Buffer): boolean {
  return bytes.subarray(0, BEFORE_IMAGE_BYTES).includes(IMAGE);
}

/** The image in a file that a prompt names, `@like/this.png`: the model is shown it with the prompt. */
export function attachedImage({ attachment }: AttachmentLine): MediaBlock | undefined {
  const { type, file } = attachment?.content ?? {};
  if (type !== 'image') return undefined;
  return parseMedia({ type, source: { type: 'base64', media_type: file?.type, data: file?.base64 } });
}
