import { findTitle } from '../../transcript/turns/session-facts.js';
import type { Turn } from '../../transcript/turns/turn.js';
import type { Trace } from '../model.js';
import { type AgentTree, buildChildren, listParts, NOTHING_BEFORE, planAgent } from './agents.js';
import { deriveSpanId } from './ids.js';
import type { BuildContext, Selection } from './observation.js';
import { type BuildOptions, buildTrace } from './trace.js';

/**
 * Builds what Langfuse shows of a turn: its root, and the children that are selected. The same turn always
 * becomes the same observations, whether or not parts of it were built before. `earlier` is about these parts.
 */
export function buildTurn(
  turn: Turn,
  options: BuildOptions,
  trace = buildTrace(turn, options),
  select: Selection = (parts) => parts,
  earlier = NOTHING_BEFORE,
): AgentTree {
  const { titles, pullRequest: pr } = turn.session;
  const own = { session_title: findTitle(titles), continued_in_session: turn.continuedIn };
  const { parts, root } = planAgent(
    [turn],
    { parentId: trace.parentId, name: `Turn ${turn.number}` },
    (figures) => ({ ...figures, ...own, pr: figures.pr ?? pr }),
    turnContext(turn, options, trace),
    earlier,
  );
  // In a caller's trace only the root carries the turn's metadata: the trace's own is the caller's.
  const metadata = trace.parentId === undefined ? root.metadata : { ...trace.metadata, ...root.metadata };
  return { children: buildChildren(parts, select), root: { ...root, metadata } };
}

/** Builds the children of a turn that goes on, or of a part of it. `end` returns what was said when it had ended. */
export function buildPart(
  turn: Turn,
  options: BuildOptions,
  trace: Trace,
  select: Selection,
  earlier = NOTHING_BEFORE,
) {
  const { parts, end } = listParts([turn], turnContext(turn, options, trace), earlier.said);
  return { children: buildChildren(parts, select), end };
}

function turnContext({ key }: Turn, options: BuildOptions, trace: Trace): BuildContext {
  return { ...options, trace, agentSpanId: deriveSpanId(trace, 'agent', key), fileId: trace.sessionId };
}
