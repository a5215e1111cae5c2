import { formatCount } from '../src/cli/format.js';
import { findPart } from './dom.js';
import type { Match } from './search-index.js';

interface SearchTools {
  /** Takes the query in lower case. */
  readonly find: (query: string) => readonly Match[];
  readonly onQuery: (query: string, matches: readonly Match[]) => void;
  readonly onMatch: (match: Match) => void;
  readonly onLeave: () => void;
}

interface SearchBox {
  focus(): void;
  /** Returns false if the field was already empty. */
  clear(): boolean;
}

/** Search once the user has stopped typing for this long. */
const PAUSE_MS = 120;

/** Sets up the search field: Enter goes to the next match, Shift+Enter to the previous one. */
export function createSearchBox({ find, onQuery, onMatch, onLeave }: SearchTools): SearchBox {
  const field = findPart('query', HTMLInputElement);
  let query = '';
  let matches: readonly Match[] = [];
  let current: number | undefined;
  let pause = 0;
  const search = () => {
    clearTimeout(pause);
    const entered = field.value.trim().toLowerCase();
    if (entered === query) return;
    query = entered;
    matches = find(query);
    current = undefined;
    showCount(query, matches.length, current);
    onQuery(query, matches);
  };
  const step = (by: 1 | -1) => {
    search();
    current = stepIndex(current, by, matches.length);
    showCount(query, matches.length, current);
    const match = matches[current ?? -1];
    if (match) onMatch(match);
  };
  const clear = () => {
    const isEmpty = field.value === '';
    field.value = '';
    search();
    return !isEmpty;
  };
  field.addEventListener('input', () => {
    clearTimeout(pause);
    pause = setTimeout(search, PAUSE_MS);
  });
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') step(event.shiftKey ? -1 : 1);
    if (event.key !== 'Escape') return;
    event.preventDefault();
    clear();
    onLeave();
  });
  findPart('previous-match', HTMLButtonElement).addEventListener('click', () => step(-1));
  findPart('next-match', HTMLButtonElement).addEventListener('click', () => step(1));
  return { focus: () => field.select(), clear };
}

/** Wraps around at both ends; undefined without matches. */
function stepIndex(current: number | undefined, by: 1 | -1, length: number): number | undefined {
  if (length === 0) return undefined;
  if (current === undefined) return by > 0 ? 0 : length - 1;
  return (current + by + length) % length;
}

function showCount(query: string, length: number, current: number | undefined): void {
  const place = current === undefined ? '' : `${formatCount(current + 1)} of `;
  const count = length === 0 ? 'no matches' : `${place}${formatCount(length)}`;
  findPart('matches', HTMLOutputElement).textContent = query === '' ? '' : count;
  for (const id of ['previous-match', 'next-match']) findPart(id, HTMLButtonElement).disabled = length === 0;
}
