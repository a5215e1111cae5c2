import { formatCount } from '../src/cli/format.js';
import { button, element } from './dom.js';

/** Longer texts are folded. */
const FOLDED_LINES = 14;
const FOLDED_CHARS = 1_600;
const MAX_MARKS = 400;

/** Shows a text with its matches marked. A long text is folded, unless the fold would hide every match. */
export function renderText(text: string, query: string, className = 'text'): HTMLElement {
  const shown = cutText(text);
  const isFound = query !== '' && text.toLowerCase().includes(query);
  const isFolded = shown.length < text.length && !(isFound && !shown.toLowerCase().includes(query));
  const body = element('pre', { class: className }, ...markMatches(isFolded ? shown : text, query));
  if (shown.length === text.length) return body;
  const view = element('div', { class: 'foldable' }, body);
  const toggle = button(chooseLabel(isFolded, text), { class: 'fold', 'aria-expanded': String(!isFolded) }, () => {
    const opens = toggle.getAttribute('aria-expanded') === 'false';
    body.replaceChildren(...markMatches(opens ? text : shown, query));
    toggle.textContent = chooseLabel(!opens, text);
    toggle.setAttribute('aria-expanded', String(opens));
  });
  view.append(toggle);
  return view;
}

function chooseLabel(isFolded: boolean, text: string): string {
  return isFolded ? `Show all ${formatCount(text.length)} characters` : 'Show less';
}

function cutText(text: string): string {
  let end = -1;
  for (let line = 0; line < FOLDED_LINES; line += 1) {
    end = text.indexOf('\n', end + 1);
    if (end < 0) break;
  }
  return text.slice(0, Math.min(end < 0 ? text.length : end, FOLDED_CHARS));
}

/** Marks where the query, which is in lower case, occurs in a text. */
export function markMatches(text: string, query: string): (string | HTMLElement)[] {
  const lower = query === '' ? '' : text.toLowerCase();
  // A few letters are longer in lower case, so that positions would not fit the text.
  if (query === '' || lower.length !== text.length) return [text];
  const parts: (string | HTMLElement)[] = [];
  let from = 0;
  for (let at = lower.indexOf(query); at >= 0 && parts.length < 2 * MAX_MARKS; at = lower.indexOf(query, from)) {
    parts.push(text.slice(from, at), element('mark', {}, text.slice(at, at + query.length)));
    from = at + query.length;
  }
  return [...parts, text.slice(from)];
}
