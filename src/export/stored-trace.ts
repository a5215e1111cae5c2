import { assembleTrace, type BuildOptions } from '../observations/build/trace.js';
import type { Trace } from '../observations/model.js';
import type { AgentEntry } from '../state/entry.js';

type KeptTrace = Pick<
  AgentEntry,
  'trace' | 'trace_parent' | 'trace_scope' | 'trace_name' | 'trace_metadata' | 'trace_tags' | 'trace_user'
>;

/** What the state keeps of the trace in which an agent hangs: the run that brings the agent does not read its turn again. */
export function keptOf({ id, parentId, scope, name, metadata, tags, userId }: Trace): KeptTrace {
  return {
    trace: id,
    trace_parent: parentId,
    trace_scope: scope === id ? undefined : scope,
    trace_name: name,
    trace_metadata: metadata,
    trace_tags: [...tags],
    trace_user: userId,
  };
}

export function traceKept(kept: KeptTrace, options: BuildOptions): Trace {
  const {
    trace: id,
    trace_parent: parentId,
    trace_scope: scope = id,
    trace_name: name,
    trace_metadata: metadata,
  } = kept;
  const { trace_tags: tags = options.tags, trace_user: userId = options.userId } = kept;
  return assembleTrace({ id, parentId, scope, name, metadata, tags, userId }, options);
}
