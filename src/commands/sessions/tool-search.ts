import type { Sanitizer } from '../../observations/content/sanitize.js';
import { REDACTED } from '../../observations/redaction/redact.js';
import {
  findAgentFiles,
  findAgentSession,
  findLegacyAgentFiles,
  readAgent,
} from '../../transcript/agents/agent-files.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { readAllTurns } from '../../transcript/turns/read-all-turns.js';
import type { ToolCall, Turn } from '../../transcript/turns/turn.js';

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
export function* findInTools(
  session: SessionOverview,
  text: string,
  sanitizer: Sanitizer,
): Generator<Found, void, undefined> {
  const wanted = text.toLowerCase();
  const { path, sessionId } = session;
  for (const turn of readAllTurns(path, 'main', sessionId)) {
    const threads = [turn, ...turn.sidechains.flatMap(({ turns }) => turns)];
    yield* findIn(threads, sessionId, wanted, sanitizer);
  }
  const beside = findLegacyAgentFiles(path).filter((file) => findAgentSession(file) === sessionId);
  for (const file of [...findAgentFiles(path), ...beside]) {
    const agent = readAgent(file, () => {});
    if (agent) yield* findIn(agent.turns, sessionId, wanted, sanitizer);
  }
}

/** How many turns a session has, copied ones included. */
export function countTurns({ path, sessionId }: SessionOverview): number {
  let count = 0;
  for (const { number } of readAllTurns(path, 'main', sessionId)) count = number;
  return count;
}

function* findIn(
  turns: readonly Turn[],
  sessionId: string,
  wanted: string,
  sanitizer: Sanitizer,
): Generator<Found, void, undefined> {
  for (const { responses } of turns) {
    for (const call of responses.flatMap(({ calls }) => calls)) {
      const line = lineWith(call, wanted, sanitizer);
      if (line !== undefined) yield { sessionId, at: call.at, tool: call.name, line };
    }
  }
}

/** The first line of a call's texts that has it, as it would be sent; where that line was all secret, what stands for it. */
function lineWith({ input, result }: ToolCall, wanted: string, sanitizer: Sanitizer): string | undefined {
  const said = [input, result?.content];
  if (![...textsIn(said)].some((text) => text.toLowerCase().includes(wanted))) return undefined;
  const shown = [...textsIn(sanitizer.value(said, Number.POSITIVE_INFINITY).value)].flatMap((text) => text.split('\n'));
  return (shown.find((line) => line.toLowerCase().includes(wanted)) ?? REDACTED).trim();
}

function* textsIn(value: unknown): Generator<string, void, undefined> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'number') yield String(value);
  else if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) yield* textsIn(item);
}
