import { plural, toOneLine } from '../../cli/format.js';
import { fitColumn, style } from '../../cli/terminal.js';
import { wrapToWidth } from '../../cli/wrap.js';
import { version } from '../../shared/version.js';
import { type Finding, joinFaults, type Part } from './finding.js';

const MARKS = { ok: '✓', warning: '!', broken: '✗', none: '-' } as const;
const COLOURS = { ok: 'green', warning: 'yellow', broken: 'red', none: 'dim' } as const;
const NAME_COLUMNS = 16;
const INDENT = 4 + NAME_COLUMNS;

/** The report for a person: each finding on a line of its own, its fix below it, and a summary at the end. */
export function formatReport(found: readonly Part[], home: string): string[] {
  const causes = new Map<string, string>();
  const parts = found.map(({ title, findings }) => ({ title, findings: joinFaults(findings, causes) }));
  const lines = parts.flatMap(({ title, findings }) => [
    style('bold', title),
    ...findings.flatMap((finding) => formatFinding(finding, home)),
    '',
  ]);
  return [...lines, summarize(parts)];
}

function formatFinding({ name, status, message, fix }: Finding, home: string): string[] {
  const head = `  ${style(COLOURS[status], MARKS[status])} ${fitColumn(name, NAME_COLUMNS)}`;
  const [first = '', ...rest] = wrapText(message, home, INDENT);
  const fixLines = fix === undefined ? [] : wrapText(fix, home, INDENT);
  return [
    head + first,
    ...rest.map((line) => ' '.repeat(INDENT) + line),
    ...fixLines.map((line, place) => `${' '.repeat(INDENT - 2)}${place === 0 ? style('cyan', '→') : ' '} ${line}`),
  ];
}

/** Wraps a line, with `~` for the home folder. */
export function wrapText(text: string, home: string, indent: number): string[] {
  // After a quote a shell would take `~` literally.
  const withTilde = (path: string, offset: number) => (text[offset - 1] === "'" ? path : '~/');
  return wrapToWidth(toOneLine(home === '' ? text : text.replaceAll(`${home}/`, withTilde)), indent);
}

function summarize(parts: readonly Part[]): string {
  const statuses = parts.flatMap(({ findings }) => findings.map(({ status }) => status));
  const broken = statuses.filter((status) => status === 'broken').length;
  const warnings = statuses.filter((status) => status === 'warning').length;
  const summary = broken > 0 ? `${plural(broken, 'thing')} ${broken === 1 ? 'is' : 'are'} broken` : 'Nothing is broken';
  return style(broken > 0 ? 'red' : 'green', `${summary}${warnings > 0 ? `, ${plural(warnings, 'warning')}` : ''}.`);
}

export function buildJsonReport(parts: readonly Part[]) {
  const checks = parts.flatMap(({ title, findings }) =>
    findings.map(({ name, ...rest }) => ({ name, part: title.toLowerCase(), ...rest })),
  );
  return { ok: isHealthy(parts), version, checks };
}

export function isHealthy(parts: readonly Part[]): boolean {
  return !parts.some(({ findings }) => findings.some(({ status }) => status === 'broken'));
}
