import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ClaudeSession, writeFolderSettings } from '../support/claude-session.js';
import { appendLines, assistant, at, toolResult, toolUse, user } from '../support/lines.js';
import { type Environment, run, Workplace } from '../support/program.js';

let workplace: Workplace;
let session: ClaudeSession;
let other: ClaudeSession;

const open = (id: string, folder: string) => {
  mkdirSync(join(workplace.home, folder), { recursive: true });
  return new ClaudeSession(id, workplace.transcriptOf(id), join(workplace.home, folder));
};

beforeEach(async () => {
  workplace = await Workplace.open();
  session = open('aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'work/app');
  other = open('bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', 'elsewhere');
});

afterEach(() => workplace.close());

const hook = (payload: object, env?: Environment) => workplace.hook(payload, env);
/** A command that a person runs with TRACE_TO_LANGFUSE unset. */
const command = (args: readonly string[], env: Environment = {}) => {
  workplace.letIdle();
  return run(args, { ...workplace.env, TRACE_TO_LANGFUSE: undefined, ...env }, '', { cwd: workplace.home });
};
const roots = () => workplace.server.roots.map(({ trace, name }) => `${String(trace.sessionId)[0]} ${name}`);
const inputs = () => workplace.server.roots.map(({ input }) => JSON.stringify(input));

const writeUserSettings = (env: object) => {
  mkdirSync(join(workplace.home, '.claude'), { recursive: true });
  writeFileSync(join(workplace.home, '.claude', 'settings.json'), JSON.stringify({ env }));
};

/** Runs a session's first Stop while the server refuses everything. */
async function failOn(one: ClaudeSession, env: Environment = {}): Promise<void> {
  one.addTurn();
  workplace.server.misbehave = () => ({ status: 401 });
  await hook(one.payload('Stop'), env);
  workplace.server.misbehave = () => undefined;
}

describe('a folder whose settings turn tracing off', () => {
  describe.each(['settings.json', 'settings.local.json'])('in .claude/%s', (name) => {
    beforeEach(() => writeFolderSettings(session.folder, { TRACE_TO_LANGFUSE: 'false' }, name));

    test('is skipped by a backfill of everything, which says who said no', async () => {
      session.addTurn();
      other.addTurn();
      const { stdout } = await command(['backfill', '--all', '--yes']);
      expect(roots()).toEqual(['b Turn 1']);
      const file = join(session.folder, '.claude', name);
      expect(stdout).toContain(`– ${session.id} TRACE_TO_LANGFUSE is off in ${file}`);
    });

    test('is skipped by its hooks, whatever their environment says', async () => {
      session.addTurn();
      await hook(session.payload('Stop'));
      await hook(session.payload('Stop', { cwd: '/gone' }), { CLAUDE_PROJECT_DIR: session.folder });
      expect(workplace.server.requests).toEqual([]);
    });
  });

  test('is skipped by the recovery of what failed before, and by a forced backfill, until they allow it again', async () => {
    await failOn(session);
    writeFolderSettings(session.folder, { TRACE_TO_LANGFUSE: 'false' });
    other.addTurn();
    await hook(other.payload('Stop'));
    expect(roots()).toEqual(['b Turn 1']);
    await command(['backfill', '--all', '--yes', '--force']);
    expect(roots()).toEqual(['b Turn 1']);
    writeFolderSettings(session.folder, {});
    await command(['backfill', '--all', '--yes']);
    expect(roots()).toEqual(['b Turn 1', 'a Turn 1']);
  });
});

describe('a folder whose settings keep content', () => {
  beforeEach(() => writeFolderSettings(session.folder, { CC_LANGFUSE_CAPTURE: 'metadata' }));

  test('has none in what a backfill or a preview by hand shows', async () => {
    session.addTurn();
    const { stdout } = await command(['preview', '--json', session.path]);
    expect(JSON.parse(stdout)).not.toEqual([]);
    expect(stdout).not.toMatch(/question|answer/);
    await command(['backfill', '--all', '--yes'], { CC_LANGFUSE_CAPTURE: 'full' });
    expect(roots()).toEqual(['a Turn 1']);
    expect(JSON.stringify(workplace.server.observations)).not.toMatch(/question|answer/);
  });

  test('has none in what its hooks send, though the shell wants all of it', async () => {
    session.addTurn();
    await hook(session.payload('Stop'), { CC_LANGFUSE_CAPTURE: 'full' });
    expect(roots()).toEqual(['a Turn 1']);
    expect(JSON.stringify(workplace.server.observations)).not.toMatch(/question|answer/);
  });
});

test('a restriction that came after a turn had failed holds for its recovery', async () => {
  await failOn(session);
  writeFolderSettings(session.folder, { CC_LANGFUSE_CAPTURE: 'no_tool_io', CC_LANGFUSE_MAX_CHARS: '5' });
  other.addTurn();
  await hook(other.payload('Stop'));
  expect(roots()).toEqual(['b Turn 1', 'a Turn 1']);
  expect(inputs()[1]).not.toContain(session.question);
  expect(inputs()[0]).toContain(other.question);
});

test('a restriction that came after an agent had started holds for the name of its trace', async () => {
  const env = { CC_LANGFUSE_TRACE_NAME: '{project}: {prompt}' };
  const common = { cwd: session.folder, sessionId: session.id };
  session.addTurn();
  appendLines(
    session.path,
    assistant('m1', [toolUse('call', 'Agent', {})], { ...common, timestamp: at(16) }),
    user([toolResult('call', 'launched')], {
      ...common,
      timestamp: at(17),
      toolUseResult: { isAsync: true, status: 'async_launched', agentId: 'a1' },
    }),
    assistant('m2', 'wait', { ...common, timestamp: at(18) }),
  );
  const names = () => new Set(workplace.server.observations.map(({ trace }) => trace.name));
  await hook(session.payload('Stop', { background_tasks: [{ id: 'a1', status: 'running' }] }), env);
  expect(names()).toEqual(new Set([`app: ${session.question}`]));
  writeFolderSettings(session.folder, { CC_LANGFUSE_CAPTURE: 'metadata' });
  const agent = { ...common, agentId: 'a1' };
  appendLines(
    session.path.replace('.jsonl', '/subagents/agent-a1.jsonl'),
    user('look', { ...agent, uuid: 'p', timestamp: at(19) }),
    assistant('m3', 'seen', { ...agent, timestamp: at(20) }),
  );
  await hook(session.payload('SessionEnd'), env);
  expect(workplace.server.observations.filter(({ trace }) => trace.name === 'app').map(({ type }) => type)).toEqual([
    'generation',
    'agent',
  ]);
});

test("a project's server and keys are not used by a backfill", async () => {
  writeFolderSettings(session.folder, {
    LANGFUSE_BASE_URL: 'http://127.0.0.1:1',
    LANGFUSE_PUBLIC_KEY: 'pk-lf-theirs',
    LANGFUSE_SECRET_KEY: 'sk-lf-theirs',
    LANGFUSE_TAGS: 'theirs',
  });
  session.addTurn();
  const { stdout } = await command(['backfill', '--yes', session.path], {});
  expect(roots()).toEqual([]);
  expect(stdout).toContain('is for another project');
  const bare = { LANGFUSE_BASE_URL: undefined, LANGFUSE_PUBLIC_KEY: undefined, LANGFUSE_SECRET_KEY: undefined };
  const { exitCode, stderr } = await command(['backfill', '--yes', session.path], bare);
  expect({ exitCode, stderr }).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('there is nowhere to send to'),
  });
});

describe('values without quotes, which Claude Code passes on as texts,', () => {
  test('turn tracing off for a backfill', async () => {
    writeFolderSettings(session.folder, { TRACE_TO_LANGFUSE: false });
    session.addTurn();
    const { stdout } = await command(['backfill', '--all', '--yes']);
    expect(roots()).toEqual([]);
    expect(stdout).toContain(`TRACE_TO_LANGFUSE is off in ${join(session.folder, '.claude/settings.json')}`);
  });

  test('of the user are not lifted by texts of a project', async () => {
    writeUserSettings({ CC_LANGFUSE_MAX_CHARS: 5, CC_LANGFUSE_REDACT: true, CC_LANGFUSE_MEDIA: false });
    const theirs = { CC_LANGFUSE_MAX_CHARS: '900000', CC_LANGFUSE_REDACT: 'false', CC_LANGFUSE_MEDIA: 'true' };
    writeFolderSettings(session.folder, theirs);
    session.addTurn();
    await hook(session.payload('Stop'), theirs);
    expect(roots()).toEqual(['a Turn 1']);
    expect(inputs()[0]).not.toContain(session.question);
  });
});

describe('what a project wants to lift', () => {
  const theirsIs = (theirs: Environment) => {
    writeFolderSettings(session.folder, theirs);
    return { ...theirs, CLAUDE_PROJECT_DIR: session.folder };
  };
  const SECRET = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789';

  test.each(['-5', '0.5', '1e9', 'all', '900000'])('is not the limit of the user: %s', async (value) => {
    writeUserSettings({ CC_LANGFUSE_MAX_CHARS: '5' });
    session.addTurn();
    await hook(session.payload('Stop'), theirsIs({ CC_LANGFUSE_MAX_CHARS: value }));
    expect(roots()).toEqual(['a Turn 1']);
    expect(inputs()[0]).not.toContain(session.question);
    const named = `CC_LANGFUSE_MAX_CHARS: is ignored, because its value in ${join(session.folder, '.claude/settings.json')} is bad`;
    expect(workplace.log.map(({ msg }) => msg).includes(named)).toBe(value !== '900000');
  });

  test.each(['false', 'no'])('is not redaction, which it turns off: %s', async (value) => {
    const lines = { cwd: session.folder, sessionId: session.id };
    appendLines(session.path, user(`my key is ${SECRET}`, lines), assistant('m', 'a', lines));
    await hook(session.payload('Stop'), theirsIs({ CC_LANGFUSE_REDACT: value }));
    writeFolderSettings(session.folder, { CC_LANGFUSE_REDACT: value });
    await command(['backfill', '--all', '--yes', '--force']);
    expect(new Set(roots())).toEqual(new Set(['a Turn 1']));
    expect(JSON.stringify(workplace.server.observations)).not.toContain(SECRET);
  });

  test.each([
    ['breaks those of the user', [{ pattern: 'CUST-', replace: 'CU-' }]],
    ['is no rule', '['],
    ['cannot be read', [{ pattern: '(' }]],
  ])('is not what the user’s rules redact, with a rule that %s', async (_, rules) => {
    writeUserSettings({ CC_LANGFUSE_REDACT_EXTRA: '[{"pattern":"CUST-[0-9]+"}]' });
    const lines = { cwd: session.folder, sessionId: session.id };
    appendLines(session.path, user('for CUST-12345 only', lines), assistant('m', 'a', lines));
    const theirs = { CC_LANGFUSE_REDACT_EXTRA: typeof rules === 'string' ? rules : JSON.stringify(rules) };
    await hook(session.payload('Stop'), theirsIs(theirs));
    await hook(session.payload('SessionEnd'), theirsIs(theirs));
    await command(['backfill', '--all', '--yes']);
    expect(JSON.stringify(workplace.server.requests)).not.toContain('12345');
    expect(JSON.stringify(workplace.server.observations)).not.toContain('12345');
  });
});

describe('CC_LANGFUSE_EXCLUDE', () => {
  const patterns: [string, () => string][] = [
    ['the path of the folder', () => session.folder],
    ['a folder above it', () => join(workplace.home, 'work')],
    ['a glob', () => `${workplace.home}/w*/app`],
    ['a glob of any depth', () => '**/app'],
    ['a path below the home folder', () => '~/work'],
    ['one of several, with a slash at its end', () => ` /other , ${session.folder}/ `],
  ];

  test.each(patterns)('keeps the hooks of a folder from sending anything: %s', async (_, glob) => {
    session.addTurn();
    await hook(session.payload('Stop'), { CC_LANGFUSE_EXCLUDE: glob() });
    await hook(session.payload('SessionEnd'), { CC_LANGFUSE_EXCLUDE: glob() });
    expect(workplace.server.requests).toEqual([]);
    other.addTurn();
    await hook(other.payload('Stop'), { CC_LANGFUSE_EXCLUDE: glob() });
    expect(roots()).toEqual(['b Turn 1']);
  });

  test('compares folders, not names: a link, and where it leads, are the same', async () => {
    symlinkSync(join(workplace.home, 'work'), join(workplace.home, 'link'));
    const linked = { ...session.payload('Stop'), cwd: join(workplace.home, 'link', 'app') };
    session.addTurn();
    for (const list of [
      '~/link',
      '$HOME/link/app',
      '~/link/a*',
      '~/x/../work',
      '"~/work"',
      '["~/other, too", "~/link"]',
    ])
      for (const payload of [session.payload('Stop'), linked]) await hook(payload, { CC_LANGFUSE_EXCLUDE: list });
    expect(workplace.server.requests).toEqual([]);
    writeUserSettings({ CC_LANGFUSE_EXCLUDE: '~/link' });
    const { stdout } = await command(['backfill', '--all', '--yes']);
    expect(roots()).toEqual([]);
    expect(stdout).toContain(`CC_LANGFUSE_EXCLUDE in ${join(workplace.home, '.claude/settings.json')} excludes ~/link`);
  });

  test.each(['work', './work', 'customer-*', '/a, work', '["/a", 1]'])(
    'that is neither an absolute path nor a glob holds everything back, and is named: %s',
    async (list) => {
      const bad = list.startsWith('/a, ') ? 'work' : list;
      const place = join(workplace.home, '.claude', 'settings.json');
      const optOut = `CC_LANGFUSE_EXCLUDE in ${place} has ${JSON.stringify(bad)}: expected absolute paths, or globs that begin with / or **`;
      const expected = 'expected absolute paths, or globs that begin with / or **, comma-separated or as a JSON array';
      writeUserSettings({ CC_LANGFUSE_EXCLUDE: list });
      session.addTurn();
      await hook(session.payload('SessionEnd'), { CC_LANGFUSE_EXCLUDE: list });
      expect(workplace.server.requests).toEqual([]);
      await command(['backfill', '--all', '--yes']);
      expect(roots()).toEqual([]);
      expect(workplace.log.map(({ msg }) => msg)).toContain(optOut);
      const on = { TRACE_TO_LANGFUSE: 'true' };
      const { checks } = JSON.parse((await command(['doctor', '--json'], on)).stdout);
      expect(checks).toContainEqual(
        expect.objectContaining({ name: 'tracing', status: 'warning', message: `off in this directory: ${optOut}` }),
      );
      expect(checks).toContainEqual(
        expect.objectContaining({
          name: 'setting',
          status: 'broken',
          message: `CC_LANGFUSE_EXCLUDE: ${expected}; nothing is sent (from ${place})`,
        }),
      );
      const { tracing } = JSON.parse((await command(['status', '--json'], on)).stdout);
      expect(tracing).toMatchObject({ on: false, message: `off in this directory: ${optOut}` });
    },
  );

  test.each(['/app', '**/ap', '~', ''])('does not match other folders: %j', async (glob) => {
    session.addTurn();
    await hook(session.payload('Stop'), { CC_LANGFUSE_EXCLUDE: glob === '~' ? '~/worker,~/work/ap' : glob });
    expect(roots()).toEqual(['a Turn 1']);
  });

  test('in the settings of the user holds for hooks whose environment says something else', async () => {
    writeUserSettings({ CC_LANGFUSE_EXCLUDE: '~/work' });
    session.addTurn();
    await hook(session.payload('Stop'), { CC_LANGFUSE_EXCLUDE: '/other' });
    expect(workplace.server.requests).toEqual([]);
  });

  test('holds for the recovery of what failed before, which the next run sends once it is gone', async () => {
    await failOn(session);
    writeUserSettings({ CC_LANGFUSE_EXCLUDE: '~/work' });
    other.addTurn();
    await hook(other.payload('Stop'));
    expect(roots()).toEqual(['b Turn 1']);
    writeUserSettings({});
    session.addTurn();
    await hook(session.payload('Stop'));
    expect(roots()).toEqual(['b Turn 1', 'a Turn 1', 'a Turn 2']);
  });

  test.each([
    ['the environment', (glob: string) => ({ CC_LANGFUSE_EXCLUDE: glob })],
    [
      'the settings of the user',
      (glob: string) => {
        writeUserSettings({ CC_LANGFUSE_EXCLUDE: glob });
        return {};
      },
    ],
  ])('in %s holds for backfill, and sessions names it', async (_, give) => {
    session.addTurn();
    other.addTurn();
    const env = give('~/work');
    const { stdout } = await command(['backfill', '--all', '--yes'], env);
    expect(roots()).toEqual(['b Turn 1']);
    expect(stdout).toMatch(new RegExp(`– ${session.id} CC_LANGFUSE_EXCLUDE in .* excludes ~/work`));
    const listed = JSON.parse((await command(['sessions', '--json'], env)).stdout);
    expect(
      Object.fromEntries(listed.map((each: { sessionId: string; state: string }) => [each.sessionId, each.state])),
    ).toEqual({
      [session.id]: 'excluded',
      [other.id]: 'exported',
    });
  });

  test('of a run that continues a killed one does not keep what the killed one had to say', async () => {
    await hook(session.startPayload('startup'), { CC_LANGFUSE_CAPTURE: 'metadata' });
    session.addTurn();
    await hook(session.startPayload('resume'), { CC_LANGFUSE_EXCLUDE: '~/work' });
    session.addTurn();
    await hook(session.payload('Stop'), { CC_LANGFUSE_EXCLUDE: '~/work' });
    await hook(session.startPayload('resume'));
    session.addTurn();
    await hook(session.payload('Stop'));
    expect(roots()).toEqual(['a Turn 1', 'a Turn 3']);
    expect(inputs()[0]).toBeUndefined();
  });

  test('does not make a turn that ran before it one without tracing, even after a forced backfill', async () => {
    session.addTurn();
    await hook(session.payload('Stop'), { CC_LANGFUSE_CAPTURE: 'metadata' });
    await run(['backfill', '--all', '--yes', '--force'], workplace.env);
    session.addTurn();
    await hook(session.payload('Stop'), { CC_LANGFUSE_EXCLUDE: '~/work' });
    await command(['backfill', '--all', '--yes']);
    expect(roots()).toEqual(['a Turn 1', 'a Turn 2']);
    expect(inputs()[0]).toBeUndefined();
  });

  test('keeps what was said while it was there, also once it is gone', async () => {
    session.addTurn();
    await hook(session.payload('Stop'), {});
    session.addTurn();
    await hook(session.payload('Stop'), { CC_LANGFUSE_EXCLUDE: '~/work' });
    session.addTurn();
    await hook(session.payload('Stop'), {});
    expect(roots()).toEqual(['a Turn 1', 'a Turn 3']);
  });
});
