import { formatCount } from '../src/cli/format.js';
import { button, element } from './dom.js';

/** What is longer is shown in part until it is asked for. */
const FOLDED_LINES = 14;
const FOLDED_CHARS = 1_600;
const MOST_MARKS = 400;

/** A text as it stands, folded where it is long; what is searched for is marked, and never hidden by the fold. */
export function textView(text: string, query: string, className = 'text'): HTMLElement {
  const shown = beginningOf(text);
  const isFound = query !== '' && text.toLowerCase().includes(query);
  const isFolded = shown.length < text.length && !(isFound && !shown.toLowerCase().includes(query));
  const body = element('pre', { class: className }, ...marked(isFolded ? shown : text, query));
  if (shown.length === text.length) return body;
  const view = element('div', { class: 'foldable' }, body);
  const toggle = button(labelFor(isFolded, text), { class: 'fold', 'aria-expanded': String(!isFolded) }, () => {
    const isToOpen = toggle.getAttribute('aria-expanded') === 'false';
    body.replaceChildren(...marked(isToOpen ? text : shown, query));
    toggle.textContent = labelFor(!isToOpen, text);
    toggle.setAttribute('aria-expanded', String(isToOpen));
  });
  view.append(toggle);
  return view;
}

function labelFor(isFolded: boolean, text: string): string {
  return isFolded ? `Show all ${formatCount(text.length)} characters` : 'Show less';
}

function beginningOf(text: string): string {
  let end = -1;
  for (let line = 0; line < FOLDED_LINES; line += 1) {
    end = text.indexOf('\n', end + 1);
    if (end < 0) break;
  }
  return text.slice(0, Math.min(end < 0 ? text.length : end, FOLDED_CHARS));
}

/** The text, with what is searched for (in lower case) as marks. */
export function marked(text: string, query: string): (string | HTMLElement)[] {
  const lower = query === '' ? '' : text.toLowerCase();
  // Of a few letters the lower case is longer, and places in it are none in the text.
  if (query === '' || lower.length !== text.length) return [text];
  const parts: (string | HTMLElement)[] = [];
  let from = 0;
  for (let at = lower.indexOf(query); at >= 0 && parts.length < 2 * MOST_MARKS; at = lower.indexOf(query, from)) {
    parts.push(text.slice(from, at), element('mark', {}, text.slice(at, at + query.length)));
    from = at + query.length;
  }
  return [...parts, text.slice(from)];
}
