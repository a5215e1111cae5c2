import { NOTE_KINDS } from './note-kinds.js';
import { findEndingCall, type Note, type Response } from './turn.js';

interface TurnSoFar {
  /** The last response. */
  readonly response: Pick<Response, 'stopReason' | 'calls' | 'lastLine'> | undefined;
  readonly notes: readonly Note[];
  /** The last line by which Claude Code said that the turn is over; 0 if none did. */
  readonly endLine: number;
  /** Whether the next prompt of the same process has come. */
  readonly isFollowed: boolean;
}

/** Whether no more lines of the turn are expected. */
export function isOver({ response, notes, endLine, isFollowed }: TurnSoFar): boolean {
  const { lastLine = 0 } = response ?? {};
  const later = notes.flatMap(({ kind, line }) => (line > lastLine ? [kind] : []));
  if (later.some((kind) => NOTE_KINDS[kind].endsTurn)) return true;
  // The model answers what a Stop hook objects to.
  if (later.includes('stop-hook-feedback')) return false;
  return endLine > lastLine || (isFollowed && response !== undefined && isFinal(response));
}

/** Up to 2.1.90 there is no stop reason. */
function isFinal({ stopReason, calls }: Pick<Response, 'stopReason' | 'calls'>): boolean {
  if (findEndingCall({ calls })) return true;
  return stopReason === undefined ? calls.length === 0 : stopReason !== 'tool_use';
}
