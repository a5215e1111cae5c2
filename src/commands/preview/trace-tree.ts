import { column, terminalWidth } from '../../cli/columns.js';
import { style } from '../../cli/style.js';
import { count, elapsed, oneLine, things } from '../../cli/words.js';
import { rootOf, type ShownObservation, type ShownSession, type ShownTurn } from './session.js';
import { type TokenKind, tokensOf, totalOf } from './tokens.js';
import { type Branch, branchesOf, subtreeOf } from './tree.js';
import { summaryOf, turnsIn, wordsIn } from './words-said.js';

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
export function traceTree(session: ShownSession): string[] {
  const { sessionId, title, folder, turns } = session;
  const layout = layoutFor(terminalWidth());
  const tokens = totalOf(tokensOf(turns.flatMap(({ observations }) => observations)));
  const facts = [oneLine(folder ?? ''), turnsIn(session), tokens > 0 ? things(tokens, 'token') : ''];
  return [
    style(
      'bold',
      cut(`Session ${oneLine(sessionId)}${title === undefined ? '' : ` · ${oneLine(title)}`}`, layout.width),
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
  const branches = branchesOf(turn);
  return branches.flatMap((branch) => {
    const { observation } = branch;
    const below = indentBelow(branch);
    return [
      branchLine(branch, { branches, turn, layout }),
      ...(observation === rootOf(turn) ? conversation(turn, observation, below, layout) : []),
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
  const taken = totalOf(tokensOf(type === 'agent' ? subtreeOf(branches, branch) : [observation]));
  return [
    nameOf(branch, layout.name),
    style(COLOURS[type], barOf(observation, turn, layout.bar)),
    column(type === 'event' ? '' : elapsed(endTime - startTime), DURATION_COLUMNS, 'right'),
    taken > 0 ? style('dim', column(count(taken), TOKENS_COLUMNS, 'right')) : '',
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
  const text = `${MARKS[level]}${kind}${oneLine(name)} ${oneLine(summaryOf(observation))}`;
  const shown = column(text, Math.max(1, width - rails.length));
  const format = level === 'DEFAULT' ? (depth === 0 ? 'bold' : undefined) : LEVEL_COLOURS[level];
  return `${style('dim', rails)}${format ? style(format, shown) : shown} `;
}

/** A line whose place and length are those of the observation within its turn. */
function barOf({ startTime, endTime, type }: ShownObservation, turn: ShownTurn, columns: number): string {
  const scale = columns / Math.max(1, turn.endTime - turn.startTime);
  const length = Math.max(1, Math.round((endTime - startTime) * scale));
  const start = Math.min(Math.floor((startTime - turn.startTime) * scale), columns - length);
  const mark = type === 'event' ? '◆' : '━'.repeat(length);
  return column(`${' '.repeat(Math.max(0, start))}${mark}`, columns);
}

/** What was asked and answered, and the tokens by their kinds. */
function conversation(turn: ShownTurn, root: ShownObservation, below: string, layout: Layout): string[] {
  const tokens = tokensOf(turn.observations).map((each) => `${count(each.tokens)} ${TOKEN_WORDS[each.kind]}`);
  const lines = [
    ['user', wordsIn(root.input)],
    ['assistant', wordsIn(root.output)],
    ['tokens', tokens.join(' · ')],
  ] as const;
  return lines.flatMap(([who, words]) =>
    words === '' ? [] : [style('dim', cut(`${below}${column(who, 11)}${oneLine(words)}`, layout.width))],
  );
}

/** Why something is no plain success. */
function reason({ level, statusMessage }: ShownObservation, below: string, layout: Layout): string[] {
  if (level === 'DEFAULT' || !statusMessage) return [];
  const words = cut(oneLine(statusMessage), Math.max(1, layout.width - below.length));
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
  return column(text, width).trimEnd();
}
