import { formatCount, plural, toOneLine } from '../../cli/format.js';
import { cutToWidth, drawBar, fitColumn, style, terminalWidth } from '../../cli/terminal.js';
import { PART_KINDS, type RequestPart, type ShownRequest } from './request.js';

const DEFAULT_COLUMNS = 80;
const MAX_COLUMNS = 140;
const SHARE_COLUMNS = 6;
const KIND_COLUMNS = 18;
const LABEL_COLUMNS = 28;

/** Shows who takes how much of a request: by kind, and then part by part in the order in which the model read them. */
export function renderRequest(shown: ShownRequest): string[] {
  const { turn, request, requests, model, tokens, missingMessages, hasSystem, parts } = shown;
  const columns = terminalWidth();
  const width = Number.isFinite(columns) ? Math.min(columns, MAX_COLUMNS) : DEFAULT_COLUMNS;
  const total = sumChars(parts);
  const facts = [model, tokens === undefined ? '' : plural(tokens, 'token'), plural(total, 'character')];
  return [
    style('bold', cutToWidth(`Turn ${turn}, request ${request} of ${requests}`, width)),
    style(
      'dim',
      cutToWidth(
        facts
          .map((fact) => toOneLine(fact ?? ''))
          .filter((fact) => fact !== '')
          .join(' · '),
        width,
      ),
    ),
    ...(hasSystem ? [] : ['the system prompt and the tools were not found in the transcript']),
    ...(missingMessages > 0 ? [`${plural(missingMessages, 'message')} not found in the transcript`] : []),
    '',
    ...renderKinds(parts, total, width),
    '',
    ...parts.map((part, index) => renderPart(part, parts[index - 1], total, width)),
  ];
}

function renderKinds(parts: readonly RequestPart[], total: number, width: number): string[] {
  const kinds = PART_KINDS.map((kind) => ({ kind, of: parts.filter((part) => part.kind === kind) }));
  const used = kinds.filter(({ of }) => of.length > 0);
  const counts = used.map(({ of }) => formatCount(sumChars(of)));
  const countColumns = Math.max(...counts.map((count) => count.length));
  const bar = Math.max(0, Math.min(24, width - KIND_COLUMNS - countColumns - SHARE_COLUMNS - 12));
  return used.map(({ kind, of }, index) => {
    const chars = sumChars(of);
    const drawn = drawBar(chars, total, bar);
    const figures = `${counts[index]?.padStart(countColumns)}${formatShare(chars, total)}`;
    const line = `${kind.padEnd(KIND_COLUMNS)} ${formatCount(of.length).padStart(5)} × ${figures}  `;
    return `${cutToWidth(line, width)}${bar > 0 ? `  ${style('cyan', drawn)}` : ''}`.trimEnd();
  });
}

function renderPart(part: RequestPart, before: RequestPart | undefined, total: number, width: number): string {
  const { kind, message, name, chars, text } = part;
  const number = message === undefined || message === before?.message ? '' : String(message);
  const label = fitColumn(`${kind}${name === undefined ? '' : ` ${toOneLine(name)}`}`, LABEL_COLUMNS);
  const figures = `${formatCount(chars).padStart(9)}${formatShare(chars, total)}`;
  return cutToWidth(`${number.padStart(4)}  ${label} ${figures}  ${toOneLine(text.slice(0, width * 2))}`, width);
}

function formatShare(chars: number, total: number): string {
  const percent = (chars / Math.max(1, total)) * 100;
  return (percent > 0 && percent < 1 ? '<1%' : `${Math.round(percent)}%`).padStart(SHARE_COLUMNS);
}

function sumChars(parts: readonly RequestPart[]): number {
  return parts.reduce((sum, { chars }) => sum + chars, 0);
}
