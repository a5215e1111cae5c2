import { formatCount } from '../src/cli/format.js';
import { button, element } from './dom.js';

/** Longer texts are folded. */
interface Fold {
  readonly lines: number;
  readonly chars: number;
}

const TEXT_FOLD: Fold = { lines: 14, chars: 1_600 };
const MAX_MARKS = 400;

export function renderText(text: string, query: string, className = 'text'): HTMLElement {
  return renderFolded(text, query, (shown) => element('pre', { class: className }, ...markMatches(shown, query)));
}

/** Shows a text as `draw` draws it. A long text is folded, unless the fold would hide every match. */
export function renderFolded(
  text: string,
  query: string,
  draw: (shown: string) => HTMLElement,
  fold = TEXT_FOLD,
): HTMLElement {
  const start = cutText(text, fold);
  if (start.length === text.length) return draw(text);
  const isHidden = includesQuery(text, query) && !includesQuery(start, query);
  const view = element('div', { class: 'foldable' });
  const show = (isFolded: boolean) => {
    const label = isFolded ? `Show all ${formatCount(text.length)} characters` : 'Show less';
    const toggle = button(label, { class: 'fold', 'aria-expanded': String(!isFolded) }, () => {
      show(!isFolded);
      view.querySelector('button')?.focus();
    });
    view.replaceChildren(draw(isFolded ? start : text), toggle);
  };
  show(!isHidden);
  return view;
}

function cutText(text: string, { lines, chars }: Fold): string {
  let end = -1;
  for (let line = 0; line < lines; line += 1) {
    end = text.indexOf('\n', end + 1);
    if (end < 0) break;
  }
  return text.slice(0, Math.min(end < 0 ? text.length : end, chars));
}

/** Whether the query, which is in lower case, occurs in a text. */
export function includesQuery(text: string, query: string): boolean {
  return query !== '' && text.toLowerCase().includes(query);
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
