import { wrapAnsi } from 'fast-wrap-ansi';
import { plural, toOneLine } from '../../cli/format.js';
import { fitColumn, style, terminalWidth } from '../../cli/terminal.js';
import type { Finding, Part } from './finding.js';

type Status = Finding['status'];

const MARKS: { readonly [status in Status]: string } = { ok: '✓', warning: '!', broken: '✗', none: '-' };
const COLOURS = { ok: 'green', warning: 'yellow', broken: 'red', none: 'dim' } as const;
const NAME_COLUMNS = 16;
const INDENT = 4 + NAME_COLUMNS;

/** What a person is told: each finding on a line of its own, below it what mends it, and in the end the sum. */
export function doctorLines(parts: readonly Part[], home: string): string[] {
  const findings = parts.flatMap((part) => part.findings);
  return [
    ...parts.flatMap((part) => [
      style('bold', part.title),
      ...part.findings.flatMap((finding) => linesOf(finding, home)),
      '',
    ]),
    sumOf(findings),
  ];
}

function linesOf(finding: Finding, home: string): string[] {
  const { name, status, message } = finding;
  const head = `  ${style(COLOURS[status], MARKS[status])} ${fitColumn(name, NAME_COLUMNS)}`;
  const [first = '', ...rest] = wrapped(message, home);
  const remedy = 'fix' in finding ? wrapped(finding.fix, home) : [];
  return [
    head + first,
    ...rest.map((line) => ' '.repeat(INDENT) + line),
    ...remedy.map((line, place) => `${' '.repeat(INDENT - 2)}${place === 0 ? style('cyan', '→') : ' '} ${line}`),
  ];
}

/** A path or an address that is longer than a line is left whole: it is there to be copied. */
function wrapped(text: string, home: string): string[] {
  const short = toOneLine(home === '' ? text : withTilde(text, home));
  const width = terminalWidth() - INDENT;
  return Number.isFinite(width) ? wrapAnsi(short, Math.max(width, INDENT), { trim: true }).split('\n') : [short];
}

/** Not behind a quote, where a shell would take the `~` for a name. */
function withTilde(text: string, home: string): string {
  return text.replaceAll(`${home}/`, (path, offset: number) => (text[offset - 1] === "'" ? path : '~/'));
}

function sumOf(findings: readonly Finding[]): string {
  const count = (wanted: Status) => findings.filter(({ status }) => status === wanted).length;
  const [brokenOnes, warnings] = [count('broken'), count('warning')];
  const told = [
    ...(brokenOnes > 0
      ? [`${plural(brokenOnes, 'thing')} ${brokenOnes === 1 ? 'is' : 'are'} broken`]
      : ['Nothing is broken']),
    ...(warnings > 0 ? [`${plural(warnings, 'thing')} to look at`] : []),
  ];
  return style(brokenOnes > 0 ? 'red' : 'green', `${told.join(', ')}.`);
}

/** What a script is told. */
export function documentOf(parts: readonly Part[]) {
  return {
    ok: isWell(parts),
    checks: parts.flatMap(({ title, findings }) =>
      findings.map((finding) => ({
        name: finding.name,
        part: title.toLowerCase(),
        status: finding.status,
        message: finding.message,
        fix: 'fix' in finding ? finding.fix : undefined,
        details: finding.details,
      })),
    ),
  };
}

export function isWell(parts: readonly Part[]): boolean {
  return parts.every(({ findings }) => findings.every(({ status }) => status !== 'broken'));
}
