import { type AgentFile, copiesConversation, readAgent } from '../../transcript/agents/agent-files.js';
import { joinLines } from '../../transcript/agents/join-lines.js';
import type { Line } from '../../transcript/file/line.js';
import { readLines } from '../../transcript/file/lines.js';
import type { Originals } from '../../transcript/sessions/originals.js';
import type { AgentThread } from '../../transcript/turns/turn.js';
import type { SessionRun } from '../session-run.js';

type AgentRun = Pick<SessionRun, 'originals' | 'requests' | 'context'>;

/** What an agent did; undefined if its files contain no answer. */
export function readAgentThread(file: AgentFile, run: AgentRun): AgentThread | undefined {
  return readAgent(file, readAgentLines(file, run));
}

/** Reads the lines of all of an agent's files. Its requests are known until the next agent is read. */
export function readAgentLines(file: AgentFile, run: AgentRun): Iterable<Line> {
  const { requests } = run;
  const originals = copiesConversation(file) ? run.originals : undefined;
  requests?.beginAgent();
  return joinLines(
    file.parts.map(({ path, session }) => {
      const lines = withoutCopies(readLogged(path, run), session, originals);
      return requests?.observeAgent(path, lines) ?? lines;
    }),
  );
}

/** What the main thread has is not the agent's own. */
function* withoutCopies(lines: Iterable<Line>, session: string, originals: Originals | undefined) {
  for (const line of lines) {
    const uuid = 'fields' in line && 'uuid' in line.fields ? line.fields.uuid : undefined;
    if (uuid === undefined || originals?.holds(session, uuid) !== true) yield line;
  }
}

function* readLogged(file: string, { context: { log } }: AgentRun): Generator<Line, void, undefined> {
  const warn = (line: number, reason: string) => log.warn('skipped a line that cannot be read', { file, line, reason });
  try {
    for (const line of readLines(file)) {
      if (line.kind === 'unreadable') warn(line.location.number, line.reason);
      yield line;
    }
  } catch (error) {
    warn(0, error instanceof Error ? error.message : String(error));
    throw error;
  }
}
