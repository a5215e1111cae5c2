import type { ShownObservation, ShownSession, ShownTurn } from '../src/commands/preview/session.js';
import { isRecord } from '../src/shared/json.js';

export interface Hit {
  readonly turn: ShownTurn;
  readonly observation: ShownObservation;
}

interface Searchable extends Hit {
  readonly text: string;
}

/** Finds observations by their names, inputs and outputs. What they say is gathered with the first search, not before. */
export function searcher(sessions: readonly ShownSession[]): (query: string) => Hit[] {
  let all: readonly Searchable[] | undefined;
  return (query) => {
    if (query === '') return [];
    all ??= sessions.flatMap(({ turns }) => turns.flatMap(searchableIn));
    return all.filter(({ text }) => text.includes(query));
  };
}

function searchableIn(turn: ShownTurn): Searchable[] {
  return turn.observations.map((observation) => {
    const { name, statusMessage, metadata, input, output } = observation;
    const text = [...textsIn([name, statusMessage, metadata.summary, input, output])].join('\n').toLowerCase();
    return { turn, observation, text };
  });
}

function* textsIn(value: unknown): Generator<string, void, undefined> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'number' || typeof value === 'boolean') yield String(value);
  else if (Array.isArray(value)) for (const item of value) yield* textsIn(item);
  else if (isRecord(value)) {
    for (const [name, item] of Object.entries(value)) {
      yield name;
      yield* textsIn(item);
    }
  }
}
