import { formatCount, formatElapsed, plural, toOneLine } from '../../cli/format.js';
import { fitColumn, style, terminalWidth } from '../../cli/terminal.js';
import { findRoot, type ShownObservation, type ShownSession, type ShownTurn } from './session.js';
import { describeTurns, messagesText, summarize } from './text.js';
import { countTokensByKind, type TokenKind, totalTokens } from './tokens.js';
import { type Branch, buildTree, findSubtree } from './tree.js';

/** Where nobody tells how wide it is, and where it is too wide for an eye to follow a line. */
const USUAL_COLUMNS = 80;
const MOST_COLUMNS = 140;
const DURATION_COLUMNS = 8;
const TOKENS_COLUMNS = 9;

/** How the columns of a tree are divided: what it is, when and for how long, and what it took. */
interface Layout {
  readonly width: number;
  readonly name: number;
  readonly bar: number;
}

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

/** A session, its turns and what happened in them: as a tree, with bars to the scale of each turn. */
export function renderTree(session: ShownSession): string[] {
  const { sessionId, title, folder, turns } = session;
  const layout = layoutFor(terminalWidth());
  const tokens = totalTokens(countTokensByKind(turns.flatMap(({ observations }) => observations)));
  const facts = [toOneLine(folder ?? ''), describeTurns(session), tokens > 0 ? plural(tokens, 'token') : ''];
  return [
    style(
      'bold',
      cut(`Session ${toOneLine(sessionId)}${title === undefined ? '' : ` · ${toOneLine(title)}`}`, layout.width),
    ),
    style('dim', cut(facts.filter((fact) => fact !== '').join(' · '), layout.width)),
    ...turns.flatMap((turn) => ['', ...turnLines(turn, layout)]),
  ];
}

function layoutFor(columns: number): Layout {
  const width = Number.isFinite(columns) ? Math.min(columns, MOST_COLUMNS) : USUAL_COLUMNS;
  const bar = Math.max(6, Math.floor(width / 5));
  return { width, bar, name: Math.max(12, width - bar - DURATION_COLUMNS - TOKENS_COLUMNS - 1) };
}

function turnLines(turn: ShownTurn, layout: Layout): string[] {
  const branches = buildTree(turn);
  return branches.flatMap((branch) => {
    const { observation } = branch;
    const below = indentBelow(branch);
    return [
      branchLine(branch, { branches, turn, layout }),
      ...(observation === findRoot(turn) ? conversation(turn, observation, below, layout) : []),
      ...reason(observation, below, layout),
    ];
  });
}

function branchLine(
  branch: Branch,
  { branches, turn, layout }: { branches: readonly Branch[]; turn: ShownTurn; layout: Layout },
): string {
  const { observation } = branch;
  const { type, startTime, endTime } = observation;
  const taken = totalTokens(countTokensByKind(type === 'agent' ? findSubtree(branches, branch) : [observation]));
  return [
    nameOf(branch, layout.name),
    style(COLOURS[type], barOf(observation, turn, layout.bar)),
    fitColumn(type === 'event' ? '' : formatElapsed(endTime - startTime), DURATION_COLUMNS, 'right'),
    taken > 0 ? style('dim', fitColumn(formatCount(taken), TOKENS_COLUMNS, 'right')) : '',
  ]
    .join('')
    .trimEnd();
}

function nameOf(branch: Branch, width: number): string {
  const { observation, depth } = branch;
  const { type, name, level } = observation;
  const rails = railsOf(branch);
  // A turn and a model are known by their names.
  const kind = depth === 0 || type === 'generation' ? '' : `${type} `;
  const text = `${MARKS[level]}${kind}${toOneLine(name)} ${toOneLine(summarize(observation))}`;
  const shown = fitColumn(text, Math.max(1, width - rails.length));
  const format = level === 'DEFAULT' ? (depth === 0 ? 'bold' : undefined) : LEVEL_COLOURS[level];
  return `${style('dim', rails)}${format ? style(format, shown) : shown} `;
}

/** A line whose place and length are those of the observation within its turn. */
function barOf({ startTime, endTime, type }: ShownObservation, turn: ShownTurn, columns: number): string {
  const scale = columns / Math.max(1, turn.endTime - turn.startTime);
  const length = Math.max(1, Math.round((endTime - startTime) * scale));
  const start = Math.min(Math.floor((startTime - turn.startTime) * scale), columns - length);
  const mark = type === 'event' ? '◆' : '━'.repeat(length);
  return fitColumn(`${' '.repeat(Math.max(0, start))}${mark}`, columns);
}

/** What was asked and answered, and the tokens by their kinds. */
function conversation(turn: ShownTurn, root: ShownObservation, below: string, layout: Layout): string[] {
  const tokens = countTokensByKind(turn.observations).map(
    (each) => `${formatCount(each.tokens)} ${TOKEN_WORDS[each.kind]}`,
  );
  const lines = [
    ['user', messagesText(root.input)],
    ['assistant', messagesText(root.output)],
    ['tokens', tokens.join(' · ')],
  ] as const;
  return lines.flatMap(([who, words]) =>
    words === '' ? [] : [style('dim', cut(`${below}${fitColumn(who, 11)}${toOneLine(words)}`, layout.width))],
  );
}

/** Why something is no plain success. */
function reason({ level, statusMessage }: ShownObservation, below: string, layout: Layout): string[] {
  if (level === 'DEFAULT' || !statusMessage) return [];
  const words = cut(toOneLine(statusMessage), Math.max(1, layout.width - below.length));
  return [`${style('dim', below)}${style(LEVEL_COLOURS[level], words)}`];
}

function railsOf({ goesOn, depth }: Branch): string {
  return depth === 0 ? '' : `${indent(goesOn.slice(1, -1))}${goesOn.at(-1) ? '├─ ' : '└─ '}`;
}

function indentBelow({ goesOn, hasChildren }: Branch): string {
  return `${indent(goesOn.slice(1))}${hasChildren ? '│  ' : '   '}`;
}

function indent(levels: readonly boolean[]): string {
  return levels.map((isMore) => (isMore ? '│  ' : '   ')).join('');
}

function cut(text: string, width: number): string {
  return fitColumn(text, width).trimEnd();
}
