import { sanitizeValue } from '../../observations/content/sanitize.js';
import { REDACTED } from '../../observations/redaction/mark.js';
import type { Redact } from '../../observations/redaction/redact.js';
import { attempt } from '../../shared/attempt.js';
import { AgentFolders, readAgent } from '../../transcript/agents/agent-files.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { readAllTurns } from '../../transcript/turns/read-all-turns.js';
import type { Response, Turn } from '../../transcript/turns/turn.js';
import { containsText, listTexts, TextFilter } from './text-filter.js';

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

/** Searches sessions for a text; upper and lower case are the same. */
export class TextSearch {
  readonly #wanted: string;
  readonly #filter: Pick<TextFilter, 'mayContain'>;
  readonly #redact: Redact;
  readonly #folders = new AgentFolders();

  constructor(text: string, redact: Redact, filter: Pick<TextFilter, 'mayContain'> = new TextFilter(text)) {
    this.#wanted = text.toLowerCase();
    this.#filter = filter;
    this.#redact = redact;
  }

  /** Searches a session and its subagents. */
  *search(session: SessionOverview): Generator<Match> {
    for (const { content, ...passage } of this.#listPassages(session)) {
      const line = findLine(content, this.#wanted, this.#redact);
      if (line !== undefined) yield { sessionId: session.sessionId, ...passage, line };
    }
  }

  /** A subagent's prompts are inputs of the calls that start and continue it, so they are not searched again. */
  *#listPassages(session: SessionOverview): Generator<Passage> {
    const { path, sessionId } = session;
    if (this.#filter.mayContain(path))
      for (const turn of readAllTurns(path, 'main', sessionId)) {
        yield* listPrompts(turn);
        yield* turn.responses.flatMap(listOutput);
        for (const { turns } of turn.sidechains) yield* turns.flatMap(({ responses }) => responses.flatMap(listOutput));
      }
    for (const file of this.#folders.findAgentFiles(path, sessionId))
      if (file.parts.some((part) => attempt(() => this.#filter.mayContain(part.path)) ?? true))
        for (const { responses } of readAgent(file)?.turns ?? []) yield* responses.flatMap(listOutput);
  }
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
  if (!containsText(content, wanted)) return undefined;
  const redacted = sanitizeValue(content, redact).value;
  const lines = listTexts(redacted).flatMap((text) => text.split('\n'));
  return (lines.find((line) => line.toLowerCase().includes(wanted)) ?? REDACTED).trim();
}
