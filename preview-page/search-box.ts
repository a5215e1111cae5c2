import { formatCount } from '../src/cli/format.js';
import { part } from './dom.js';
import type { Hit } from './search-index.js';

interface SearchTools {
  /** The hits of a query, which is in lower case. */
  readonly find: (query: string) => readonly Hit[];
  readonly onQuery: (query: string, hits: readonly Hit[]) => void;
  readonly onHit: (hit: Hit) => void;
  readonly onLeave: () => void;
}

interface SearchBox {
  focus(): void;
  /** Whether there was anything to be cleared. */
  clear(): boolean;
}

/** A pause in typing after which is searched. */
const PAUSE_MS = 120;

/** The field for what is searched for: Enter moves to the next hit, Shift and Enter to the one before. */
export function searchBox({ find, onQuery, onHit, onLeave }: SearchTools): SearchBox {
  const field = part('query', HTMLInputElement);
  let query = '';
  let hits: readonly Hit[] = [];
  let current: number | undefined;
  let pause = 0;
  const search = () => {
    clearTimeout(pause);
    const wanted = field.value.trim().toLowerCase();
    if (wanted === query) return;
    query = wanted;
    hits = find(query);
    current = undefined;
    tell(query, hits.length, current);
    onQuery(query, hits);
  };
  const step = (by: 1 | -1) => {
    search();
    current = nextOf(current, by, hits.length);
    tell(query, hits.length, current);
    const hit = hits[current ?? -1];
    if (hit) onHit(hit);
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
  part('previous-hit', HTMLButtonElement).addEventListener('click', () => step(-1));
  part('next-hit', HTMLButtonElement).addEventListener('click', () => step(1));
  return { focus: () => field.select(), clear };
}

/** Round and round; undefined where there is none. */
function nextOf(current: number | undefined, by: 1 | -1, length: number): number | undefined {
  if (length === 0) return undefined;
  if (current === undefined) return by > 0 ? 0 : length - 1;
  return (current + by + length) % length;
}

function tell(query: string, length: number, current: number | undefined): void {
  const place = current === undefined ? '' : `${formatCount(current + 1)} of `;
  const words = length === 0 ? 'none' : `${place}${formatCount(length)}`;
  part('hits', HTMLOutputElement).textContent = query === '' ? '' : words;
  for (const id of ['previous-hit', 'next-hit']) part(id, HTMLButtonElement).disabled = length === 0;
}
