import { lexer, type MarkedToken, type Token, type Tokens } from 'marked';
import { renderDiff } from './diff-view.js';
import { element } from './dom.js';
import { includesQuery, markMatches, renderFolded, renderText } from './text-view.js';

/** marked takes quadratic time or worse in these. Longer texts are shown as plain text. */
const MAX_CHARS = 10_000;
const MAX_EMPHASIS_MARKS = 1_000;
const HAS_TOO_MANY_COLUMNS = /^(?:[^|\n]*\|){50}/m;

/** Deeper quotes, lists and emphasis are shown as they are: a browser takes long to lay them out. */
const MAX_DEPTH = 12;
const MARKDOWN_FOLD = { lines: 30, chars: 2_400 };

/** Draws a text that is Markdown. The page draws marked's tokens as elements, so no text can become markup. */
export function renderMarkdown(text: string, query: string): HTMLElement {
  if (isCostly(text)) return renderText(text, query);
  const draw = (shown: string) =>
    drawMarkdown(shown, query) ?? element('pre', { class: 'text' }, ...markMatches(shown, query));
  return renderFolded(text, query, draw, MARKDOWN_FOLD);
}

function isCostly(text: string): boolean {
  return (
    text.length > MAX_CHARS || text.split(/[*_]/).length > MAX_EMPHASIS_MARKS + 1 || HAS_TOO_MANY_COLUMNS.test(text)
  );
}

/** Draws nothing if only the marks of the text match the query, or if the text cannot be parsed. */
function drawMarkdown(text: string, query: string): HTMLElement | undefined {
  const tokens = parseMarkdown(text);
  if (!tokens) return undefined;
  const drawn = element('div', { class: 'markdown' }, ...renderBlocks(tokens, query, 0));
  const isLost = includesQuery(text, query) && drawn.querySelector('mark') === null;
  return isLost ? undefined : drawn;
}

/** For thousands of quotes or lists within each other, the stack is too small. */
function parseMarkdown(text: string): readonly Token[] | undefined {
  try {
    return lexer(text);
  } catch {
    return undefined;
  }
}

function renderBlocks(tokens: readonly Token[], query: string, depth: number): HTMLElement[] {
  return tokens
    .filter(({ type }) => type !== 'space')
    .map((token) => (depth > MAX_DEPTH ? renderRaw(token, query) : renderBlock(token as MarkedToken, query, depth)));
}

function renderBlock(token: MarkedToken, query: string, depth: number): HTMLElement {
  switch (token.type) {
    case 'paragraph':
    case 'text':
      return element('p', {}, ...renderSpans(token.tokens ?? [], query, depth));
    case 'heading':
      // The page has headings of its own.
      return element('p', { class: 'title', 'data-level': token.depth }, ...renderSpans(token.tokens, query, depth));
    case 'code':
      return renderCode(token, query);
    case 'blockquote':
      return element('blockquote', {}, ...renderBlocks(token.tokens, query, depth + 1));
    case 'list':
      return renderList(token, query, depth);
    case 'checkbox':
      return renderCheckbox(token);
    case 'table':
      return renderTable(token, query, depth);
    case 'hr':
      return element('hr');
    default:
      return renderRaw(token, query);
  }
}

/** Shows HTML, definitions of links and what is too deep as text. */
function renderRaw({ raw }: Token, query: string): HTMLElement {
  return element('p', {}, ...markMatches(raw.trimEnd(), query));
}

function renderCode({ lang, text }: Tokens.Code, query: string): HTMLElement {
  if (lang === 'diff') return renderDiff(text, query);
  return element('pre', { class: 'code', title: lang || undefined }, ...markMatches(text, query));
}

function renderList({ ordered, start, items }: Tokens.List, query: string, depth: number): HTMLElement {
  const drawn = items.map(({ tokens }) => element('li', {}, ...renderBlocks(tokens, query, depth + 1)));
  return ordered ? element('ol', { start }, ...drawn) : element('ul', {}, ...drawn);
}

function renderCheckbox({ checked }: Tokens.Checkbox): HTMLElement {
  return element('input', { type: 'checkbox', disabled: '', checked: checked ? '' : undefined });
}

function renderTable({ header, rows }: Tokens.Table, query: string, depth: number): HTMLElement {
  const lines = [header, ...rows].map((row) =>
    element(
      'tr',
      {},
      ...withoutFilling(row).map((cell) =>
        element(cell.header ? 'th' : 'td', {}, ...renderSpans(cell.tokens, query, depth)),
      ),
    ),
  );
  return element('div', { class: 'scrolled' }, element('table', {}, ...lines));
}

/** marked fills short rows, which may be thousands, with empty cells. */
function withoutFilling(row: readonly Tokens.TableCell[]): readonly Tokens.TableCell[] {
  return row.slice(0, row.findLastIndex(({ text }) => text !== '') + 1);
}

function renderSpans(tokens: readonly Token[], query: string, depth: number): (Node | string)[] {
  return tokens.flatMap((token) =>
    depth > MAX_DEPTH ? markMatches(token.raw, query) : renderSpan(token as MarkedToken, query, depth),
  );
}

/** Shows as it is: HTML, pictures, links that do not lead to the web, and text, whose `token.text` may be escaped. */
function renderSpan(token: MarkedToken, query: string, depth: number): Node | (Node | string)[] {
  switch (token.type) {
    case 'escape':
      return markMatches(token.text, query);
    case 'br':
      return ['\n'];
    case 'codespan':
      return element('code', {}, ...markMatches(token.text, query));
    case 'strong':
    case 'em':
      return element(token.type, {}, ...renderSpans(token.tokens, query, depth + 1));
    case 'del':
      return element('s', {}, ...renderSpans(token.tokens, query, depth + 1));
    case 'checkbox':
      return renderCheckbox(token);
    case 'link':
      return /^https?:\/\//i.test(token.href) ? renderLink(token, query, depth) : markMatches(token.raw, query);
    default:
      return markMatches(token.raw, query);
  }
}

/** Its address shows where it leads. */
function renderLink({ href, text, tokens }: Tokens.Link, query: string, depth: number): HTMLElement {
  const content = text.trim() === '' ? markMatches(href, query) : renderSpans(tokens, query, depth + 1);
  return element('a', { href, title: href, target: '_blank', rel: 'noopener noreferrer' }, ...content);
}
