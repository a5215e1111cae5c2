import { isRecord } from '../../shared/json.js';
import { extractParts, extractText } from '../../transcript/file/content.js';
import { findTextArgument, type ToolCall } from '../../transcript/turns/turn.js';
import { buildContent } from '../content/media.js';
import { sanitizeText } from '../content/sanitize.js';
import type { Observation } from '../model.js';
import { buildDiff, countChanges } from './changes.js';
import { deriveSpanId } from './ids.js';
import { type BuildContext, buildObservation } from './observation.js';
import { describePermission, findWait } from './permission.js';

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
    output: result === undefined ? null : buildOutput(call, result.content, context),
    metadata: {
      tool_name: name,
      tool_id: id,
      permission: describePermission(call),
      denied: result?.denied,
      waited_ms: findWait(call),
      input_changed_by: call.changed?.by,
      input_changed: call.changed && listChangedNames(call.changed.asked, input),
      exit_code: findExitCode(call),
      ...describeChanges(call),
      ...describeGit(call),
      stored_path: result?.details?.persistedOutputPath,
      stored_size: result?.details?.persistedOutputSize,
      // Version 4 shows the last key first.
      summary: sanitizeText(summarizeCall(call), context.redact, SUMMARY_CHARS) || undefined,
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

/** How many files and lines it changed, if any. */
function describeChanges(call: ToolCall) {
  const { files, added, removed } = countChanges(call);
  return files === 0 ? {} : { files_changed: files, lines_added: added, lines_removed: removed };
}

/** What it did with git, as far as Claude Code recognizes it. */
function describeGit({ result }: ToolCall) {
  const { commit, push, pr } = result?.details?.gitOperation ?? {};
  return {
    commit_sha: commit?.sha,
    commit_kind: commit?.kind,
    commit_branch: commit?.branch,
    pushed_branch: push?.branch,
    pr_number: pr?.number,
    pr_url: pr?.url,
    pr_action: pr?.action,
  };
}

/** The exit code of a command that failed. The others need not have ended with 0: `grep` ends with 1 if it finds nothing. */
function findExitCode({ result }: ToolCall): number | undefined {
  const [, code] = (result?.isError && /^Exit code (\d{1,10})\b/.exec(extractText(result.content))) || [];
  return code === undefined ? undefined : Number(code);
}

/** The names of the arguments that a hook has changed. */
function listChangedNames(asked: unknown, input: unknown): string {
  const [before, after] = [asked, input].map((value) => (isRecord(value) ? value : {}));
  const names = Object.keys({ ...before, ...after });
  return names.filter((name) => JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name])).join(', ');
}

function buildOutput(call: ToolCall, content: unknown, context: BuildContext): unknown {
  if (typeof content === 'string') {
    const diff = buildDiff(call, context.redact);
    return diff === undefined ? content : `${content}\n\n${diff}`;
  }
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
