import { isRecord } from '../../shared/json.js';
import { extractParts, extractText } from '../../transcript/file/content.js';
import { findTextArgument, type ToolCall } from '../../transcript/turns/turn.js';
import { buildContent } from '../content/media.js';
import { sanitizeText } from '../content/sanitize.js';
import type { Observation } from '../model.js';
import { deriveSpanId } from './ids.js';
import { type BuildContext, buildObservation } from './observation.js';

const SUMMARY_CHARS = 200;

export function buildTool(call: ToolCall, index: number, parentId: string, context: BuildContext): Observation {
  const { id, name, input, line, at, result } = call;
  return buildObservation(context, {
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
      denied: result?.denied,
      input_changed_by: call.changed?.by,
      stored_path: result?.details?.persistedOutputPath,
      stored_size: result?.details?.persistedOutputSize,
      // Version 4 shows the last key first.
      summary: sanitizeText(summarizeCall(call), context.redact, SUMMARY_CHARS),
    },
    level: result?.isError ? 'ERROR' : 'DEFAULT',
    statusMessage: result?.isError ? extractText(result.content) : undefined,
    line: findLastLine(call),
  });
}

/** The line of a call or of its result, whichever comes last. */
export function findLastLine({ line, result }: ToolCall): number {
  return Math.max(line, result?.line ?? line);
}

function buildOutput(content: unknown, context: BuildContext): unknown {
  // A result may be a single block, such as a document.
  const blocks = isRecord(content) && typeof content.type === 'string' ? [content] : content;
  if (!Array.isArray(blocks)) return blocks ?? null;
  const shown = buildContent(extractParts(blocks), context);
  // As the whole output, a reference is drawn; as the only part of a list it is not.
  return Array.isArray(shown) && shown.length === 1 ? shown[0] : shown;
}

/** Says in one line what a call does; for an unknown tool, the names of its arguments. */
function summarizeCall(call: ToolCall): string {
  const names = isRecord(call.input) ? Object.keys(call.input) : [];
  const summary = SUMMARIES.get(call.name)?.((name) => findTextArgument(call, name) ?? '') || names.join(', ');
  return summary.replace(/\s+/g, ' ').trim();
}

type Summarize = (field: (name: string) => string) => string;

const summarizeAgent: Summarize = (field) =>
  join(' ', field('subagent_type') && `[${field('subagent_type')}]`, field('description'));

const SUMMARIES: ReadonlyMap<string, Summarize> = new Map<string, Summarize>([
  ['Bash', (field) => join(' # ', field('command'), field('description'))],
  ['Read', (field) => field('file_path')],
  ['Edit', (field) => field('file_path') && `${field('file_path')} (edit)`],
  ['Write', (field) => field('file_path') && `${field('file_path')} (${Buffer.byteLength(field('content'))} bytes)`],
  ['Grep', (field) => field('pattern') && join(' in ', `/${field('pattern')}/`, field('path'))],
  ['Glob', (field) => field('pattern')],
  ['Task', summarizeAgent],
  ['Agent', summarizeAgent],
]);

function join(separator: string, ...parts: string[]): string {
  return parts.filter((part) => part !== '').join(separator);
}
