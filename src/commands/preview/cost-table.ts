import { drawColumns } from '../../cli/columns.js';
import { formatCount, formatDuration, formatMoment, plural, toOneLine } from '../../cli/format.js';
import { formatCosts, formatDollars, roundDollars, toCostRecord } from '../../cli/format-cost.js';
import { cutToWidth, style, terminalWidth } from '../../cli/terminal.js';
import type { CacheLoss, ContextCosts, PartCosts } from '../../costs/context-costs.js';

/** Within the 5 minutes that the cache lives at least, a pause explains nothing. */
const SHORT_PAUSE_MS = 4 * 60_000;
const MOST_LOSSES = 10;

/** Shows what filled the context of a session and what that cost, and where the cache was lost. */
export function renderCost({ sessionId, costs, parts, losses }: ContextCosts): string[] {
  const names = ['what filled the context', ...parts.map(({ name }) => toOneLine(name))];
  const column = (heading: string, show: (part: PartCosts) => string) => ({ heading, cells: parts.map(show) });
  const dollars = (value: number) => (value === 0 ? '' : formatDollars(value));
  const { lines } = drawColumns(
    names,
    [
      column('at the end', ({ inContext }) => (inContext === 0 ? '' : formatCount(inContext))),
      column('dollars', (part) => formatCosts(part.costs)),
      column('sent', ({ sent }) => dollars(sent)),
      column('read again', ({ readAgain }) => dollars(readAgain)),
      column('written', ({ written }) => dollars(written)),
    ],
    { minNameColumns: 'what filled the context'.length },
  );
  const [heading = '', ...rows] = lines.map((line) => line.trimEnd());
  return [
    style('bold', cutToWidth(`Session ${toOneLine(sessionId)}  ${formatCosts(costs)}`, terminalWidth())),
    '',
    style('bold', heading),
    ...rows,
    style('dim', cutToWidth('the parts share the dollars by what their tokens cost at list prices', terminalWidth())),
    '',
    ...describeLosses(losses).map((line) => cutToWidth(line, terminalWidth())),
  ];
}

function describeLosses(losses: readonly CacheLoss[]): string[] {
  if (losses.length === 0) return ['the cache was never lost'];
  const dollars = losses.reduce((sum, loss) => sum + (loss.dollars ?? 0), 0);
  const largest = losses.toSorted((a, b) => b.tokens - a.tokens).slice(0, MOST_LOSSES);
  const more = losses.length - largest.length;
  return [
    style(
      'bold',
      `the cache was lost ${plural(losses.length, 'time')}: ≈ ${formatDollars(dollars)} more than reading it`,
    ),
    ...largest.flatMap(({ at, turn, agent, tokens, dollars: cost, ...why }) => {
      const who = agent === '' ? `turn ${turn}` : `turn ${turn}, ${toOneLine(agent)}`;
      const price = cost === undefined ? '?' : `≈${formatDollars(cost)}`;
      return [`  ${formatMoment(at)}  ${plural(tokens, 'token')}  ${price}  ${who}`, `    ${explainLoss(why)}`];
    }),
    ...(more > 0 ? [`  and ${more} smaller ones`] : []),
  ];
}

function explainLoss({ pause, isOtherModel }: Pick<CacheLoss, 'pause' | 'isOtherModel'>): string {
  if (isOtherModel) return 'another model answered';
  if (pause >= SHORT_PAUSE_MS) return `after a pause of ${formatDuration(pause)}`;
  return 'the start of the request had changed, or the cache had expired early';
}

/** `sentDollars`, `readAgainDollars` and `writtenDollars` add up to the other dollars. */
export function toRecord({ sessionId, costs, parts, losses }: ContextCosts) {
  return {
    sessionId,
    ...toCostRecord(costs),
    parts: parts.map(({ name, inContext, costs: own, sent, readAgain, written }) => ({
      part: name,
      tokensAtTheEnd: inContext,
      ...toCostRecord(own),
      sentDollars: roundDollars(sent),
      readAgainDollars: roundDollars(readAgain),
      writtenDollars: roundDollars(written),
    })),
    cacheLosses: losses.map(({ at, turn, agent, tokens, dollars, pause, isOtherModel }) => ({
      at: new Date(at),
      turn,
      agent: agent === '' ? undefined : agent,
      tokens,
      listPriceDollars: dollars === undefined ? undefined : roundDollars(dollars),
      pauseMs: pause,
      otherModel: isOtherModel,
    })),
  };
}
