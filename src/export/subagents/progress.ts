import type { AgentEntry } from '../../state/entry.js';
import type { AgentFile } from '../../transcript/agents/agent-files.js';

/**
 * How far an agent has been sent, by line. The lines of all its files are numbered in a row. So if a file has grown or was found
 * after a later file had been read, everything is sent again. Undefined if a file that was read is gone: then the numbers mean
 * nothing, and nobody knows when the agent began.
 */
export function findProgress(entry: AgentEntry, { parts }: AgentFile, session: string) {
  const { lastLine, sentLine = lastLine, bytes } = entry;
  // If it was sent in part, no sizes are known.
  const read = entry.parts ?? (bytes === undefined || sentLine === 0 ? {} : { [session]: bytes });
  const sizes = new Map(Object.entries(read));
  const last = parts.findLastIndex((part) => sizes.has(part.session));
  if (parts.filter((part) => sizes.has(part.session)).length < sizes.size) return undefined;
  const before = parts.slice(0, Math.max(last, 0));
  const isSame = before.every((part) => sizes.get(part.session) === part.bytes);
  return isSame ? { lastLine, sentLine } : { lastLine: 0, sentLine: 0 };
}

/** The sizes of an agent's files, if not all of them are in the session's own folder. */
export function measureParts({ parts }: AgentFile, session: string): AgentEntry['parts'] {
  if (parts.every((part) => part.session === session)) return undefined;
  return Object.fromEntries(parts.map((part) => [part.session, part.bytes]));
}
