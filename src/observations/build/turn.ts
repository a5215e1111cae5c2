import { findTitle } from '../../transcript/turns/session-facts.js';
import type { Turn } from '../../transcript/turns/turn.js';
import type { Observation, Trace } from '../model.js';
import { type AgentTree, buildChildren, listParts, planAgent } from './agents.js';
import { NO_FIGURES } from './figures.js';
import { deriveSpanId } from './ids.js';
import type { BuildContext, Selection } from './observation.js';
import { type BuildOptions, buildTrace } from './trace.js';

/**
 * Builds what Langfuse shows of a turn: its root, and the children that are selected. The same turn always
 * becomes the same observations, whether or not parts of it were built before, of which `earlier` are the figures.
 */
export function buildTurn(
  turn: Turn,
  options: BuildOptions,
  trace = buildTrace(turn, options),
  select: Selection = (parts) => parts,
  earlier = NO_FIGURES,
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

/** Builds the children of a turn that goes on, or of a part of it. */
export function buildPart(turn: Turn, options: BuildOptions, trace: Trace, select: Selection): Iterable<Observation> {
  return buildChildren(listParts(turn, turnContext(turn, options, trace)), select);
}

function turnContext({ key }: Turn, options: BuildOptions, trace: Trace): BuildContext {
  return { ...options, trace, agentSpanId: deriveSpanId(trace, 'agent', key), fileId: trace.sessionId };
}
