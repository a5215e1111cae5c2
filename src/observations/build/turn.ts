import { type Json, withoutUndefined } from '../../shared/json.js';
import { TITLE_KINDS, type Turn } from '../../transcript/turns/turn.js';
import { fitting } from '../content/limits.js';
import type { Observation } from '../model.js';
import { sidechainsOf } from './agents.js';
import { spanIdOf } from './ids.js';
import { type Context, observation } from './observation.js';
import { childrenOf, spanOf, summaryOf } from './thread.js';
import { type BuildOptions, traceOf } from './trace.js';

export interface TurnObservations {
  /** In the order of the lines that completed them. */
  readonly children: readonly Observation[];
  readonly root: Observation;
}

/** What Langfuse is to show of a turn. The same turn always gives the same observations. */
export function buildTurn(turn: Turn, options: BuildOptions): TurnObservations {
  const trace = traceOf(turn, options);
  const { maxChars, redact, capture, media } = options;
  const context = {
    trace,
    place: trace.sessionId,
    maxChars,
    fit: fitting(redact),
    capture,
    media,
    agentSpan: spanIdOf(trace.scope, 'agent', turn.key),
  };
  const children = [...childrenOf(turn, context), ...sidechainsOf(turn, context)].toSorted((a, b) => a.line - b.line);
  return { children, root: rootOf(turn, context) };
}

function rootOf(turn: Turn, context: Context): Observation {
  const { level, statusMessage, ...figures } = summaryOf([turn]);
  const { trace } = context;
  const root = observation(
    {
      type: 'agent',
      id: context.agentSpan,
      parentId: trace.parentId,
      name: trace.name,
      ...spanOf([turn], context),
      metadata: withoutUndefined<Json>({
        ...figures,
        session_title: TITLE_KINDS.map((kind) => turn.session.titles[kind]).find((title) => title !== undefined),
        pr: turn.session.pullRequest,
      }),
      level,
      statusMessage,
      line: turn.lineOffsets.at(-1) ?? turn.prompts[0].line,
    },
    context,
  );
  return trace.parentId === undefined ? root : { ...root, metadata: { ...trace.metadata, ...root.metadata } };
}
