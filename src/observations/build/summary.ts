import { isRecord } from '../../shared/json.js';
import type { ToolCall } from '../../transcript/turns/turn.js';
import type { Sanitizer } from '../content/limits.js';

const SUMMARY_CHARS = 200;

/** What a call does, in one line; of tools that are not known, what it was given. */
export function summarizeCall({ name, input }: ToolCall, fit: Sanitizer): string {
  const fields = isRecord(input) ? input : {};
  const line = knownLine(name, fields) ?? Object.keys(fields).join(', ');
  return fit.text(line.replace(/\s+/g, ' ').trim(), SUMMARY_CHARS);
}

function knownLine(name: string, fields: Record<string, unknown>): string | undefined {
  const text = (field: string) =>
    typeof fields[field] === 'string' && fields[field] !== '' ? fields[field] : undefined;
  const path = text('file_path');
  switch (name) {
    case 'Bash':
      return joined(' # ', text('command'), text('description'));
    case 'Read':
      return path;
    case 'Edit':
      return path && `${path} (edit)`;
    case 'Write':
      return path && `${path} (${Buffer.byteLength(text('content') ?? '')} bytes)`;
    case 'Grep':
      return text('pattern') && joined(' in ', `/${text('pattern')}/`, text('path'));
    case 'Glob':
      return text('pattern');
    case 'Task':
    case 'Agent':
      return joined(' ', text('subagent_type') && `[${text('subagent_type')}]`, text('description'));
    default:
      return undefined;
  }
}

function joined(by: string, ...parts: (string | undefined)[]): string | undefined {
  return parts.filter((part) => part !== undefined).join(by) || undefined;
}
