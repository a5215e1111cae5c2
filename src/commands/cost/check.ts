import { formatMoment, plural, toOneLine } from '../../cli/format.js';
import { formatDollars, roundDollars } from '../../cli/format-cost.js';
import { cutToWidth, printJson, printStderr, printStdout, style, terminalWidth } from '../../cli/terminal.js';
import { wrapToWidth } from '../../cli/wrap.js';
import { listAllSteps } from '../../costs/account-steps.js';
import { type Agreement, checkAccounts, type Difference } from '../../costs/check-accounts.js';
import { type SessionUsage, STANDARD_PRICES } from '../../costs/session-usage.js';
import { choosePrices } from './price-source.js';
import { type CostRequest, describeNothing } from './request.js';

const INDENT = '  ';

type Check = ReturnType<typeof checkAccounts>;

/** Compares the accounts with the list prices, and shows where they agree and where not. */
export async function showCheck(
  sessions: readonly SessionUsage[],
  env: NodeJS.ProcessEnv,
  request: CostRequest,
): Promise<void> {
  const { since = 0, isJson } = request;
  const { findPrices, describe } = await choosePrices(sessions, env, true);
  const steps = listAllSteps(sessions).filter(({ at }) => at >= since);
  const check = checkAccounts(steps, findPrices);
  const source = describe(steps.map(({ model, at }) => ({ model, at, ...STANDARD_PRICES })));
  if (isJson) await printJson(toRecord(check, source));
  else if (steps.length === 0) printStderr(describeNothing('an account of its costs', request));
  else await printStdout(renderCheck(check, source).join('\n'));
}

/** Draws where the accounts agree with the list, and each difference with its cause. */
function renderCheck({ agreements, differences }: Check, source: string): string[] {
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

function toRecord({ agreements, differences }: Check, source: string) {
  return {
    agreements: agreements.map(({ model, steps, dollars }) => ({
      model,
      accountLines: steps,
      dollars: roundDollars(dollars),
    })),
    differences: differences.map(({ step: { session, at, model, dollars }, listDollars, cause }) => ({
      session: session.sessionId,
      at: new Date(at),
      model,
      dollars: roundDollars(dollars),
      listPriceDollars: listDollars === undefined ? undefined : roundDollars(listDollars),
      cause,
    })),
    prices: source,
  };
}
