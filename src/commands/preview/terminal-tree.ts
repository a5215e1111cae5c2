import { formatCount, formatElapsed, plural, toOneLine } from '../../cli/format.js';
import { formatDollars } from '../../cli/format-cost.js';
import { cutToWidth, fitColumn, style, terminalWidth } from '../../cli/terminal.js';
import type { TokenKind } from '../../transcript/file/token-kinds.js';
import {
  describeCost,
  describeDuration,
  describeOutcome,
  describeTurns,
  describeWholeDuration,
  describeWork,
  messagesToText,
  summarize,
} from './text.js';
import {
  type Branch,
  buildTree,
  countTokensByKind,
  findRoot,
  type ShownObservation,
  type ShownSession,
  type ShownTurn,
  totalTokens,
} from './view-model.js';

/** Without a terminal, the usual width; in a very wide one, still narrow enough for the eye to follow a line. */
const DEFAULT_COLUMNS = 80;
const MAX_COLUMNS = 140;
const DURATION_COLUMNS = 8;
const TOKENS_COLUMNS = 9;

const COLOURS = { agent: 'cyan', generation: 'magenta', tool: 'blue', event: 'gray' } as const;
const MARKS = { DEFAULT: '', WARNING: '! ', ERROR: '✗ ' } as const;
const LEVEL_COLOURS = { WARNING: 'yellow', ERROR: 'red' } as const;

const TOKEN_WORDS: { readonly [kind in TokenKind]: string } = {
  input: 'in',
  cache_read_input_tokens: 'cached',
  cache_creation_input_tokens: 'written',
  input_cache_creation_5m: 'written 5m',
  input_cache_creation_1h: 'written 1h',
  output: 'out',
};

/** Draws a session as a tree, with bars to the scale of each turn. */
export function renderTree(session: ShownSession): string[] {
  const { sessionId, title, folder = '', turns } = session;
  const layout = chooseLayout(terminalWidth());
  const tokens = totalTokens(countTokensByKind(turns.flatMap(({ observations }) => observations)));
  const heading = `Session ${toOneLine(sessionId)}${title === undefined ? '' : ` · ${toOneLine(title)}`}`;
  const facts = [
    toOneLine(folder),
    describeTurns(session),
    tokens > 0 ? plural(tokens, 'token') : '',
    describeCost(session),
  ];
  return [
    style('bold', cutToWidth(heading, layout.width)),
    style('dim', cutToWidth(facts.filter((fact) => fact !== '').join(' · '), layout.width)),
    ...turns.flatMap((turn) => ['', ...renderTurn(turn, layout)]),
  ];
}

type Layout = ReturnType<typeof chooseLayout>;

/** The columns of the tree: name, bar, duration, tokens. */
function chooseLayout(columns: number) {
  const width = Number.isFinite(columns) ? Math.min(columns, MAX_COLUMNS) : DEFAULT_COLUMNS;
  const bar = Math.max(6, Math.floor(width / 5));
  return { width, bar, name: Math.max(12, width - bar - DURATION_COLUMNS - TOKENS_COLUMNS - 1) };
}

function renderTurn(turn: ShownTurn, layout: Layout): string[] {
  const root = findRoot(turn);
  return buildTree(turn).flatMap((branch) => {
    const { observation, hasNext, hasChildren } = branch;
    const rails = `${drawRails(hasNext.slice(1))}${hasChildren ? '│  ' : '   '}`;
    return [
      renderBranch(branch, turn, layout),
      ...(observation === root ? renderConversation(turn, observation, rails, layout) : []),
      ...renderReason(observation, rails, layout),
    ];
  });
}

function renderBranch(branch: Branch, turn: ShownTurn, layout: Layout): string {
  const { observation, tokens } = branch;
  const { type, startTime, endTime } = observation;
  const columns = [
    renderName(branch, layout.name),
    style(COLOURS[type], renderBar(observation, turn, layout.bar)),
    fitColumn(type === 'event' ? '' : formatElapsed(endTime - startTime), DURATION_COLUMNS, 'right'),
    tokens > 0 ? style('dim', fitColumn(formatCount(tokens), TOKENS_COLUMNS, 'right')) : '',
  ];
  return columns.join('').trimEnd();
}

function renderName({ observation, depth, hasNext }: Branch, width: number): string {
  const { type, name, level } = observation;
  const rails = depth === 0 ? '' : `${drawRails(hasNext.slice(1, -1))}${hasNext.at(-1) ? '├─ ' : '└─ '}`;
  // Turns and models are recognised by their names alone.
  const kind = depth === 0 || type === 'generation' ? '' : `${type} `;
  const outcome = depth === 0 ? '' : describeOutcome(observation);
  const about = `${outcome === '' ? '' : `(${outcome}) `}${summarize(observation)}`;
  const text = `${MARKS[level]}${kind}${toOneLine(name)} ${toOneLine(about)}`;
  const shown = fitColumn(text, Math.max(1, width - rails.length));
  const usual = depth === 0 ? 'bold' : [];
  return `${style('dim', rails)}${style(level === 'DEFAULT' ? usual : LEVEL_COLOURS[level], shown)} `;
}

function renderBar({ startTime, endTime, type }: ShownObservation, turn: ShownTurn, columns: number): string {
  const scale = columns / Math.max(1, turn.endTime - turn.startTime);
  const length = Math.max(1, Math.round((endTime - startTime) * scale));
  const start = Math.min(Math.floor((startTime - turn.startTime) * scale), columns - length);
  const mark = type === 'event' ? '◆' : '━'.repeat(length);
  return fitColumn(`${' '.repeat(Math.max(0, start))}${mark}`, columns);
}

function renderConversation(turn: ShownTurn, root: ShownObservation, rails: string, { width }: Layout): string[] {
  const tokens = countTokensByKind(turn.observations);
  const whole = describeWholeDuration(turn);
  const lines = {
    user: messagesToText(root.input),
    assistant: messagesToText(root.output),
    tokens: tokens.map((each) => `${formatCount(each.tokens)} ${TOKEN_WORDS[each.kind]}`).join(' · '),
    cost: turn.dollars === undefined ? '' : formatDollars(turn.dollars),
    work: describeWork(root),
    time: whole === '' ? '' : `${describeDuration(turn)}, ${whole}`,
  };
  return Object.entries(lines)
    .filter(([, text]) => text !== '')
    .map(([name, text]) => style('dim', cutToWidth(`${rails}${fitColumn(name, 11)}${toOneLine(text)}`, width)));
}

function renderReason({ level, statusMessage }: ShownObservation, rails: string, { width }: Layout): string[] {
  if (level === 'DEFAULT' || !statusMessage) return [];
  const reason = cutToWidth(toOneLine(statusMessage), Math.max(1, width - rails.length));
  return [`${style('dim', rails)}${style(LEVEL_COLOURS[level], reason)}`];
}

function drawRails(levels: readonly boolean[]): string {
  return levels.map((hasNext) => (hasNext ? '│  ' : '   ')).join('');
}
