import { describe, expect, test } from 'vitest';
import { TAG_KINDS } from '../../../src/observations/build/tags.js';
import { buildTurn } from '../../../src/observations/build/turn.js';
import { assistant, groupTurns, SESSION, text, toolResult, toolUse, user } from '../../support/lines.js';
import { OPTIONS } from '../../support/traces.js';

const TURN = [
  user('<command-message>review</command-message>\n<command-name>/review</command-name>', {
    origin: { kind: 'human' },
  }),
  user([text('Base directory for this skill: /x')], { isMeta: true }),
  assistant('m1', [
    toolUse('t1', 'Skill', { skill: 'deploy' }),
    toolUse('t2', 'Agent', { subagent_type: 'Explore', prompt: 'look' }),
    toolUse('t3', 'Agent', { prompt: 'look' }),
    toolUse('t4', 'mcp__tracker__list_issues'),
    toolUse('t5', 'mcp__tracker__get_issue'),
    toolUse('t6', 'mcp__plugin_docs_search__find'),
    toolUse('t7', 'Read'),
    toolUse('t8', 'Skill', { skill: 3 }),
  ]),
  user([toolResult('t3')], { toolUseResult: { status: 'completed', agentId: 'a3', agentType: 'general-purpose' } }),
  assistant('m2', 'done'),
];

/** Returns the tags of a turn, which must be those of all its observations. */
function tagsOf(lines: readonly object[], options: Partial<typeof OPTIONS> = {}) {
  const all = groupTurns(lines).all.flatMap((turn) => {
    const { root, children } = buildTurn(turn, { ...OPTIONS, ...options, sessionId: SESSION });
    return [root, ...children];
  });
  expect(new Set(all.map(({ trace }) => trace.tags.join())).size).toBe(1);
  return all[0]?.trace.tags;
}

describe('a turn is tagged', () => {
  test('with the skills, agent types and MCP servers that it used, each once', () => {
    expect(tagsOf(TURN)).toEqual([
      'claude-code',
      'skill:review',
      'skill:deploy',
      'agent:Explore',
      'agent:general-purpose',
      'mcp:tracker',
      'mcp:plugin_docs_search',
    ]);
  });

  test('with its repository, without the host', () => {
    const turn = [user('hi'), ...TURN.slice(-1)];
    expect(tagsOf(turn, { repository: 'github.com/owner/name' })).toEqual(['claude-code', 'repo:owner/name']);
    expect(tagsOf(turn, { repository: 'gitlab.com/a/b/c' })).toEqual(['claude-code', 'repo:a/b/c']);
  });

  test("after the user's own tags", () => {
    expect(tagsOf(TURN.slice(-1).toSpliced(0, 0, user('hi')), { tags: ['mine', 'claude-code'] })).toEqual([
      'mine',
      'claude-code',
    ]);
  });

  test.each(TAG_KINDS)('only with %s if the settings select no other kind', (kind) => {
    const wanted = tagsOf(TURN)?.filter((tag) => tag.split(':')[0] === kind);
    expect(tagsOf(TURN, { autoTags: [kind] })).toEqual(wanted);
  });

  test('with nothing if the settings select no kind', () => {
    expect(tagsOf(TURN, { autoTags: [] })).toEqual([]);
  });
});
