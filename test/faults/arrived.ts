import type { LangfuseServer, StoredObservation } from '../support/langfuse-server.js';
import type { Capture } from './turn-oracle.js';

/** A turn that a server has. */
export interface Arrived {
  readonly session: string;
  readonly startTime: number;
  /** With which content it was sent, and which tag. */
  readonly style: string;
  readonly times: number;
  /** When its observations ended: each line of a transcript has a time of its own. */
  readonly endTimes: readonly number[];
}

/** Describes the turns that a server has. Each turn in these sessions has a tool call. */
export function describeArrived(server: LangfuseServer): Arrived[] {
  const { observations } = server;
  return observations
    .filter(({ parentId }) => parentId === undefined)
    .map((root) => {
      const rows = observations.filter(({ traceId }) => traceId === root.traceId);
      const [tag = '-'] = (root.trace.tags as string[]).filter((each) => each.length === 1);
      const { startTime, trace } = root;
      return {
        session: String(trace.sessionId),
        startTime,
        style: `${findCapture(rows)} ${tag}`,
        times: server.timesSent(root),
        endTimes: rows.map(({ endTime }) => endTime),
      };
    });
}

function findCapture(rows: readonly StoredObservation[]): Capture {
  const tools = rows.filter(({ type }) => type === 'tool');
  // At every level a turn without an answer has an output that says how it ended.
  const words = rows.map(({ type, input, output }) => (type === 'agent' ? input : (input ?? output)));
  const hasWords = rows.some(({ type }, place) => type !== 'tool' && words[place] !== undefined);
  const hasToolIo = tools.some(({ input, output }) => (input ?? output) !== undefined);
  return hasToolIo ? 'full' : hasWords ? 'no_tool_io' : 'metadata';
}
