import { type Json, mapValues, withoutUndefined } from '../../shared/json.js';
import { isNotification, tellsEnd } from '../../transcript/turns/notification.js';
import { findTitle } from '../../transcript/turns/session-facts.js';
import type { AgentThread, PromptContext, Turn } from '../../transcript/turns/turn.js';
import { sanitizeText, sanitizeValue } from '../content/sanitize.js';
import type { TraceKey } from '../metadata-keys.js';
import type { Caller, ContentSettings, Trace } from '../model.js';
import { NO_FIGURES } from './figures.js';
import { deriveTraceId, deriveTurnTrace } from './ids.js';
import { buildTags, collectTags, namePlace, type TagKind } from './tags.js';
import { nameAgentTrace, nameTrace, shortenRepository } from './trace-name.js';

/** The settings that describe traces and restrict what they contain. */
export interface TraceSettings extends ContentSettings {
  readonly userId: string | undefined;
  readonly tags: readonly string[];
  readonly autoTags: readonly TagKind[];
  readonly metadata: { readonly [key: string]: Json };
  readonly environment: string | undefined;
  readonly release: string | undefined;
  /** A template (trace-name.ts). */
  readonly traceName: string;
  /** Whether a turn's figures are sent as scores. */
  readonly scores: boolean;
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

/** `earlier` are the figures of what is not in the turn any more. */
export function buildTrace(turn: Turn, options: BuildOptions, earlier = NO_FIGURES): Trace {
  const { number, context } = turn;
  const { parent, metadata } = options.caller;
  return createTrace(options, {
    ...deriveTurnTrace(turn, options.caller),
    parentId: parent?.span,
    name: nameTurn(turn, options),
    tags: collectTags(turn, options.autoTags, shortenRepository(options.repository), earlier.used),
    metadata: { ...describeContext(context, options), ...metadata, turn_number: number, trigger: context.trigger },
  });
}

/** The texts are redacted whole: a rule may need what comes after the part that is shown. */
function nameTurn(
  { number, context, prompts, session }: Turn,
  { traceName, repository, capture, redact }: BuildOptions,
) {
  const sanitize = (text: string) => sanitizeText(text, redact);
  const title = findTitle(session.titles);
  const [{ content }] = prompts;
  return nameTrace(traceName, {
    number,
    cwd: context.cwd,
    repository,
    ...(capture !== 'metadata' && {
      title: () => title && sanitize(title),
      prompt: () => (isNotification(content) ? nameNotification(content) : sanitize(content)),
    }),
  });
}

/** What a background task returned can be a tool's output. */
function nameNotification(message: string): string {
  return tellsEnd(message) ? 'background task done' : 'background event';
}

/** Builds the trace of an agent that no tool call started. */
export function buildAgentTrace(thread: AgentThread, type: string | undefined, options: BuildOptions): Trace {
  const [{ key, context }] = thread.turns;
  const id = deriveTraceId(key);
  return createTrace(options, {
    id,
    parentId: undefined,
    scope: id,
    name: nameAgentTrace(options.traceName, { cwd: context.cwd, repository: options.repository }, type),
    tags: buildTags(options.autoTags, { agent: [type], ...namePlace(context, shortenRepository(options.repository)) }),
    metadata: describeContext(context, options),
  });
}

/** Metadata of every trace: what was true when the prompt was given. */
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
    session_kind: context.sessionKind,
    // What is selected in the editor is content.
    ide: capture === 'metadata' ? undefined : context.ide,
  } satisfies { [key in TraceKey]?: Json | undefined });
}

type OwnFields = Omit<Trace, 'sessionId' | 'environment' | 'release' | 'version' | 'callerName' | 'experiment'>;

/** Adds the user's own tags and metadata. */
function createTrace(options: BuildOptions, { tags, metadata, ...place }: Omit<OwnFields, 'userId'>): Trace {
  const sanitized = Object.entries({ ...options.metadata, ...metadata }).map(
    // Together with its name, which may say that the value is a secret.
    ([name, value]) => sanitizeValue({ [name]: value }, options.redact, TRACE_TEXT_CHARS).value,
  );
  const own = { tags: [...options.tags, ...tags], metadata: Object.assign({}, ...sanitized) };
  return assembleTrace({ ...place, userId: options.userId, ...own }, options);
}

/** Adds what all traces of a run share. The metadata must be sanitized already. */
export function assembleTrace(own: OwnFields, options: BuildOptions): Trace {
  const { sessionId, environment, release, redact, capture, caller } = options;
  const shorten = (text: string) => sanitizeText(text, redact, TRACE_TEXT_CHARS);
  const { version } = own.metadata;
  const { 'item.expected_output': expected, ...experiment } = caller.experiment ?? {};
  // What the answer should be is content.
  const isExpectedSent = expected !== undefined && capture !== 'metadata';
  return {
    ...own,
    name: shorten(own.name),
    sessionId,
    userId: own.userId && shorten(own.userId),
    tags: [...new Set(own.tags.map(shorten))],
    environment,
    release: release && shorten(release),
    version: typeof version === 'string' ? version : undefined,
    // Below a span the trace has no id for a seed to decide about.
    callerName: caller.parent && caller.seed && shorten(caller.seed),
    experiment:
      caller.experiment &&
      mapValues({ ...experiment, ...(isExpectedSent && { 'item.expected_output': expected }) }, shorten),
  };
}
