import { formatCount, formatElapsed, plural } from '../src/cli/format.js';
import { findRoot, type ShownTurn } from '../src/commands/preview/session.js';
import { messagesText } from '../src/commands/preview/text.js';
import { countTokensByKind, totalTokens } from '../src/commands/preview/tokens.js';
import { button, element } from './dom.js';
import { tokenBar } from './token-chart.js';

const PROMPT_CHARS = 160;

/** A turn in the list: its number and prompt, how long it took, and its tokens beside the most that one took. */
export function turnRow(turn: ShownTurn, most: number, onOpen: () => void): HTMLButtonElement {
  const { name, metadata, startTime, endTime, observations } = turn;
  const tokens = countTokensByKind(observations);
  const errors = observations.filter(({ level }) => level === 'ERROR').length;
  // Of all turns one is reached by Tab, as in a tree: behind a thousand of them nobody would come to the rest.
  const attributes = { class: 'turn-row', tabindex: -1, title: `${name}: ${formatCount(totalTokens(tokens))} tokens` };
  const row = button('', attributes, onOpen);
  row.append(
    element('span', { class: 'number' }, String(metadata.turn_number ?? '–')),
    element('span', { class: 'prompt' }, messagesText(findRoot(turn)?.input).slice(0, PROMPT_CHARS) || name),
    element('span', { class: 'hit-count' }),
    ...(errors > 0 ? [element('span', { class: 'errors', title: plural(errors, 'error') }, `✗ ${errors}`)] : []),
    element('span', { class: 'took' }, formatElapsed(endTime - startTime)),
    tokenBar(tokens, most),
  );
  return row;
}

export function setHits(row: HTMLElement, hits: number | undefined): void {
  const badge = row.querySelector('.hit-count');
  if (badge) badge.textContent = hits === undefined ? '' : String(hits);
}
