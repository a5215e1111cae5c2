import { findTitle } from '../../transcript/turns/session-facts.js';
import type { Turn } from '../../transcript/turns/turn.js';
import { type AgentTree, buildChildren, planAgent } from './agents.js';
import { deriveSpanId } from './ids.js';
import { type BuildOptions, buildTrace } from './trace.js';

/**
 * Builds what Langfuse shows of a turn: its root, and the children that lines after `after` completed. The same turn always
 * becomes the same observations.
 */
export function buildTurn(turn: Turn, options: BuildOptions, trace = buildTrace(turn, options), after = 0): AgentTree {
  const { titles, pullRequest } = turn.session;
  const { parts, root } = planAgent(
    [turn],
    { parentId: trace.parentId, name: `Turn ${turn.number}` },
    (figures) => ({ ...figures, session_title: findTitle(titles), pr: pullRequest }),
    { ...options, trace, agentSpanId: deriveSpanId(trace, 'agent', turn.key), fileId: trace.sessionId },
  );
  // In a caller's trace only the root carries the turn's metadata: the trace's own is the caller's.
  const metadata = trace.parentId === undefined ? root.metadata : { ...trace.metadata, ...root.metadata };
  return { children: buildChildren(parts, after), root: { ...root, metadata } };
}
