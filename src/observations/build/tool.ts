import { isRecord } from '../../shared/json.js';
import { extractParts, extractText } from '../../transcript/file/content.js';
import type { ToolCall } from '../../transcript/turns/turn.js';
import { buildContent } from '../content/media.js';
import type { ContentRules } from '../content/rules.js';
import type { Observation } from '../model.js';
import { deriveSpanId } from './ids.js';
import { type BuildContext, buildObservation } from './observation.js';

const SUMMARY_CHARS = 200;

/** Builds the nth tool call of a response. */
export function buildTool(call: ToolCall, index: number, parentId: string, context: BuildContext): Observation {
  const { id, name, input, line, at, result } = call;
  return buildObservation(
    {
      type: 'tool',
      id: deriveSpanId(context.trace, 'tool', id ?? `${context.fileId}:${line}:${index}`),
      parentId,
      name,
      startTime: at,
      endTime: Math.max(at, result?.at ?? at),
      input: input ?? null,
      output: result === undefined ? null : buildOutput(result.content, context),
      metadata: {
        tool_name: name,
        tool_id: id,
        summary: context.sanitizer.text(summarizeCall(call).replace(/\s+/g, ' ').trim(), SUMMARY_CHARS),
        denied: result?.denied,
        stored_path: result?.details?.persistedOutputPath,
        stored_size: result?.details?.persistedOutputSize,
      },
      level: result?.isError ? 'ERROR' : 'DEFAULT',
      statusMessage: result?.isError ? extractText(result.content) : undefined,
      line: Math.max(line, result?.line ?? line),
    },
    context,
  );
}

function buildOutput(content: unknown, rules: ContentRules): unknown {
  // A result may be a single block, such as a document.
  const blocks = isRecord(content) && typeof content.type === 'string' ? [content] : content;
  return Array.isArray(blocks) ? buildContent(extractParts(blocks), rules) : (blocks ?? null);
}

/** Says in one line what a call does; for an unknown tool, the names of its arguments. */
function summarizeCall({ name, input }: ToolCall): string {
  const fields = isRecord(input) ? input : {};
  return summarizeKnownTool(name, fields) ?? Object.keys(fields).join(', ');
}

function summarizeKnownTool(name: string, fields: Record<string, unknown>): string | undefined {
  const text = (field: string) =>
    typeof fields[field] === 'string' && fields[field] !== '' ? fields[field] : undefined;
  const path = text('file_path');
  switch (name) {
    case 'Bash':
      return joinKnown(' # ', text('command'), text('description'));
    case 'Read':
      return path;
    case 'Edit':
      return path && `${path} (edit)`;
    case 'Write':
      return path && `${path} (${Buffer.byteLength(text('content') ?? '')} bytes)`;
    case 'Grep':
      return text('pattern') && joinKnown(' in ', `/${text('pattern')}/`, text('path'));
    case 'Glob':
      return text('pattern');
    case 'Task':
    case 'Agent':
      return joinKnown(' ', text('subagent_type') && `[${text('subagent_type')}]`, text('description'));
    default:
      return undefined;
  }
}

function joinKnown(separator: string, ...parts: (string | undefined)[]): string | undefined {
  return parts.filter((part) => part !== undefined).join(separator) || undefined;
}
