import { describe, expect, test } from 'vitest';
import { buildScores, type Score } from '../../../src/langfuse/scores.lazy.js';
import { computeScores } from '../../../src/observations/build/scores.js';
import { buildTurn } from '../../../src/observations/build/turn.js';
import type { Turn } from '../../../src/transcript/turns/turn.js';
import { assistant, at, groupTurns, SESSION, toolResult, toolUse, user } from '../../support/lines.js';
import { recording, transcriptsOf } from '../../support/recording.js';
import { OPTIONS, turnsOf } from '../../support/traces.js';

function scoresOf(turn: Turn | undefined, options: Partial<typeof OPTIONS> = {}): Score[] {
  if (!turn) throw new Error('no turn');
  return buildScores(computeScores(turn, buildTurn(turn, { ...OPTIONS, ...options, sessionId: SESSION }).root));
}

const valuesOf = (scores: readonly Score[]) => Object.fromEntries(scores.map(({ name, value }) => [name, value]));
const scoreLines = (...lines: object[]) => valuesOf(scoresOf(groupTurns(lines).all[0]));
const SIMPLE = [user('go', { uuid: 'u', timestamp: at(0) }), assistant('m', 'done', { timestamp: at(2) })];

/** Returns how many lines one call added and removed. */
function changedBy(name: string, input: object, toolUseResult?: unknown, isError = false) {
  const lines = [
    assistant('m', [toolUse('t', name, input)]),
    user([toolResult('t', 'ok', { is_error: isError })], { toolUseResult }),
  ];
  const { lines_added, lines_removed } = scoreLines(user('go'), ...lines);
  return [lines_added, lines_removed];
}

describe('the scores of a turn', () => {
  test.each([
    ['p-toolloop', { tool_error_rate: 4 / 9, lines_added: 3, lines_removed: 1 }],
    ['v1.0.128-toolloop', { tool_error_rate: 1 / 9, lines_added: 3, lines_removed: 1 }],
    ['i-interrupt', { lines_added: 0, lines_removed: 0 }],
    ['q-bashedit', { tool_error_rate: 0, lines_added: 1, lines_removed: 1 }],
  ])('are right for the recording %s', (name, expected) => {
    const [first] = transcriptsOf(recording(name)).flatMap((path) => turnsOf(path));
    expect(valuesOf(scoresOf(first))).toEqual(expected);
  });

  test('are dated later if the turn has grown without a later time, so that the new values replace the old ones', () => {
    const timestamp = '2025-01-15T23:59:59.999Z';
    const call = [user('go', { uuid: 'u', timestamp }), assistant('m', [toolUse('t', 'Bash')], { timestamp })];
    const result = (is_error: boolean) => user([toolResult('t', 'no', { is_error })], { timestamp });
    const write = [assistant('n', [toolUse('w', 'Write', { content: 'a' })], { timestamp })];
    const written = user([toolResult('w', 'ok')], { timestamp, toolUseResult: { type: 'create' } });
    const grown = [call, [...call, result(true)], [...call, result(true), ...write]];
    const turns = [...grown, [...call, result(true), ...write, written]].flatMap((lines) => groupTurns(lines).all);
    const all = turns.map((turn) => computeScores(turn, buildTurn(turn, { ...OPTIONS, sessionId: SESSION }).root));
    const first = Date.parse('2025-01-15T23:58:59.999Z');
    expect(all.map(({ endTime = 0 }) => endTime - first)).toEqual([1, 2, 3, 4]);
    expect(new Set(all.map(({ figures }) => JSON.stringify(figures))).size).toBe(4);
  });

  test('include no tool_error_rate if no tool was used', () => {
    expect(scoreLines(...SIMPLE)).toEqual({ lines_added: 0, lines_removed: 0 });
  });
});

describe('the lines that a call changed', () => {
  const patch = (...lines: string[]) => ({ structuredPatch: [{ oldStart: 1, lines }] });
  test.each([
    [
      'in a patch',
      'Edit',
      { old_string: 'x', new_string: 'y' },
      patch(' a', '-b', '+c', '+d', '\\ No newline'),
      [2, 1],
    ],
    [
      'in a patch of several places',
      'MultiEdit',
      {},
      { structuredPatch: [{ lines: ['-a'] }, { lines: ['+b'] }] },
      [1, 1],
    ],
    ['in a new file', 'Write', { content: 'a\nb\n' }, { type: 'create', structuredPatch: [] }, [2, 0]],
    [
      'in a file that is written unchanged',
      'Write',
      { content: 'a\nb\n' },
      { type: 'update', structuredPatch: [] },
      [0, 0],
    ],
    ['in an edit without a patch', 'Edit', { old_string: 'a\nb\nc', new_string: 'a\nB\nB\nc' }, undefined, [2, 1]],
    ['in an edit that only removes', 'Edit', { old_string: 'a\n', new_string: '' }, undefined, [0, 1]],
    [
      'in an edit that removes one of two equal lines',
      'Edit',
      { old_string: 'a\na', new_string: 'a' },
      undefined,
      [0, 1],
    ],
    [
      'in several files that a command edits, one of them new',
      'Bash',
      { command: 'sed' },
      {
        bashEditDiff: { files: [{ hunks: [{ lines: ['-a', '+b'] }] }, { hunks: [{ lines: ['+c'] }], created: true }] },
      },
      [2, 1],
    ],
    ['in a malformed diff of a command', 'Bash', {}, { bashEditDiff: { files: [{ hunks: 'x' }, 3] } }, [0, 0]],
    ['in a call that edits no file', 'Bash', { command: 'rm x' }, { stdout: '' }, [0, 0]],
    ['in a malformed patch', 'Edit', { old_string: 3 }, { structuredPatch: [{ lines: [1] }, 'x'] }, [0, 0]],
    [
      'in a list of edits, one of them malformed',
      'MultiEdit',
      { edits: ['x', { old_string: 'a', new_string: 'b' }] },
      'Done',
      [1, 1],
    ],
  ])('are counted %s', (_, name, input, details, expected) => {
    expect(changedBy(name, input, details)).toEqual(expected);
  });

  test('are not counted if the call failed', () => {
    expect(changedBy('Write', { content: 'a' }, 'Error: no', true)).toEqual([0, 0]);
  });
});

describe('a score', () => {
  test('belongs to the trace of its turn, and has the same id each time', () => {
    const [turn] = groupTurns(SIMPLE).all;
    const [added, ...others] = scoresOf(turn, { environment: 'ci' });
    expect(added).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{32}$/),
      traceId: turn && buildTurn(turn, { ...OPTIONS, sessionId: SESSION }).root.trace.id,
      environment: 'ci',
      name: 'lines_added',
      value: 0,
      dataType: 'NUMERIC',
    });
    expect(others.map(({ name }) => name)).toEqual(['lines_removed']);
    const grown = groupTurns([...SIMPLE, assistant('m2', 'more', { timestamp: at(9) })]).all[0];
    const ids = (scores: readonly Score[]) => scores.map(({ id }) => id);
    expect(ids(scoresOf(grown))).toEqual(ids(scoresOf(turn)));
    expect(new Set(ids(scoresOf(turn))).size).toBe(2);
  });

  test("belongs to the turn's root if the trace is another program's", () => {
    const caller = { parent: { trace: 'c'.repeat(32), span: 'd'.repeat(16) } };
    const turns = groupTurns([...SIMPLE, user('again', { uuid: 'u2' }), assistant('m2', 'done')]).all;
    const scores = turns.flatMap((turn) => scoresOf(turn, { caller }));
    const roots = turns.map((turn) => buildTurn(turn, { ...OPTIONS, caller, sessionId: SESSION }).root.id);
    expect(new Set(scores.map(({ traceId }) => traceId))).toEqual(new Set(['c'.repeat(32)]));
    expect(new Set(scores.map(({ observationId }) => observationId))).toEqual(new Set(roots));
    expect(new Set(scores.map(({ id }) => id)).size).toBe(scores.length);
  });
});
