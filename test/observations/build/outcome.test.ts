import { describe, expect, test } from 'vitest';
import { buildTurn } from '../../../src/observations/build/turn.js';
import type { Observation } from '../../../src/observations/model.js';
import { createRedactor } from '../../../src/observations/redaction/redact.js';
import { assistant, at, groupTurns, SESSION, toolResult, toolUse, user } from '../../support/lines.js';
import { OPTIONS } from '../../support/traces.js';

function build(lines: readonly object[], options: Partial<typeof OPTIONS> = {}): Observation[] {
  return groupTurns(lines).all.flatMap((turn) => {
    const { root, children } = buildTurn(turn, { ...OPTIONS, ...options, sessionId: SESSION });
    return [root, ...children];
  });
}

/** A turn of 10 s with one call, from second 2 to second 8. */
function turnWith(name: string, result: object, { input = {}, content = 'done' as unknown, isError = false } = {}) {
  return [
    user('go', { uuid: 'u1', timestamp: at(0) }),
    assistant('m1', [toolUse('t1', name, input)], { timestamp: at(2) }),
    user([toolResult('t1', content, isError ? { is_error: true } : {})], { timestamp: at(8), ...result }),
    assistant('m2', 'done', { timestamp: at(10) }),
  ];
}

function toolOf(lines: readonly object[], options: Partial<typeof OPTIONS> = {}) {
  const tool = build(lines, options).find(({ type }) => type === 'tool');
  const { tool_name: _, tool_id: __, summary: ___, ...metadata } = tool?.metadata ?? {};
  return { metadata, output: tool?.output };
}

function rootOf(lines: readonly object[], options: Partial<typeof OPTIONS> = {}) {
  const [root] = build(lines, options);
  const { outcome: _, tool_count: __, error_count: ___, ...metadata } = root?.metadata ?? {};
  return metadata;
}

describe('a call says who decided about it', () => {
  const RULE = { decision: 'accept', source: 'config', reasonType: 'rule', ruleSource: 'userSettings' };
  const ONCE = { decision: 'accept', source: 'user_temporary', grantScope: 'once', reasonCode: 'unknown' };

  test.each([
    [RULE, 'accept by config (rule, userSettings)'],
    [{ decision: 'accept', source: 'config' }, 'accept by config'],
    [{ decision: 'reject', source: 'hook', reasonType: 'hook' }, 'reject by hook'],
    [ONCE, 'accept by user_temporary (once)'],
  ])('%o', (permissionDecision, permission) => {
    expect(toolOf(turnWith('Bash', { permissionDecision })).metadata).toEqual({ permission });
  });

  test('in words only: what has another form is not said', () => {
    const permissionDecision = { decision: 'accept', source: 'rm -rf /secret', reasonType: ['x'] };
    expect(toolOf(turnWith('Bash', { permissionDecision })).metadata).toEqual({ permission: 'accept' });
  });

  test('and how long it waited for a person, if the result says how long it ran', () => {
    const fetched = { permissionDecision: ONCE, toolUseResult: { durationMs: 1_500 } };
    const permission = 'accept by user_temporary (once)';
    expect(toolOf(turnWith('WebFetch', fetched)).metadata).toEqual({ permission, waited_ms: 4_500 });
    const searched = { permissionDecision: ONCE, toolUseResult: { durationSeconds: 0.25 } };
    expect(toolOf(turnWith('WebSearch', searched)).metadata).toEqual({ permission, waited_ms: 5_750 });
    expect(toolOf(turnWith('Bash', { permissionDecision: ONCE })).metadata).toEqual({ permission });
    const allowed = { permissionDecision: RULE, toolUseResult: { durationMs: 1_500 } };
    expect(toolOf(turnWith('WebFetch', allowed)).metadata).toEqual({
      permission: 'accept by config (rule, userSettings)',
    });
  });

  test('and all of its time, if the clock was set back while it ran', () => {
    const fetched = { permissionDecision: ONCE, toolUseResult: { durationMs: -1_500 } };
    expect(toolOf(turnWith('WebFetch', fetched)).metadata).toMatchObject({ waited_ms: 6_000 });
  });

  test('and that it never ran, if the person said no, or was only asked', () => {
    const refused = toolOf(turnWith('Bash', { toolDenialKind: 'user-rejected' }, { isError: true }));
    expect(refused.metadata).toEqual({ denied: 'user-rejected', waited_ms: 6_000 });
    expect(toolOf(turnWith('AskUserQuestion', {})).metadata).toEqual({ waited_ms: 6_000 });
  });
});

describe('a call says what came of it', () => {
  test('the exit code of a command that failed', () => {
    const failed = { content: 'Exit code 127\nsh: no such command', isError: true };
    expect(toolOf(turnWith('Bash', {}, failed)).metadata).toEqual({ exit_code: 127 });
    expect(toolOf(turnWith('Bash', {}, { content: 'Exit code 1' })).metadata).toEqual({});
  });

  test('which arguments a hook has changed', () => {
    const [prompt, call, result, answer] = turnWith('Bash', {}, { input: { command: 'ls', timeout: 1 } });
    const stdout = JSON.stringify({ hookSpecificOutput: { updatedInput: { command: 'ls -l', timeout: 1, cwd: '/' } } });
    const attachment = {
      type: 'hook_success',
      hookEvent: 'PreToolUse',
      hookName: 'PreToolUse:Bash',
      toolUseID: 't1',
      stdout,
    };
    const lines = [prompt, call, { type: 'attachment', attachment, timestamp: at(3) }, result, answer] as object[];
    expect(toolOf(lines).metadata).toEqual({ input_changed_by: 'PreToolUse:Bash', input_changed: 'command, cwd' });
    // The names of arguments are part of the input.
    for (const capture of ['no_tool_io', 'metadata'] as const)
      expect(toolOf(lines, { capture }).metadata).toEqual({ input_changed_by: 'PreToolUse:Bash' });
  });

  test('commits, pushes and pull requests', () => {
    const gitOperation = {
      commit: { sha: '1a2b3c4', kind: 'amended', branch: 'main' },
      push: { branch: 'feature/x' },
      pr: { number: 12, url: 'https://github.com/octo/demo/pull/12', action: 'created' },
    };
    const lines = turnWith('Bash', { toolUseResult: { stdout: '', gitOperation } });
    expect(toolOf(lines).metadata).toEqual({
      commit_sha: '1a2b3c4',
      commit_kind: 'amended',
      commit_branch: 'main',
      pushed_branch: 'feature/x',
      pr_number: 12,
      pr_url: 'https://github.com/octo/demo/pull/12',
      pr_action: 'created',
    });
    expect(rootOf(lines)).toMatchObject({ commits: ['1a2b3c4'], pr: 'https://github.com/octo/demo/pull/12' });
    expect(build(lines)[0]?.trace.tags).toEqual(['claude-code', 'pr:octo/demo#12']);
  });
});

const HUNK = { oldStart: 1, oldLines: 2, newStart: 1, newLines: 2, lines: [' hello', '-world', '+there'] };
const EDITED = { filePath: '/w/a.txt', structuredPatch: [HUNK] };
const DIFF = '```diff\n--- /w/a.txt\n+++ /w/a.txt\n@@ -1,2 +1,2 @@\n hello\n-world\n+there\n```';

describe('a call that changed files', () => {
  test('has the change as a diff below its result, and counts files and lines', () => {
    const lines = turnWith('Edit', { toolUseResult: EDITED }, { content: 'Updated.' });
    expect(toolOf(lines)).toEqual({
      metadata: { files_changed: 1, lines_added: 1, lines_removed: 1 },
      output: `Updated.\n\n${DIFF}`,
    });
    expect(rootOf(lines)).toMatchObject({ lines_added: 1, lines_removed: 1 });
  });

  test('has those of all files, if it was a command', () => {
    const files = [
      { filePath: 'a', hunks: [HUNK] },
      { filePath: 'b', hunks: [{ ...HUNK, lines: ['+new'] }] },
    ];
    const { metadata, output } = toolOf(turnWith('Bash', { toolUseResult: { stdout: '', bashEditDiff: { files } } }));
    expect(metadata).toEqual({ files_changed: 2, lines_added: 2, lines_removed: 1 });
    expect(output).toBe(
      'done\n\n```diff\n--- a\n+++ a\n@@ -1,2 +1,2 @@\n hello\n-world\n+there\n--- b\n+++ b\n@@ -1,2 +1,2 @@\n+new\n```',
    );
  });

  test('has no diff of a new file, which is its input', () => {
    const created = { type: 'create', filePath: '/w/new', structuredPatch: [] };
    const lines = turnWith('Write', { toolUseResult: created }, { input: { content: 'a\nb\n' } });
    expect(toolOf(lines)).toEqual({
      metadata: { files_changed: 1, lines_added: 2, lines_removed: 0 },
      output: 'done',
    });
  });

  test('is fenced so that its own fences do not end the block', () => {
    const lines = [' ````', '+```ts', ' ````'];
    const { output } = toolOf(turnWith('Edit', { toolUseResult: { structuredPatch: [{ ...HUNK, lines }] } }));
    expect(output).toBe('done\n\n`````diff\n--- file\n+++ file\n@@ -1,2 +1,2 @@\n ````\n+```ts\n ````\n`````');
  });

  test('is fenced, however often it has backticks', () => {
    const lines = [`+${'` '.repeat(200_000)}`];
    const { output } = toolOf(turnWith('Edit', { toolUseResult: { structuredPatch: [{ ...HUNK, lines }] } }));
    expect(`${output}`).toMatch(/^done\n\n```diff\n/);
  });

  test.each([
    ['no_tool_io', { metadata: { files_changed: 1, lines_added: 1, lines_removed: 1 } }],
    ['metadata', { metadata: { files_changed: 1, lines_added: 1, lines_removed: 1 } }],
  ] as const)('sends only numbers at the capture level %s', (capture, { metadata }) => {
    const tool = toolOf(turnWith('Edit', { toolUseResult: EDITED }), { capture });
    expect(tool.metadata).toEqual(metadata);
    expect(JSON.stringify(tool)).not.toMatch(/world|a\.txt/);
  });

  test('is cut at the limit', () => {
    const { output, metadata } = toolOf(turnWith('Edit', { toolUseResult: EDITED }), { maxChars: 20 });
    expect(output).toMatch(/^done\n\n```diff\n--- \/w… \[\d+ more characters\]$/);
    expect(metadata).toMatchObject({ output_full_chars: `done\n\n${DIFF}`.length });
  });
});

describe('the secrets of a change', () => {
  const redact = createRedactor([(text) => text.replace(/^MINE.*$/gm, '[mine]')]);
  const outputOf = (lines: readonly string[]) =>
    toolOf(turnWith('Edit', { toolUseResult: { structuredPatch: [{ ...HUNK, lines }] } }), { redact }).output;
  const shown = (lines: readonly string[]) =>
    `done\n\n\`\`\`diff\n--- file\n+++ file\n@@ -1,2 +1,2 @@\n${lines.join('\n')}\n\`\`\``;

  test('are found although a mark stands before each line', () => {
    expect(outputOf([' MINE a', '-MINE b', '+MINE c', ' rest'])).toBe(
      shown([' [mine]', '-[mine]', '+[mine]', ' rest']),
    );
    const manifest = [' kind: Secret', ' data:', '-  user: b2xkLXVzZXI=', '+  user: bmV3LXVzZXI=', ' ---'];
    expect(outputOf(manifest)).toBe(
      shown([' kind: Secret', ' data:', '-  user: [redacted]', '+  user: [redacted]', ' ---']),
    );
  });

  test('take the place with them, if they are longer than a line', () => {
    const key = ['-----BEGIN PRIVATE KEY-----', 'A'.repeat(64), 'B'.repeat(64), '-----END PRIVATE KEY-----'];
    expect(outputOf([' before', ...key.map((line) => `-${line}`), '+gone'])).toBe(shown(['[redacted]']));
  });
});

describe('a turn says where its time went', () => {
  const decided = { decision: 'accept', source: 'user_temporary' };
  const hook = (seconds: number, hookName: string, durationMs: number) => ({
    type: 'attachment',
    attachment: { type: 'hook_success', hookEvent: hookName.split(':')[0], hookName, durationMs, stdout: 'x' },
    timestamp: at(seconds),
  });

  test('to the model, to tools, to people, and to what no line explains', () => {
    // Without a request in the transcript, the model is asked as soon as there is something to answer.
    const lines = turnWith('Bash', {});
    expect(rootOf(lines)).toEqual({ model_ms: 4_000, tool_ms: 6_000 });
    const asked = [...lines.slice(0, 2), { ...lines[2], permissionDecision: decided }, ...lines.slice(3)];
    expect(rootOf(asked)).toEqual({ model_ms: 4_000, person_ms: 6_000 });
    const request = { type: 'api-request', id: 'q1', timestamp: at(1) };
    const requested = [lines[0], request, { ...lines[1], requestRef: 'q1' }, ...lines.slice(2)] as object[];
    expect(rootOf(requested)).toEqual({ model_ms: 3_000, tool_ms: 6_000, other_ms: 1_000 });
  });

  test('with calls at the same time counted once, and while the model writes, to the model', () => {
    const lines = [
      user('go', { uuid: 'u1', timestamp: at(0) }),
      assistant('m1', [toolUse('t1', 'Read')], { timestamp: at(2) }),
      assistant('m1', [toolUse('t2', 'Read')], { timestamp: at(4) }),
      user([toolResult('t1')], { timestamp: at(5) }),
      user([toolResult('t2')], { timestamp: at(7) }),
      assistant('m2', 'done', { timestamp: at(8) }),
    ];
    expect(rootOf(lines)).toEqual({ model_ms: 5_000, tool_ms: 3_000 });
  });

  test('to the hooks that said something, and which they were', () => {
    const [prompt, call, result, answer] = turnWith('Bash', {}) as [object, object, object, object];
    const stops = {
      type: 'system',
      subtype: 'stop_hook_summary',
      hookInfos: [{ command: 'lint', durationMs: 400 }, { durationMs: 1_000 }, {}],
      timestamp: at(12),
    };
    const objection = user('Stop hook feedback:\nno', { isMeta: true, timestamp: at(12) });
    const last = assistant('m3', 'now done', { timestamp: at(15) });
    const lines = [
      hook(-5, 'SessionStart:startup', 900),
      prompt,
      call,
      hook(4, 'PreToolUse:Bash', 1_500),
      result,
      hook(8, 'PostToolUse:Bash', 500),
      answer,
      // Those of one Stop run at the same time; the summary has them all.
      hook(12, 'Stop', 1_000),
      stops,
      objection,
      last,
      // After the answer: the turn has been sent.
      { ...stops, timestamp: at(17) },
    ];
    expect(rootOf(lines)).toEqual({
      model_ms: 7_000,
      tool_ms: 4_000,
      hook_ms: 3_000,
      other_ms: 1_000,
      hooks: { 'PreToolUse:Bash': 1_500, 'PostToolUse:Bash': 500, Stop: 1_000 },
    });
  });

  test('but not to those of its Stop, even if it is compacted after them', () => {
    const stops = { type: 'system', subtype: 'stop_hook_summary', hookInfos: [{ durationMs: 400 }] };
    const compaction = { type: 'system', subtype: 'compact_boundary', compactMetadata: { trigger: 'manual' } };
    const lines = [
      { ...stops, timestamp: at(12) },
      { ...compaction, timestamp: at(13) },
    ];
    expect(rootOf([...turnWith('Bash', {}), ...lines])).toEqual({ model_ms: 4_000, tool_ms: 6_000, compactions: 1 });
  });

  test('nor to those after its last result, if it was interrupted', () => {
    const [prompt, call, result] = turnWith('Bash', {}) as [object, object, object];
    const interrupt = user('[Request interrupted by user]', { timestamp: at(12) });
    expect(rootOf([prompt, call, result, hook(11, 'PostToolUse:Bash', 4_000), interrupt])).toEqual({
      model_ms: 2_000,
      tool_ms: 6_000,
    });
  });

  test('in whole milliseconds, and not at all to a hook without a possible duration', () => {
    const [prompt, call, result, answer] = turnWith('Bash', {}) as [object, object, object, object];
    const odd = [Number.NaN, -1, 1e300].map((ms) => hook(8, 'PreToolUse:Bash', ms));
    const many = Array.from({ length: 200_000 }, () => ({ durationMs: 99.6 }));
    const stops = { type: 'system', subtype: 'stop_hook_summary', hookInfos: many, timestamp: at(8) };
    expect(rootOf([prompt, call, hook(4, 'PreToolUse:Bash', 1_500.4), result, ...odd, stops, answer])).toEqual({
      model_ms: 4_000,
      tool_ms: 4_400,
      hook_ms: 1_600,
      hooks: { 'PreToolUse:Bash': 1_500, Stop: 100 },
    });
  });

  test('and its parts add up to its duration, however its lines overlap', () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      let state = seed;
      const next = (count: number) => {
        state = (state * 48_271) % 2_147_483_647;
        return state % count;
      };
      const lines: object[] = [user('go', { uuid: 'u1', timestamp: at(next(5)) })];
      for (let n = 0; n < 6; n += 1) {
        const from = next(20);
        lines.push(assistant(`m${n}`, [toolUse(`t${n}`, 'Bash')], { timestamp: at(from) }));
        const permissionDecision = next(2) === 0 ? decided : undefined;
        lines.push(user([toolResult(`t${n}`)], { timestamp: at(next(30)), permissionDecision }));
        lines.push(hook(next(60), 'PostToolUse:Bash', next(9_000)));
      }
      lines.push(assistant('m9', 'done', { timestamp: at(20 + next(20)) }));
      const [root] = build(lines);
      const parts = ['model_ms', 'tool_ms', 'person_ms', 'hook_ms', 'other_ms'];
      const sum = parts.reduce((total, part) => total + Number(root?.metadata[part] ?? 0), 0);
      expect({ seed, sum }).toEqual({ seed, sum: (root?.endTime ?? 0) - (root?.startTime ?? 0) });
    }
  });
});

test('a turn says how full its context was, and how often it was compacted', () => {
  const usage = { input_tokens: 5, output_tokens: 7, cache_read_input_tokens: 900, cache_creation_input_tokens: 95 };
  const compaction = {
    type: 'system',
    subtype: 'compact_boundary',
    timestamp: at(3),
    compactMetadata: { trigger: 'auto', preTokens: 1_000, postTokens: 200 },
  };
  const answer = assistant('m2', 'done', { timestamp: at(10) }) as { message: object };
  const lines = [...turnWith('Bash', {}).slice(0, 3), compaction, { ...answer, message: { ...answer.message, usage } }];
  expect(rootOf(lines)).toMatchObject({ compactions: 1, context_tokens: 1_000 });
  const [event] = build(lines).filter(({ type }) => type === 'event');
  expect(event?.metadata).toEqual({ compaction_trigger: 'auto', tokens_before: 1_000, tokens_after: 200 });
});
