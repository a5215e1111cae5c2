import { type Json, withoutUndefined } from '../../shared/json.js';
import { TITLE_KINDS, type Turn } from '../../transcript/turns/turn.js';
import { createSanitizer } from '../content/limits.js';
import type { Observation } from '../model.js';
import { buildSidechains } from './agents.js';
import { deriveSpanId } from './ids.js';
import { buildObservation, type Context } from './observation.js';
import { buildAgentSpan, buildChildren, summarizeTurns } from './thread.js';
import { type BuildOptions, buildTrace } from './trace.js';

export interface TurnObservations {
  /** In the order of the lines that completed them. */
  readonly children: readonly Observation[];
  readonly root: Observation;
}

/** What Langfuse is to show of a turn. The same turn always gives the same observations. */
export function buildTurn(turn: Turn, options: BuildOptions, trace = buildTrace(turn, options)): TurnObservations {
  const { maxChars, redact, capture, media } = options;
  const context = {
    trace,
    place: trace.sessionId,
    maxChars,
    fit: createSanitizer(redact),
    capture,
    media,
    agentSpan: deriveSpanId(trace.scope, 'agent', turn.key),
  };
  const children = [...buildChildren(turn, context), ...buildSidechains(turn, context)].toSorted(
    (a, b) => a.line - b.line,
  );
  return { children, root: rootOf(turn, context) };
}

function rootOf(turn: Turn, context: Context): Observation {
  const { level, statusMessage, ...figures } = summarizeTurns([turn]);
  const { trace } = context;
  const root = buildObservation(
    {
      type: 'agent',
      id: context.agentSpan,
      parentId: trace.parentId,
      name: trace.name,
      ...buildAgentSpan([turn], context),
      metadata: withoutUndefined<Json>({
        ...figures,
        session_title: TITLE_KINDS.map((kind) => turn.session.titles[kind]).find((title) => title !== undefined),
        pr: turn.session.pullRequest,
      }),
      level,
      statusMessage,
      line: turn.lineNumbers.at(-1) ?? turn.prompts[0].line,
    },
    context,
  );
  return trace.parentId === undefined ? root : { ...root, metadata: { ...trace.metadata, ...root.metadata } };
}
