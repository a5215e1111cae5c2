import type { Turn } from '../transcript/turn.js';
import { answerText } from './messages.js';
import type { Level } from './model.js';

export interface Ending {
  readonly outcome: 'completed' | 'interrupted' | 'api_error' | 'max_turns' | 'empty';
  readonly level: Level;
  readonly statusMessage: string | undefined;
}

/** How a turn ended: what came last decides. */
export function endingOf({ responses, notes }: Turn): Ending {
  const lastResponseLine = responses.reduce((line, { lastLine }) => Math.max(line, lastLine), 0);
  const last = notes
    .filter(
      ({ kind, line }) =>
        (kind === 'interrupt' || kind === 'max-turns' || kind === 'api-error') && line > lastResponseLine,
    )
    .at(-1);
  switch (last?.kind) {
    case 'api-error':
      return { outcome: 'api_error', level: 'ERROR', statusMessage: last.content };
    case 'interrupt':
      return { outcome: 'interrupted', level: 'WARNING', statusMessage: last.content };
    case 'max-turns':
      return { outcome: 'max_turns', level: 'DEFAULT', statusMessage: undefined };
    default: {
      const outcome = responses.some((response) => answerText(response) !== '') ? 'completed' : 'empty';
      return { outcome, level: 'DEFAULT', statusMessage: undefined };
    }
  }
}
