import { TITLE_KINDS, type Turn } from '../../transcript/turns/turn.js';
import { createContentRules } from '../content/rules.js';
import { buildSidechains } from './agents.js';
import { deriveSpanId } from './ids.js';
import { buildAgentObservation, buildChildren, buildOutcomeMetadata, type ObservationTree } from './thread.js';
import { type BuildOptions, buildTrace } from './trace.js';

/** Builds what Langfuse shows of a turn. The same turn always becomes the same observations. */
export function buildTurn(turn: Turn, options: BuildOptions, trace = buildTrace(turn, options)): ObservationTree {
  const agentSpanId = deriveSpanId(trace, 'agent', turn.key);
  const context = { ...createContentRules(options), trace, agentSpanId, fileId: trace.sessionId };
  const children = [...buildChildren([turn], context), ...buildSidechains(turn, context)];
  const { titles, pullRequest } = turn.session;
  const metadata = {
    ...buildOutcomeMetadata([turn]),
    session_title: TITLE_KINDS.map((kind) => titles[kind]).find((title) => title !== undefined),
    pr: pullRequest,
  };
  const { parentId, name } = trace;
  const root = buildAgentObservation([turn], { parentId, name, metadata }, context);
  return {
    children: children.toSorted((a, b) => a.line - b.line),
    root: parentId === undefined ? root : { ...root, metadata: { ...trace.metadata, ...root.metadata } },
  };
}
