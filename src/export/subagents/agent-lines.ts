import type { AgentFile } from '../../transcript/agents/agent-files.js';
import { joinLines } from '../../transcript/agents/join-lines.js';
import type { Line } from '../../transcript/file/line.js';
import { readLines } from '../../transcript/file/lines.js';
import type { SessionRun } from '../session-run.js';

type AgentRun = Pick<SessionRun, 'requests' | 'context'>;

/** Reads the lines of all of an agent's files. Its requests are known until the next agent is read. */
export function readAgentLines({ parts }: AgentFile, run: AgentRun): Iterable<Line> {
  const { requests } = run;
  requests?.beginAgent();
  return joinLines(
    parts.map(({ path }) => {
      const lines = readLogged(path, run);
      return requests?.observeAgent(path, lines) ?? lines;
    }),
  );
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
