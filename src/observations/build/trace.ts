import { type Json, withoutUndefined } from '../../shared/json.js';
import type { AgentThread, PromptContext, Turn } from '../../transcript/turns/turn.js';
import type { Capture } from '../content/capture.js';
import { createSanitizer } from '../content/limits.js';
import type { Caller, Trace } from '../model.js';
import type { Redact } from '../redaction/redact.js';
import { deriveTraceId } from './ids.js';
import { collectAgentTags, collectTags, type TagKind } from './tags.js';

/** What the settings say of a trace, and of what it holds. */
export interface TraceSettings {
  readonly userId: string | undefined;
  readonly tags: readonly string[];
  /** What else they are tagged with. */
  readonly autoTags: readonly TagKind[];
  readonly metadata: { readonly [key: string]: Json };
  readonly environment: string | undefined;
  readonly release: string | undefined;
  readonly maxChars: number;
  /** None where secrets are to be sent as they are. */
  readonly redact: Redact | undefined;
  readonly capture: Capture;
  /** Whether its figures are to be kept as scores. */
  readonly scores: boolean;
  /** Whether images and documents go beside what refers to them. */
  readonly media: boolean;
  /** Whether a generation shows the whole request that it answers, or what is new in it. */
  readonly input: 'answered' | 'request';
}

/** What does not come from the lines of a turn. */
export interface BuildOptions extends TraceSettings {
  readonly sessionId: string;
  /** What it worked on, as `host/owner/name`. */
  readonly repository: string | undefined;
  readonly caller: Caller;
}

/** What every observation of a trace carries is short. */
const CONTEXT_CHARS = 1_000;

export function buildTrace(turn: Turn, options: BuildOptions): Trace {
  const { number, key, context } = turn;
  const { parent, seed, metadata } = options.caller;
  const fixed = { ...contextOf(context, options), ...metadata, turn_number: number, trigger: context.trigger };
  const scope = deriveTraceId(seed === undefined || parent ? key : `${seed}:${number}`);
  const place = { id: parent?.trace ?? scope, parentId: parent?.span, scope };
  const tags = [...options.tags, ...collectTags(turn, options.autoTags)];
  return makeTrace({ ...place, name: `Turn ${number}`, metadata: fitted(fixed, options) }, { ...options, tags });
}

/** The trace of an agent that no tool call started. */
export function buildAgentTrace(
  { turns: [first] }: AgentThread,
  type: string | undefined,
  options: BuildOptions,
): Trace {
  const metadata = fitted(contextOf(first.context, options), options);
  const tags = [...options.tags, ...collectAgentTags(type, options.autoTags)];
  const id = deriveTraceId(first.key);
  const place = { id, parentId: undefined, scope: id };
  return makeTrace({ ...place, name: `Agent ${type ?? ''}`.trim(), metadata }, { ...options, tags });
}

/** A trace as every one of its observations carries it, its metadata being fit to be sent. */
export function makeTrace(
  { id, parentId, scope, name, metadata }: Pick<Trace, 'id' | 'parentId' | 'scope' | 'name' | 'metadata'>,
  { sessionId, userId, tags, environment, release, redact }: BuildOptions,
): Trace {
  const fit = createSanitizer(redact);
  return {
    id,
    parentId,
    scope,
    name: fit.text(name, CONTEXT_CHARS),
    sessionId,
    userId: userId && fit.text(userId, CONTEXT_CHARS),
    tags: [...new Set(tags.map((tag) => fit.text(tag, CONTEXT_CHARS)))],
    environment,
    release: release && fit.text(release, CONTEXT_CHARS),
    metadata,
  };
}

function fitted(fixed: { readonly [key: string]: Json }, { metadata, redact, capture }: BuildOptions) {
  const fit = createSanitizer(redact);
  // What was selected in the editor is content.
  const shown = capture === 'metadata' ? Object.entries(fixed).filter(([key]) => key !== 'ide') : Object.entries(fixed);
  const all = { ...metadata, ...Object.fromEntries(shown) };
  // With its name, since that may say that it is a secret.
  return Object.assign(
    {},
    ...Object.entries(all).map(([name, value]) => fit.value({ [name]: value }, CONTEXT_CHARS).value),
  );
}

function contextOf(context: PromptContext, { sessionId, repository }: BuildOptions) {
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
    ide: context.ide,
  });
}
