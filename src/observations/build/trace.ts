import { type Json, withoutUndefined } from '../../shared/json.js';
import type { AgentThread, PromptContext, Turn } from '../../transcript/turns/turn.js';
import type { ContentSettings } from '../content/rules.js';
import { createSanitizer } from '../content/sanitize.js';
import type { Caller, Trace } from '../model.js';
import { deriveTraceId } from './ids.js';
import { collectAgentTags, collectTags, type TagKind } from './tags.js';

/** The settings that describe traces and restrict what they contain. */
export interface TraceSettings extends ContentSettings {
  readonly userId: string | undefined;
  readonly tags: readonly string[];
  /** The kinds of tags that are added to the user's own. */
  readonly autoTags: readonly TagKind[];
  readonly metadata: { readonly [key: string]: Json };
  readonly environment: string | undefined;
  readonly release: string | undefined;
  /** Whether a turn's figures are sent as scores. */
  readonly scores: boolean;
  /** Whether a generation's input is only what is new since the last response, or the whole request. */
  readonly input: 'answered' | 'request';
}

/** What a turn is built with, besides its lines. */
export interface BuildOptions extends TraceSettings {
  readonly sessionId: string;
  /** The repository it worked on, as `host/owner/name`. */
  readonly repository: string | undefined;
  readonly caller: Caller;
}

/** Every observation carries the trace's texts, so they are short. */
const TRACE_TEXT_CHARS = 1_000;

export function buildTrace(turn: Turn, options: BuildOptions): Trace {
  const { number, key, context } = turn;
  const { parent, seed, metadata } = options.caller;
  const scope = deriveTraceId(seed === undefined || parent ? key : `${seed}:${number}`);
  const facts = {
    ...describeContext(context, options),
    ...metadata,
    turn_number: number,
    trigger: context.trigger,
  };
  return assembleTrace(
    {
      id: parent?.trace ?? scope,
      parentId: parent?.span,
      scope,
      name: `Turn ${number}`,
      userId: options.userId,
      tags: [...options.tags, ...collectTags(turn, options.autoTags)],
      metadata: buildMetadata(facts, options),
    },
    options,
  );
}

/** Builds the trace of an agent that no tool call started. */
export function buildAgentTrace(thread: AgentThread, type: string | undefined, options: BuildOptions): Trace {
  const [first] = thread.turns;
  const id = deriveTraceId(first.key);
  return assembleTrace(
    {
      id,
      parentId: undefined,
      scope: id,
      name: `Agent ${type ?? ''}`.trim(),
      userId: options.userId,
      tags: [...options.tags, ...collectAgentTags(type, options.autoTags)],
      metadata: buildMetadata(describeContext(first.context, options), options),
    },
    options,
  );
}

/** Adds what is the same for all traces of a run, and sanitizes all texts but the metadata, which has to be already. */
export function assembleTrace(
  own: Omit<Trace, 'sessionId' | 'environment' | 'release'>,
  { sessionId, environment, release, redact }: BuildOptions,
): Trace {
  const { text } = createSanitizer(redact);
  const shorten = (words: string) => text(words, TRACE_TEXT_CHARS);
  return {
    ...own,
    name: shorten(own.name),
    sessionId,
    userId: own.userId && shorten(own.userId),
    tags: [...new Set(own.tags.map(shorten))],
    environment,
    release: release && shorten(release),
  };
}

/** Metadata that every trace has: what was true when the prompt was given. */
function describeContext(context: PromptContext, { sessionId, repository, capture }: BuildOptions) {
  return withoutUndefined<Json>({
    source: 'claude-code',
    session_id: sessionId,
    prompt_id: context.promptId,
    cwd: context.cwd,
    git_branch: context.gitBranch,
    git_repository: repository,
    version: context.version,
    slug: context.slug,
    permission_mode: context.permissionMode,
    entrypoint: context.entrypoint,
    // What is selected in the editor is content.
    ide: capture === 'metadata' ? undefined : context.ide,
  });
}

/** Adds the facts to the user's own metadata, which cannot replace them. */
function buildMetadata(facts: { readonly [key: string]: Json }, { metadata, redact }: BuildOptions): Trace['metadata'] {
  const sanitizer = createSanitizer(redact);
  // Together with its name, which may say that the value is a secret.
  const sanitized = Object.entries({ ...metadata, ...facts }).map(
    ([name, value]) => sanitizer.value({ [name]: value }, TRACE_TEXT_CHARS).value,
  );
  return Object.assign({}, ...sanitized);
}
