import { sanitizeValue } from '../../observations/content/sanitize.js';
import { REDACTED } from '../../observations/redaction/mark.js';
import type { Redact } from '../../observations/redaction/redact.js';
import { findAgentFiles, findLegacyAgentFiles, readAgent } from '../../transcript/agents/agent-files.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { readAllTurns } from '../../transcript/turns/read-all-turns.js';
import type { ToolCall, Turn } from '../../transcript/turns/turn.js';

/** A tool call whose input or output contains the text. */
export interface Match {
  readonly sessionId: string;
  readonly at: number;
  readonly tool: string;
  /** The first line that contains the text, redacted. */
  readonly line: string;
}

/** Searches the tool calls of a session and its subagents; upper and lower case are the same. */
export function* searchToolCalls(session: SessionOverview, text: string, redact: Redact): Generator<Match> {
  const wanted = text.toLowerCase();
  for (const { responses } of listTurns(session)) {
    for (const call of responses.flatMap(({ calls }) => calls)) {
      const line = findLine(call, wanted, redact);
      if (line !== undefined) yield { sessionId: session.sessionId, at: call.at, tool: call.name, line };
    }
  }
}

function* listTurns({ path, sessionId }: SessionOverview): Generator<Turn> {
  for (const turn of readAllTurns(path, 'main', sessionId)) {
    yield turn;
    for (const { turns } of turn.sidechains) yield* turns;
  }
  for (const file of [...findAgentFiles(path), ...findLegacyAgentFiles(path, sessionId)])
    yield* readAgent(file)?.turns ?? [];
}

/** Searches the text as it is, but returns it redacted. If redaction removed the match, returns the mark for that. */
function findLine({ input, result }: ToolCall, wanted: string, redact: Redact): string | undefined {
  const content = [input, result?.content];
  if (![...listTexts(content)].some((text) => text.toLowerCase().includes(wanted))) return undefined;
  const redacted = sanitizeValue(content, redact).value;
  const lines = [...listTexts(redacted)].flatMap((text) => text.split('\n'));
  return (lines.find((line) => line.toLowerCase().includes(wanted)) ?? REDACTED).trim();
}

function* listTexts(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'number') yield String(value);
  else if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) yield* listTexts(item);
}
