import { count } from '../../terminal/words.js';
import { part } from './dom.js';
import type { Hit } from './search-index.js';

interface SearchTools {
  /** The hits of a query, which is in lower case. */
  readonly find: (query: string) => readonly Hit[];
  /** Told of the query and its hits as it is typed. */
  readonly onQuery: (query: string, hits: readonly Hit[]) => void;
  readonly onHit: (hit: Hit) => void;
  readonly onLeave: () => void;
}

/** A pause in typing after which is searched. */
const PAUSE_MS = 120;

/** The field for what is searched for: Enter moves to the next hit, Shift and Enter to the one before. */
export function searchBox({ find, onQuery, onHit, onLeave }: SearchTools): { focus(): void; clear(): boolean } {
  const field = part('query', HTMLInputElement);
  const told = part('hits', HTMLOutputElement);
  const steps = [
    [part('previous-hit', HTMLButtonElement), -1],
    [part('next-hit', HTMLButtonElement), 1],
  ] as const;
  let query = '';
  let hits: readonly Hit[] = [];
  let current = -1;
  let pause = 0;
  const tell = () => {
    const place = current < 0 ? count(hits.length) : `${count(current + 1)} of ${count(hits.length)}`;
    told.textContent = query === '' ? '' : hits.length === 0 ? 'none' : place;
    for (const [button] of steps) button.disabled = hits.length === 0;
  };
  const search = () => {
    clearTimeout(pause);
    const wanted = field.value.trim().toLowerCase();
    if (wanted === query) return;
    query = wanted;
    hits = find(query);
    current = -1;
    tell();
    onQuery(query, hits);
  };
  const step = (by: number) => {
    search();
    if (hits.length === 0) return;
    current = current < 0 && by < 0 ? hits.length - 1 : (current + by + hits.length) % hits.length;
    const hit = hits[current];
    tell();
    if (hit) onHit(hit);
  };
  const clear = () => {
    if (field.value === '') return false;
    field.value = '';
    search();
    return true;
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
  for (const [button, by] of steps) button.addEventListener('click', () => step(by));
  return { focus: () => field.select(), clear };
}
