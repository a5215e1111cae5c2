import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type GroupName, groupCosts, needsCauses, parseGrouping } from '../../../src/commands/cost/grouping.js';
import { nameRow } from '../../../src/commands/cost/table.js';
import { addUpCosts, type Costs } from '../../../src/costs/cost-book.js';
import { findPrices } from '../../../src/costs/list-prices.js';
import { readAllUsage } from '../../../src/costs/read-usage.js';
import { type Recording, recording, recordings } from '../../support/recording.js';
import { removeFolder } from '../../support/remove-folder.js';

let state: string;

beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'cc-langfuse-costs-'));
});

afterEach(() => removeFolder(state));

function groupBy(by: GroupName, { folder }: Recording) {
  const sessions = readAllUsage(folder, state, { withCauses: needsCauses(by) });
  return groupCosts(by, sessions, findPrices, 0);
}

const CAUSES: readonly GroupName[] = ['agent', 'skill', 'command', 'prompt', 'tool', 'mcp'];
const OTHERS: readonly GroupName[] = ['day', 'project', 'model', 'repository', 'branch'];

test('costs can be added up by anything else', () => {
  expect(() => parseGrouping('')).toThrow(
    [...OTHERS.slice(0, 2), 'session', ...OTHERS.slice(2), ...CAUSES.slice(0, -1)].join(', '),
  );
});

/** What a sum must not lose; rounding errors of a sum are far below. */
const toFigures = ({ dollars, listDollars, cacheSaved, ...counts }: Costs) => ({
  ...counts,
  dollars: dollars.toFixed(10),
  listDollars: listDollars.toFixed(10),
  cacheSaved: cacheSaved.toFixed(10),
});

describe('whatever they are added up by, the rows and their total equal those of the sessions', () => {
  test.each(recordings())('in $name', (each) => {
    const figures = toFigures(groupBy('session', each).total);
    for (const by of ['session', ...OTHERS, ...CAUSES] as const) {
      const { rows, total } = groupBy(by, each);
      const added = addUpCosts(rows.map(({ costs }) => costs));
      expect({ by, total: toFigures(total), added: toFigures(added) }).toEqual({ by, total: figures, added: figures });
    }
  });
});

/** Each row in dollars of the account. */
function dollarsBy(by: GroupName, each: Recording): { [key: string]: string } {
  return Object.fromEntries(groupBy(by, each).rows.map(({ key, costs }) => [key, costs.dollars.toFixed(9)]));
}

describe('a cause costs its tokens at the prices that the account was kept with', () => {
  test.each([
    ['p-agentfg', 'agent', { '(main thread)': '0.010029360', 'general-purpose': '0.013922040' }],
    // The compaction has no response.
    ['q-compact', 'agent', { '(main thread)': '0.020495420', '(Claude Code itself)': '0.005110820' }],
    ['r-mcp', 'mcp', { '(no MCP server)': '0.020217340', lab: '0.009968420' }],
    [
      'i-slash',
      'skill',
      {
        '(no skill)': '0.015845720',
        myskill: '0.010362880',
        mycmd: '0.005162960',
        '(Claude Code itself)': '0.005199920',
      },
    ],
    [
      'i-slash',
      'command',
      {
        '(no command)': '0.021036400',
        '/myskill': '0.005172200',
        '/mycmd': '0.005162960',
        '(Claude Code itself)': '0.005199920',
      },
    ],
  ] as const)('in %s, by %s', (name, by, expected) => {
    expect(dollarsBy(by, recording(name))).toEqual(expected);
  });

  test('and a prompt that of its turn, the most expensive first', () => {
    const { rows } = groupBy('prompt', recording('i-slash'));
    expect(rows.map(({ turn, costs: { dollars } }) => [turn, dollars.toFixed(9)])).toEqual([
      [5, '0.010552740'],
      [4, '0.005445440'],
      [undefined, '0.005199920'],
      [3, '0.005172200'],
      [2, '0.005162960'],
      [1, '0.005038220'],
    ]);
  });
});

test('the name of a file does not control the terminal', () => {
  const [row] = groupBy('prompt', recording('i-slash')).rows;
  if (!row) throw new Error('there is no prompt');
  const named = { ...row, session: { ...row.session, sessionId: '\u001b[2Jabc' } };
  expect(nameRow('prompt', named)).toMatch(/^abc turn 5 /);
});
