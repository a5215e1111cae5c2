import { formatMoment, plural, toOneLine } from '../../cli/format.js';
import { formatDollars } from '../../cli/format-cost.js';
import { cutToWidth, style, terminalWidth } from '../../cli/terminal.js';
import { wrapToWidth } from '../../cli/wrap.js';
import type { Agreement, checkAccounts, Difference } from '../../costs/check-accounts.js';
import { round } from './records.js';

const INDENT = '  ';

type Check = ReturnType<typeof checkAccounts>;

/** Draws where the accounts agree with the list, and each difference with its cause. */
export function renderCheck({ agreements, differences }: Check, source: string): string[] {
  const width = Math.max(0, ...agreements.map(({ model }) => toOneLine(model).length));
  const agreeing = agreements.map((each) => describeAgreement(each, width));
  const differing = differences.flatMap(describeDifference);
  const head = `${plural(differences.length, 'account line')} ${differences.length === 1 ? 'differs' : 'differ'} from the list`;
  return [
    ...agreeing,
    ...(agreeing.length > 0 ? [''] : []),
    style('bold', head),
    ...differing,
    '',
    ...wrapToWidth(`prices: ${source}`).map((line) => style('dim', line)),
  ].map((line) => cutToWidth(line, terminalWidth()));
}

function describeAgreement({ model, steps, dollars }: Agreement, width: number): string {
  return `${toOneLine(model).padEnd(width)}  ${plural(steps, 'account line')}, ${formatDollars(dollars)}: as the list has it`;
}

function describeDifference({ step, listDollars, cause }: Difference): string[] {
  const { session, at, model, dollars } = step;
  const list = listDollars === undefined ? 'no list price' : `≈ ${formatDollars(listDollars)}, list price`;
  return [
    `${toOneLine(session.sessionId)}  ${formatMoment(at)}  ${toOneLine(model)}`,
    `  ${formatDollars(dollars)} in the account, ${list}`,
    ...wrapToWidth(`cause: ${cause}`, INDENT.length).map((line) => INDENT + line),
  ];
}

export function toCheckRecord({ agreements, differences }: Check, source: string) {
  return {
    agreements: agreements.map(({ model, steps, dollars }) => ({
      model,
      accountLines: steps,
      dollars: round(dollars),
    })),
    differences: differences.map(({ step: { session, at, model, dollars }, listDollars, cause }) => ({
      session: session.sessionId,
      at: new Date(at),
      model,
      dollars: round(dollars),
      listPriceDollars: listDollars === undefined ? undefined : round(listDollars),
      cause,
    })),
    prices: source,
  };
}
