import { isRecord, parseJson } from '../../shared/json.js';
import { type Line, parseLine } from './line.js';
import type { SourceLine } from './reader.js';
import { findUnknownFields, listNames, shortName } from './unknown-fields.js';

const LINES = listNames(`agent-color agent-name agent-setting ai-title api-request-blob api-request-resumed
  api-request-shape atis-latch bridge-session content-replacement continued-in cost-state custom-title
  data-flow-incomplete file-history-delta file-history-snapshot fork-context-ref frame-link isolation-latch last-prompt
  mode permission-mode pr-link progress queue-operation relocated session-owner summary tools-used worktree-state`);
const ATTACHMENTS = listNames(`agent_listing_delta auto_mode budget_usd command_permissions companion_intro date
  date_change deferred_tools_delta deferred_tools_record edited_text_file environment file goal_status
  hook_additional_context hook_blocking_error hook_deferred_tool hook_non_blocking_error hook_stopped_continuation
  hook_success hook_system_message instructions max_turns_reached mcp_instructions_delta model nested_memory output_style
  output_style_instructions plan_mode plan_mode_exit prompt_snapshot queued_command remote_session_change session_context
  session_cron_carry skill_listing structured_output task_reminder total_tokens_reminder`);
const SYSTEM_SUBTYPES = listNames(`agents_killed api_error away_summary bridge_status compact_boundary informational
  local_command model_fallback scheduled_task_fire stop_hook_summary turn_duration`);
const ORIGINS = listNames('auto-continuation coordinator human peer task-notification');
const BLOCKS = listNames('text thinking redacted_thinking image document web_search_result tool_reference');
/** They also stand for `server_tool_use` and the like. */
const BLOCK_ENDINGS = /tool_(?:use|result)$/;
const NOTHING: readonly string[] = [];
const NAMES_SHOWN = 12;
const MOST_NAMES = 100;

/** The types that this version does not know of a line and of what is in it. Each line that is exported is asked. */
export function findUnknownTypes(line: Line): readonly string[] {
  switch (line.kind) {
    case 'user': {
      const origin = unlessKnown(ORIGINS, 'origin', line.fields.origin?.kind);
      const blocks = findUnknownBlocks(line.content);
      return origin.length > 0 ? [...blocks, ...origin] : blocks;
    }
    case 'assistant':
      return findUnknownBlocks(line.content);
    case 'system':
      return unlessKnown(SYSTEM_SUBTYPES, 'system subtype', line.fields.subtype);
    case 'attachment':
      return unlessKnown(ATTACHMENTS, 'attachment', line.type);
    case 'other':
      return unlessKnown(LINES, 'line type', line.type);
    default:
      return NOTHING;
  }
}

/** Counts what this version does not know, by kind and name. */
export class UnknownCounts {
  readonly #counts = new Map<string, number>();

  addTypes(line: Line): void {
    this.#add(findUnknownTypes(line));
  }

  /** Counts fields, too. To that end each line is parsed once more, so exports do not. */
  addAll(lines: Iterable<SourceLine>): void {
    for (const source of lines) {
      const line = parseLine(source);
      if (line) this.addTypes(line);
      this.#add(findUnknownFields(parseJson(source.bytes.toString())));
    }
  }

  get names(): string[] {
    return [...this.#counts.keys()];
  }

  /** The most frequent first, else in the order of their names; without those that are `known`. */
  format(known: readonly string[] = []): string {
    const all = [...this.#counts]
      .filter(([what]) => !known.includes(what))
      .toSorted(([a, m], [b, n]) => n - m || a.localeCompare(b));
    const shown = all.slice(0, NAMES_SHOWN).map(([what, times]) => `${what} (${times})`);
    return [...shown, ...(all.length > NAMES_SHOWN ? [`and ${all.length - NAMES_SHOWN} more`] : [])].join(', ');
  }

  #add(all: readonly string[]): void {
    for (const what of all) {
      const times = this.#counts.get(what) ?? 0;
      if (times > 0 || this.#counts.size < MOST_NAMES) this.#counts.set(what, times + 1);
    }
  }
}

function findUnknownBlocks(content: unknown): readonly string[] {
  if (!Array.isArray(content) || content.every(isKnownBlock)) return NOTHING;
  return content.flatMap((block) => (isKnownBlock(block) ? [] : [`block ${shortName(String(block.type))}`]));
}

function isKnownBlock(block: unknown): boolean {
  const type = isRecord(block) ? block.type : undefined;
  return typeof type !== 'string' || BLOCKS.has(type) || BLOCK_ENDINGS.test(type);
}

function unlessKnown(known: ReadonlySet<string>, kind: string, name: string | undefined): readonly string[] {
  return name === undefined || known.has(name) ? NOTHING : [`${kind} ${shortName(name)}`];
}
