import { formatCount, plural } from '../src/cli/format.js';
import { describeDuration, describeWholeDuration, messagesToText } from '../src/commands/preview/text.js';
import { findRoot, type ShownTurn } from '../src/commands/preview/view-model.js';
import { button, element } from './dom.js';
import { renderShareBar, sumShares } from './share-chart.js';
import { listTokens } from './shares.js';

const PROMPT_CHARS = 160;

/** A turn in the list: its number, prompt, duration, and tokens to the scale of the session's largest turn. */
export function createTurnRow(turn: ShownTurn, most: number, onOpen: () => void): HTMLButtonElement {
  const { name, metadata, observations } = turn;
  const tokens = listTokens([turn]);
  const errors = observations.filter(({ level }) => level === 'ERROR').length;
  // Tab stops only at the open turn: after a thousand turns nobody would reach the rest of the page.
  const title = `${name}: ${formatCount(sumShares(tokens))} tokens`;
  const attributes = { class: 'turn-row', tabindex: -1, title };
  const row = button('', attributes, onOpen);
  row.append(
    element('span', { class: 'number' }, String(metadata.turn_number ?? '–')),
    element('span', { class: 'prompt' }, messagesToText(findRoot(turn)?.input).slice(0, PROMPT_CHARS) || name),
    element('span', { class: 'match-count' }),
    ...(errors > 0 ? [element('span', { class: 'errors', title: plural(errors, 'error') }, `✗ ${errors}`)] : []),
    element('span', { class: 'duration', title: describeWholeDuration(turn) || undefined }, describeDuration(turn)),
    renderShareBar(tokens, most),
  );
  return row;
}

export function setMatchCount(row: HTMLElement, count: number | undefined): void {
  const badge = row.querySelector('.match-count');
  if (badge) badge.textContent = count === undefined ? '' : String(count);
}
