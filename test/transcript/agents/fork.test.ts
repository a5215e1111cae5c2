import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findAgentFiles, readAgent } from '../../../src/transcript/agents/agent-files.js';
import { appendLines, assistant, at, ms, SESSION, text, toolResult, toolUse, user } from '../../support/lines.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-fork-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

const reference = { type: 'fork-context-ref', agentId: 'f1', parentSessionId: SESSION, contextLength: 12 };

/** Reads an agent's file with these lines, each a second after the one before. */
function read(...lines: object[]) {
  const timed = lines.map((line, place) => ({ timestamp: at(place), uuid: `l${place}`, ...line }));
  appendLines(join(folder, SESSION, 'subagents', 'agent-f1.jsonl'), ...timed);
  const [file] = findAgentFiles(join(folder, `${SESSION}.jsonl`));
  return file && readAgent(file)?.turns;
}

describe('the file of a fork', () => {
  test('has as the first prompt the words next to the second result of its call, given when it was launched', () => {
    const turns = read(
      reference,
      assistant('launch', [toolUse('call', 'Agent')]),
      user([toolResult('call', 'Fork started'), text('do it')]),
      assistant('m1', 'done'),
    );
    expect(turns).toMatchObject([
      {
        prompts: [{ content: 'do it', at: ms(1), line: 3 }],
        responses: [{ id: 'm1', calls: [], answered: [{ role: 'user', content: 'do it' }], answeredAt: ms(2) }],
        lineNumbers: [3, 4],
      },
    ]);
  });

  test('has none of the calls that were launched with it', () => {
    const turns = read(
      reference,
      assistant('launch', [text('Both at once.')]),
      assistant('launch', [toolUse('other', 'Bash')]),
      assistant('launch', [toolUse('call', 'Agent')]),
      user([toolResult('other', 'Fork started'), toolResult('call', 'Fork started'), text('do it')]),
      assistant('launch', [toolUse('call', 'Agent')]),
      assistant('m1', [toolUse('own', 'Read')]),
      user([toolResult('own', 'words')]),
      assistant('m2', 'done'),
    );
    const responses = turns?.flatMap((turn) => turn.responses);
    expect(responses?.map(({ id }) => id)).toEqual(['m1', 'm2']);
    expect(responses?.flatMap(({ calls }) => calls)).toMatchObject([{ id: 'own', result: { content: 'words' } }]);
    expect(turns?.flatMap(({ prompts }) => prompts)).toMatchObject([{ content: 'do it', at: ms(1) }]);
  });

  test('that is torn keeps what the fork itself has done', () => {
    const turns = read(reference, assistant('launch', [toolUse('call', 'Agent')]), assistant('m1', 'done'));
    expect(turns?.flatMap(({ responses }) => responses.map(({ id }) => id))).toEqual(['m1']);
  });
});

test('the file of another agent keeps a response before its first prompt', () => {
  const turns = read(
    assistant('m1', 'done'),
    user('more', { origin: { kind: 'coordinator' } }),
    assistant('m2', 'more'),
  );
  expect(turns?.flatMap(({ responses }) => responses.map(({ id }) => id))).toEqual(['m1', 'm2']);
});
