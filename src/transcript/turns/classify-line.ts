import { extractText, hasToolResult, type MediaBlock, parseAttachedImage, splitTextAndMedia } from '../file/content.js';
import type { AssistantLine, AttachmentLine, SystemLine, UserLine } from '../file/line.js';
import { READ_ATTACHMENTS } from '../file/skipped-line.js';
import { type ChangedInput, parseChangedInput, parseHookMessage } from './hook-message.js';
import { readPeerMessage } from './peer-message.js';
import { COMMAND, isMarkedAsPrompt, parseBashOutput } from './prompt.js';
import type { NoteContent } from './turn.js';

export type ConversationLine = UserLine | AssistantLine | SystemLine | AttachmentLine;

/** What a line is in its conversation, with what was read from it to find out. */
export type ClassifiedLine =
  | { readonly role: 'prompt' | 'tool-results' | 'skill-body'; readonly line: UserLine }
  | { readonly role: 'response'; readonly line: AssistantLine }
  /** `/clear` and the like are not marked in any way: a command is a prompt unless its output follows. */
  | { readonly role: 'command'; readonly line: UserLine }
  | { readonly role: 'note'; readonly line: ConversationLine; readonly note: NoteContent }
  | { readonly role: 'bash-output'; readonly content: string }
  /** Claude Code asks the model to go on after an answer that ended early. */
  | { readonly role: 'resume'; readonly content: string; readonly after: 'limit' | 'cut' | 'refusal' }
  /** What Claude Code itself says to the model. Only images and documents in it matter. */
  | { readonly role: 'meta'; readonly line: UserLine; readonly media: readonly MediaBlock[] }
  | { readonly role: 'attached-image'; readonly line: AttachmentLine; readonly media: readonly MediaBlock[] }
  /** A hook of the user has changed the input of a tool before it ran. */
  | { readonly role: 'changed-input'; readonly changed: ChangedInput }
  /** Claude Code says that the turn ended, with or without an answer. */
  | { readonly role: 'turn-end' }
  /** What a command has printed, or the result of one that ran as an agent. */
  | { readonly role: 'command-output'; readonly content: string }
  | { readonly role: 'command-of-prompt' | 'ignored' };

const IGNORED = { role: 'ignored' } as const;
const RESUMES = [
  ['Output token limit hit', 'limit'],
  ['Your response above was cut off', 'cut'],
  ['Your response above was ', 'refusal'],
] as const;
const INTERRUPTS = ['[Request interrupted by user]', '[Request interrupted by user for tool use]'];

export function classifyLine(line: ConversationLine): ClassifiedLine {
  if (line.kind === 'user') return classifyUserLine(line);
  if (line.kind === 'system') return classifySystemLine(line);
  if (line.kind === 'attachment') return classifyAttachment(line);
  return line.fields.isMeta ? IGNORED : { role: 'response', line };
}

function classifyUserLine(line: UserLine): ClassifiedLine {
  const { content, fields } = line;
  if (fields.isCompactSummary) return IGNORED;
  if (hasToolResult(content)) return { role: 'tool-results', line };
  // What it begins with, and whether it is marked as meta, matters only if nothing says where it came from.
  if (isMarkedAsPrompt(fields)) return { role: 'prompt', line };
  const text = extractText(content);
  if (fields.isMeta) return classifyMetaLine(line, text);
  if (INTERRUPTS.includes(text)) return { role: 'note', line, note: { kind: 'interrupt', content: text } };
  // A built-in command that asks the model, such as /goal, prints something as one that only prints does.
  const output = classifyOutput(text);
  if (output) return fields.turnOrigin === undefined ? output : { role: 'command-of-prompt' };
  if (/^<bash-(?:stdout|stderr)>/.test(text)) return { role: 'bash-output', content: parseBashOutput(text) };
  if (COMMAND.test(text) && fields.turnOrigin === undefined) return { role: 'command', line };
  return { role: 'prompt', line };
}

function classifyMetaLine(line: UserLine, text: string): ClassifiedLine {
  if (text.startsWith('Stop hook feedback:'))
    return { role: 'note', line, note: { kind: 'stop-hook-feedback', content: text } };
  if (text.startsWith('[Your previous response had no visible output'))
    return { role: 'note', line, note: { kind: 'nudge', content: text } };
  const [, after] = RESUMES.find(([start]) => text.startsWith(start)) ?? [];
  if (after) return { role: 'resume', content: text, after };
  if (text.startsWith('Base directory for this skill:')) return { role: 'skill-body', line };
  return { role: 'meta', line, media: splitTextAndMedia(line.content).media };
}

function classifySystemLine(line: SystemLine): ClassifiedLine {
  const { fields } = line;
  switch (fields.subtype) {
    case 'stop_hook_summary':
    case 'turn_duration':
      return { role: 'turn-end' };
    case 'local_command':
      return classifyOutput(extractText(fields.content)) ?? IGNORED;
    case 'compact_boundary':
      return { role: 'note', line, note: { kind: 'compaction', fields } };
    case 'api_error':
      return { role: 'note', line, note: { kind: 'retry', fields } };
    case 'model_fallback':
      return { role: 'note', line, note: { kind: 'model-fallback', fields } };
    default:
      return IGNORED;
  }
}

function classifyOutput(text: string): ClassifiedLine | undefined {
  const [start, tag] = /^<(local-command-std(?:out|err))>/.exec(text) ?? [];
  if (start === undefined) return undefined;
  const end = text.lastIndexOf(`</${tag}>`);
  return { role: 'command-output', content: text.slice(start.length, end < 0 ? undefined : end) };
}

function classifyAttachment(line: AttachmentLine): ClassifiedLine {
  const image = parseAttachedImage(line.fields);
  if (image) return { role: 'attached-image', line, media: [image] };
  const type = READ_ATTACHMENTS.find((read) => read === line.type);
  if (type === 'max_turns_reached') return { role: 'note', line, note: { kind: 'max-turns' } };
  const changed = parseChangedInput(line.fields);
  if (changed) return { role: 'changed-input', changed };
  const said = type && parseHookMessage(type, line.fields.attachment ?? {});
  if (said) return { role: 'note', line, note: said };
  if (type !== 'queued_command') return IGNORED;
  const { prompt, origin } = line.fields.attachment ?? {};
  const { text, media } = splitTextAndMedia(prompt);
  const content = (origin?.kind === 'peer' ? readPeerMessage(text) : undefined) ?? text;
  return { role: 'note', line, note: { kind: 'absorbed-message', content, media } };
}
