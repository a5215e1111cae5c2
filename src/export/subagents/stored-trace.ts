import { assembleTrace, type BuildOptions } from '../../observations/build/trace.js';
import type { Trace } from '../../observations/model.js';
import type { AgentEntry } from '../../state/entry.js';

type StoredTrace = Pick<
  AgentEntry,
  'trace' | 'traceParent' | 'traceScope' | 'traceName' | 'traceMetadata' | 'traceTags' | 'traceUser'
>;

/** The trace of an agent as the state keeps it: the run that sends the agent does not read its turn again. */
export function serializeTrace({ id, parentId, scope, name, metadata, tags, userId }: Trace): StoredTrace {
  return {
    trace: id,
    traceParent: parentId,
    traceScope: scope === id ? undefined : scope,
    traceName: name,
    traceMetadata: metadata,
    traceTags: [...tags],
    traceUser: userId,
  };
}

export function deserializeTrace(stored: StoredTrace, options: BuildOptions): Trace {
  const { trace: id, traceParent: parentId, traceScope: scope = id, traceName: name, traceMetadata: metadata } = stored;
  const { traceTags: tags = options.tags, traceUser: userId = options.userId } = stored;
  return assembleTrace({ id, parentId, scope, name, metadata, tags, userId }, options);
}
