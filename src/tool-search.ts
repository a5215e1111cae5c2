import type { Fit } from './observations/limits.js';
import { REDACTED } from './observations/redact.js';
import { firstTimeIn, linesIn } from './transcript/lines.js';
import type { SessionOverview } from './transcript/overview.js';
import type { ToolCall } from './transcript/responses.js';
import { agentFilesBeside, agentFilesOf, readAgent, sessionOfAgent } from './transcript/subagents.js';
import { NO_FACTS, type Turn } from './transcript/turn.js';
import { TurnGrouper } from './transcript/turn-grouper.js';

/** A tool call whose input or output has a text. */
export interface Found {
  readonly sessionId: string;
  /** In ms since 1970. */
  readonly at: number;
  readonly tool: string;
  /** The line that has it, without secrets. */
  readonly line: string;
}

/** The tool calls of a session and its subagents in which a text stands, in any case. */
export function* findInTools(session: SessionOverview, text: string, fit: Fit): Generator<Found, void, undefined> {
  const wanted = text.toLowerCase();
  for (const turn of turnsOf(session)) {
    const threads = [turn, ...turn.sidechains.flatMap(({ turns }) => turns)];
    yield* findIn(threads, session.sessionId, wanted, fit);
  }
  const { path, sessionId } = session;
  const beside = agentFilesBeside(path).filter((file) => sessionOfAgent(file) === sessionId);
  for (const file of [...agentFilesOf(path), ...beside]) {
    const agent = readAgent(file, () => {});
    if (agent) yield* findIn(agent.turns, session.sessionId, wanted, fit);
  }
}

/** How many turns a session has, copied ones included. */
export function countTurns(session: SessionOverview): number {
  let count = 0;
  for (const turn of turnsOf(session)) count = turn.number;
  return count;
}

function* turnsOf({ path, sessionId }: SessionOverview): Generator<Turn, void, undefined> {
  const start = { session: NO_FACTS, sessionId, turnCount: 0, line: 1, offset: 0, time: firstTimeIn(path) };
  const grouper = new TurnGrouper({ ...start, thread: 'main' });
  for (const line of linesIn(path)) {
    const ended = grouper.push(line);
    if (ended) yield ended;
  }
  const open = grouper.open();
  if (open) yield open;
}

function* findIn(
  turns: readonly Turn[],
  sessionId: string,
  wanted: string,
  fit: Fit,
): Generator<Found, void, undefined> {
  for (const { responses } of turns) {
    for (const call of responses.flatMap(({ calls }) => calls)) {
      const line = lineWith(call, wanted, fit);
      if (line !== undefined) yield { sessionId, at: call.at, tool: call.name, line };
    }
  }
}

/** The first line of a call's texts that has it, as it would be sent; where that line was all secret, what stands for it. */
function lineWith({ input, result }: ToolCall, wanted: string, fit: Fit): string | undefined {
  const said = [input, result?.content];
  if (![...textsIn(said)].some((text) => text.toLowerCase().includes(wanted))) return undefined;
  const shown = [...textsIn(fit.value(said, Number.POSITIVE_INFINITY).value)].flatMap((text) => text.split('\n'));
  return (shown.find((line) => line.toLowerCase().includes(wanted)) ?? REDACTED).trim();
}

function* textsIn(value: unknown): Generator<string, void, undefined> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'number') yield String(value);
  else if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) yield* textsIn(item);
}
