import { describe, expect, test } from 'vitest';
import { buildTurn } from '../../../src/observations/build/turn.js';
import { assistant, groupTurns, SESSION, text, toolResult, toolUse, user } from '../../support/lines.js';
import { OPTIONS } from '../../support/traces.js';

function build(...lines: (object | string)[]) {
  const { all } = groupTurns(lines);
  return all.flatMap((turn) => {
    const { children, root } = buildTurn(turn, { ...OPTIONS, sessionId: SESSION });
    return [root, ...children];
  });
}

/** Builds the tool observation of a turn with one call and this result. */
function toolWith(result: unknown, lineFields: object = {}) {
  return build(user('go'), assistant('m1', [toolUse('t1')]), user([result], lineFields)).find(
    ({ type }) => type === 'tool',
  );
}

describe('thinking', () => {
  test('is sent without its signature, and redacted thinking only as a placeholder', () => {
    const [, generation] = build(
      user('go'),
      assistant('m1', [
        { type: 'thinking', thinking: 'hm', signature: 'c2lnbmF0dXJl' },
        { type: 'redacted_thinking', data: 'ZW5jcnlwdGVk' },
        text('done'),
      ]),
    );
    expect(generation?.output).toEqual({
      role: 'assistant',
      content: 'done',
      thinking: [{ type: 'thinking', content: 'hm' }],
      redacted_thinking: [{ type: 'redacted_thinking', data: '[redacted]' }],
    });
  });

  test('whose text is not in the transcript is left out', () => {
    const [, generation] = build(user('go'), assistant('m1', [{ type: 'thinking', thinking: '' }, text('done')]));
    expect(generation?.output).toEqual({ role: 'assistant', content: 'done' });
  });
});

describe('images without a source and blocks of unknown types', () => {
  test('are replaced by their type', () => {
    const [root] = build(user([{ type: 'image' }, { type: 'hologram', data: 'QUJD' }]), assistant('m1', 'nice'));
    expect(root?.input).toEqual([{ role: 'user', content: '[image]\n[hologram]' }]);
  });
});

describe('the result of a tool', () => {
  test('that Claude Code stored in a file has the path and size of the file in its metadata', () => {
    const stored = { persistedOutputPath: '/x/out.txt', persistedOutputSize: 408_893 };
    expect(toolWith(toolResult('t1', 'the beginning'), { toolUseResult: stored })).toMatchObject({
      output: 'the beginning',
      metadata: { stored_path: '/x/out.txt', stored_size: 408_893 },
    });
  });

  test('is an error if only the toolUseResult of its line says so', () => {
    expect(toolWith(toolResult('t1', 'no such file'), { toolUseResult: 'Error: no such file' })).toMatchObject({
      level: 'ERROR',
      statusMessage: 'no such file',
    });
    expect(toolWith(toolResult('t1', 'fine'), { toolUseResult: 'Done' })).toMatchObject({ level: 'DEFAULT' });
  });

  test.each([
    ['that is written from right to left', 'שלום עולם'],
    ['with control characters', 'a\u0000b\u001b[31mred\u0007'],
    ['with half an emoji', 'ok \uD83D'],
    ['that is a Windows path', 'C:\\Users\\me\\a.txt'],
    ['of 30,000 characters', 'x'.repeat(30_000)],
  ])('%s is sent unchanged, as well-formed Unicode', (_, content) => {
    expect(toolWith(toolResult('t1', content))?.output).toBe(content.toWellFormed());
  });

  test('that is not a text is sent unchanged', () => {
    expect(toolWith(toolResult('t1', { rows: [1, 2] }))?.output).toEqual({ rows: [1, 2] });
    expect(toolWith(toolResult('t1', null))?.output).toBeNull();
  });
});

describe('a tool observation', () => {
  test('of an MCP tool has its full name', () => {
    const observations = build(user('go'), assistant('m1', [toolUse('t1', 'mcp__server__tool', { query: 'x' })]));
    expect(observations.at(-1)).toMatchObject({
      type: 'tool',
      name: 'mcp__server__tool',
      metadata: { summary: 'query' },
    });
  });

  test('of a server tool has the result that is in the response itself', () => {
    const usage = { input_tokens: 1, server_tool_use: { web_search_requests: 2 } };
    const found = { type: 'web_search_result', url: 'https://a.example', title: 'A', encrypted_content: 'c2VjcmV0' };
    const content = [
      { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'x' } },
      { type: 'web_search_tool_result', tool_use_id: 's1', content: [found] },
      text('found'),
    ];
    const message = { id: 'm1', role: 'assistant', model: 'claude-opus-5', stop_reason: 'end_turn', usage, content };
    const [root, generation, tool] = build(user('go'), { type: 'assistant', message });
    expect(root?.metadata).toMatchObject({ outcome: 'completed', tool_count: 1 });
    expect(generation?.metadata).toMatchObject({ web_search_requests: 2 });
    expect(tool).toMatchObject({ name: 'web_search', input: { query: 'x' }, output: 'A https://a.example' });
    expect(JSON.stringify([root, generation, tool])).not.toContain('c2VjcmV0');
  });
});

describe('the result of a server tool', () => {
  const toolFor = (type: string, content: unknown) =>
    build(
      user('go'),
      assistant('m1', [
        { type: 'server_tool_use', id: 's1', name: 'x', input: {} },
        { type, tool_use_id: 's1', content },
      ]),
    ).find((observation) => observation.type === 'tool');
  const fetched = (source: object) => ({
    type: 'web_fetch_result',
    url: 'https://a.example',
    content: { type: 'document', source },
  });

  test('is never sent as base64', () => {
    const tool = toolFor(
      'web_fetch_tool_result',
      fetched({ type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' }),
    );
    expect(tool?.output).toBe('[web_fetch_result https://a.example]');
  });

  test('is the output of the observation, and a failure makes it an error', () => {
    expect(toolFor('code_execution_tool_result', [text('42')])?.output).toBe('42');
    const failed = { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' };
    expect(toolFor('web_search_tool_result', failed)).toMatchObject({
      level: 'ERROR',
      output: '[web_search_tool_result_error: max_uses_exceeded]',
    });
    const mcp = build(user('go'), assistant('m1', [{ type: 'mcp_tool_use', id: 'p1', name: 'find', input: { q: 1 } }]));
    expect(mcp.at(-1)).toMatchObject({ type: 'tool', name: 'find', input: { q: 1 } });
  });

  test('is sent without a title, URL or error code that is not a text', () => {
    const odd = { toString: 1 };
    const outputOf = (block: object) => toolFor('web_search_tool_result', [block])?.output;
    expect(outputOf({ type: 'web_search_result', title: odd, url: 'https://a.example' })).toBe('https://a.example');
    expect(outputOf({ type: 'web_fetch_result', url: odd })).toBe('[web_fetch_result ]');
    expect(outputOf({ type: 'some_error', error_code: odd })).toBe('[some_error: unknown]');
    expect(outputOf({ type: 'some_error', error_code: 429 })).toBe('[some_error: 429]');
  });
});

describe('the root of a turn', () => {
  test("has the user's title of the session, rather than a generated one, and its pull request", () => {
    const [root] = build(
      { type: 'summary', summary: 'an older one', leafUuid: 'x' },
      { type: 'ai-title', aiTitle: 'made up' },
      { type: 'custom-title', customTitle: 'mine' },
      { type: 'ai-title', aiTitle: 'made up again' },
      { type: 'pr-link', prNumber: 3, prUrl: 'https://github.com/a/b/pull/3' },
      user('go'),
      assistant('m1', 'ok'),
    );
    expect(root?.metadata).toMatchObject({ session_title: 'mine', pr: 'https://github.com/a/b/pull/3' });
  });

  test('has no title that was set after its last line; the next turn has it', () => {
    const roots = build(
      user('one', { uuid: 'a' }),
      assistant('m1', 'ok'),
      { type: 'custom-title', customTitle: 'later' },
      user('two', { uuid: 'b' }),
      assistant('m2', 'ok'),
    ).filter(({ type }) => type === 'agent');
    expect(roots.map(({ metadata }) => metadata.session_title)).toEqual([undefined, 'later']);
  });
});
