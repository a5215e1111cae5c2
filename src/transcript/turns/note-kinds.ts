import type { NoteContent } from './turn.js';

interface NoteMeaning {
  /** Whether no more lines of the turn are expected after it. */
  readonly endsTurn?: boolean;
  /** Whether it only tells how a turn ended: if that turn does not count, it is of no interest to the next one. */
  readonly onlyTellsEnd?: boolean;
  /** Whether the event may have used tokens that no line reports. */
  readonly mayHideUsage?: boolean;
}

export const NOTE_KINDS: { readonly [kind in NoteContent['kind']]: NoteMeaning } = {
  compaction: {},
  retry: { mayHideUsage: true },
  'absorbed-message': {},
  'stop-hook-feedback': {},
  'hook-feedback': {},
  'hook-context': {},
  'hook-stop': { endsTurn: true, onlyTellsEnd: true },
  'model-fallback': { mayHideUsage: true },
  interrupt: { endsTurn: true, onlyTellsEnd: true, mayHideUsage: true },
  'max-turns': { endsTurn: true, onlyTellsEnd: true },
  nudge: { onlyTellsEnd: true, mayHideUsage: true },
  'api-error': { endsTurn: true, mayHideUsage: true },
};
