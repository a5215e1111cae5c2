import { sanitizeValue } from '../../observations/content/sanitize.js';
import { REDACTED } from '../../observations/redaction/mark.js';
import type { Redact } from '../../observations/redaction/redact.js';
import { findAgentFiles, findLegacyAgentFiles, readAgent } from '../../transcript/agents/agent-files.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { readAllTurns } from '../../transcript/turns/read-all-turns.js';
import type { Response, Turn } from '../../transcript/turns/turn.js';

/** A prompt, an answer, or a tool call whose input or output contains the text. */
export interface Match {
  readonly sessionId: string;
  readonly at: number;
  readonly kind: 'prompt' | 'answer' | 'tool';
  readonly tool?: string;
  /** The first line that contains the text, redacted. */
  readonly line: string;
}

/** Something that is searched. */
interface Passage extends Pick<Match, 'at' | 'kind' | 'tool'> {
  readonly content: unknown;
}

/** Searches a session and its subagents; upper and lower case are the same. */
export function* searchSession(session: SessionOverview, text: string, redact: Redact): Generator<Match> {
  const wanted = text.toLowerCase();
  for (const { content, ...passage } of listPassages(session)) {
    const line = findLine(content, wanted, redact);
    if (line !== undefined) yield { sessionId: session.sessionId, ...passage, line };
  }
}

/** A subagent's prompts are inputs of the calls that start and continue it, so they are not searched again. */
function* listPassages({ path, sessionId }: SessionOverview): Generator<Passage> {
  for (const turn of readAllTurns(path, 'main', sessionId)) {
    yield* listPrompts(turn);
    yield* turn.responses.flatMap(listOutput);
    for (const { turns } of turn.sidechains) yield* turns.flatMap(({ responses }) => responses.flatMap(listOutput));
  }
  for (const file of [...findAgentFiles(path), ...findLegacyAgentFiles(path, sessionId)])
    for (const { responses } of readAgent(file)?.turns ?? []) yield* responses.flatMap(listOutput);
}

/** The prompts of a turn, and the messages that were typed while Claude worked. */
function listPrompts({ prompts, notes }: Turn): Passage[] {
  const later = notes.flatMap((note) => (note.kind === 'absorbed-message' ? [note] : []));
  return [...prompts, ...later].map(({ at, content }) => ({ at, kind: 'prompt', content }));
}

function listOutput({ firstBlockAt, blocks, calls }: Response): Passage[] {
  const texts = blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : []));
  return [
    { at: firstBlockAt, kind: 'answer', content: texts },
    ...calls.map(({ at, name, input, result }) => ({
      at,
      kind: 'tool' as const,
      tool: name,
      content: [input, result?.content],
    })),
  ];
}

/** Searches the unredacted text, and returns the redacted line. If redaction removed the match, returns its mark. */
function findLine(content: unknown, wanted: string, redact: Redact): string | undefined {
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
