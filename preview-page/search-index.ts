import type { ShownObservation, ShownSession, ShownTurn } from '../src/commands/preview/view-model.js';
import { isRecord } from '../src/shared/json.js';

export interface Match {
  readonly turn: ShownTurn;
  readonly observation: ShownObservation;
}

interface Searchable extends Match {
  readonly text: string;
}

/** Searches the names, inputs and outputs of observations. The index is built at the first search. */
export function createSearch(sessions: readonly ShownSession[]): (query: string) => Match[] {
  let all: readonly Searchable[] | undefined;
  return (query) => {
    if (query === '') return [];
    all ??= sessions.flatMap(({ turns }) => turns.flatMap(listSearchable));
    return all.filter(({ text }) => text.includes(query));
  };
}

function listSearchable(turn: ShownTurn): Searchable[] {
  return turn.observations.map((observation) => {
    const { name, statusMessage, metadata, input, output } = observation;
    const text = [...listTexts([name, statusMessage, metadata.summary, input, output])].join('\n').toLowerCase();
    return { turn, observation, text };
  });
}

function* listTexts(value: unknown): Generator<string, void, undefined> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'number' || typeof value === 'boolean') yield String(value);
  else if (Array.isArray(value)) for (const item of value) yield* listTexts(item);
  else if (isRecord(value)) {
    for (const [name, item] of Object.entries(value)) {
      yield name;
      yield* listTexts(item);
    }
  }
}
