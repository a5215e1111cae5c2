import type { NoteContent } from './turn.js';

interface NoteMeaning {
  /** Whether it never comes after a built-in command, so that a command before it was a prompt. */
  readonly impliesPrompt: boolean;
  /** Whether the next prompt begins a turn of its own, even if no response has come. */
  readonly separatesPrompts: boolean;
  /** Whether it takes the place of an answer. */
  readonly isAnswer?: boolean;
  /** Whether no more lines of the turn are expected after it. */
  readonly endsTurn?: boolean;
  /** Whether it only tells how a turn ended: if that turn does not count, it is of no interest to the next one. */
  readonly onlyTellsEnd?: boolean;
  /** Whether the event may have used tokens that no line reports. */
  readonly mayHideUsage?: boolean;
}

export const NOTE_KINDS: { readonly [kind in NoteContent['kind']]: NoteMeaning } = {
  // A command can have asked for the compaction.
  compaction: { impliesPrompt: false, separatesPrompts: true },
  retry: { impliesPrompt: true, separatesPrompts: false, mayHideUsage: true },
  'absorbed-message': { impliesPrompt: true, separatesPrompts: false },
  'stop-hook-feedback': { impliesPrompt: true, separatesPrompts: false },
  'hook-feedback': { impliesPrompt: true, separatesPrompts: false },
  'hook-context': { impliesPrompt: true, separatesPrompts: false },
  'hook-stop': { impliesPrompt: true, separatesPrompts: false, endsTurn: true, onlyTellsEnd: true },
  'model-fallback': { impliesPrompt: true, separatesPrompts: false, mayHideUsage: true },
  interrupt: { impliesPrompt: true, separatesPrompts: true, endsTurn: true, onlyTellsEnd: true, mayHideUsage: true },
  'max-turns': { impliesPrompt: true, separatesPrompts: false, endsTurn: true, onlyTellsEnd: true },
  nudge: { impliesPrompt: true, separatesPrompts: false, onlyTellsEnd: true, mayHideUsage: true },
  'api-error': { impliesPrompt: true, separatesPrompts: true, isAnswer: true, endsTurn: true, mayHideUsage: true },
  'command-result': { impliesPrompt: true, separatesPrompts: true, isAnswer: true, endsTurn: true },
};
