import type { Entry } from '../state/entry.js';
import { listRuns } from '../state/runs.js';
import { listAdvisorUses } from '../transcript/file/token-kinds.js';
import { readAllTurns } from '../transcript/turns/read-all-turns.js';
import { lacksPrompt, type Turn } from '../transcript/turns/turn.js';
import type { ExportContext, ExportRequest } from './export-request.js';

/**
 * For each version of the reader, the turns in which it is the first to read something. To read more of transcripts, add a row: a
 * backfill then sends such turns whole, under the same ids, if an older version has exported them. A row must not recognize what is
 * now sent under other ids, because that would be in Langfuse twice.
 */
const READ_SINCE: readonly ((turn: Turn) => boolean)[] = [
  // Version 0 read nothing before the first prompt that it knew, no answer to a prompt that was copied, and no advisor. What a
  // later /goal did was sent as part of the turn before.
  (turn) =>
    lacksPrompt(turn) || isFirstCommand(turn) || turn.responses.some(({ usage }) => listAdvisorUses(usage).length > 0),
];

function isFirstCommand({ number, prompts: [{ content }], context: { trigger } }: Turn): boolean {
  return number === 1 && trigger === 'command' && /^\/(?:goal|plan)\b/.test(content);
}

/** The version of the reader. */
export const READER = READ_SINCE.length;

/**
 * Whether an older version of the reader has read what was sent of a session. What the first cc-langfuse has sent has random ids,
 * and with a seed they depend on the numbers of the turns, so such sessions are left as they are.
 */
export function isReadByOlder(entry: Entry): boolean {
  const { lastLine, sentLine = lastLine, reader = 0, seedLine } = entry;
  const isDerived = seedLine === undefined && listRuns(entry).every(({ seed }) => seed === undefined);
  return sentLine > 0 && reader < READER && isDerived;
}

/** Keeps the turns that an older version of the reader has overlooked. Those that may be sent are then looked back for. */
export async function keepOverlooked(
  { sessionId, path }: ExportRequest,
  { state, destinationId }: ExportContext,
): Promise<void> {
  const known = state.read(sessionId, destinationId);
  if (!known || !isReadByOlder(known)) return;
  const kept = [...(known.kept ?? []), ...listOverlooked(known, path)];
  await state.update(sessionId, { reader: READER, kept: kept.length > 0 ? kept : undefined }, destinationId);
}

function* listOverlooked({ id, lastLine, sentLine = lastLine, reader, kept = [] }: Entry, path: string) {
  const rows = READ_SINCE.slice(reader);
  const known = new Set(kept.map(({ prompts }) => prompts[0]));
  for (const turn of readAllTurns(path, 'main', id)) {
    const prompts = turn.prompts.map(({ offset }) => offset);
    const isRead = turn.countsFrom <= sentLine && !known.has(prompts[0]);
    if (isRead && rows.some((isOverlooked) => isOverlooked(turn))) yield { prompts, why: 'overlooked' as const };
  }
}
