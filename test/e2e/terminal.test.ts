import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { POLL, Workplace } from '../support/program.js';
import { play, recording } from '../support/recording.js';
import { describeTraces } from '../support/traces.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
  workplace.env = { ...workplace.env, CLAUDE_CODE_ENTRYPOINT: 'cli' };
});

afterEach(() => workplace.close());

/** Waits until the server has the expected observations. */
const arrive = (expected: string) =>
  expect.poll(() => describeTraces(workplace.server.observations), POLL).toBe(expected);

describe('in the terminal', () => {
  test.each(['p-simple', 'i-simple', 'p-agent2', 'h-block1'])(
    'the hook ends before the server answers, and everything arrives: %s',
    async (name) => {
      const played = recording(name);
      const hanging = workplace.server.hang();
      await play(played, workplace.home, async ({ payload }) => {
        expect(await workplace.hook(payload)).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
      });
      expect(workplace.server.requests).toEqual([]);
      hanging.release();
      const expected = readFileSync(join(played.folder, 'expected.json'), 'utf8');
      await arrive(expected);
      expect(workplace.log).toEqual([]);
    },
  );

  test('the worker goes on if the process group that started it is killed', async () => {
    const played = recording('p-simple');
    const expected = readFileSync(join(played.folder, 'expected.json'), 'utf8');
    const hanging = workplace.server.hang();
    await play(played, workplace.home, async ({ event, payload }) => {
      if (event !== 'Stop') return;
      const program = new URL('../../dist/cli.cjs', import.meta.url).pathname;
      const shell = spawn('sh', ['-c', `"${process.execPath}" "${program}" hook; sleep 30`], {
        detached: true,
        env: { PATH: process.env.PATH, ...workplace.env },
        stdio: ['pipe', 'ignore', 'ignore'],
      });
      shell.stdin?.end(JSON.stringify(payload));
      await expect.poll(() => hanging.count, POLL).toBe(1);
      process.kill(-(shell.pid ?? 0), 'SIGKILL');
      hanging.release();
    });
    await arrive(expected);
  });

  test('the worker has the keys that the user entered for the plugin', async () => {
    workplace.env = {
      HOME: workplace.home,
      TRACE_TO_LANGFUSE: 'true',
      CLAUDE_CODE_ENTRYPOINT: 'cli',
      CLAUDE_PLUGIN_ROOT: '/plugin',
      CLAUDE_PLUGIN_OPTION_PUBLIC_KEY: PUBLIC_KEY,
      CLAUDE_PLUGIN_OPTION_SECRET_KEY: SECRET_KEY,
      CLAUDE_PLUGIN_OPTION_BASE_URL: workplace.server.url,
    };
    const played = recording('p-simple');
    const expected = readFileSync(join(played.folder, 'expected.json'), 'utf8');
    await play(played, workplace.home, async ({ payload }) => {
      await workplace.hook(payload);
    });
    await arrive(expected);
  });

  test('the hook exits with 0 for malformed input, and the worker logs it', async () => {
    for (const stdin of ['', 'no JSON', '{}']) {
      expect(await workplace.hook(stdin)).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    }
    await expect.poll(() => workplace.log.length, POLL).toBe(2);
    // An empty input is not logged: Claude Code killed that hook before it could write its payload.
    expect(workplace.log.map(({ msg }) => msg).toSorted()).toEqual([
      'stdin is not JSON',
      'stdin: session_id: expected a string',
    ]);
  });
});

describe('a message to the user', () => {
  const payload = (session: string) => ({
    session_id: session,
    transcript_path: '/none.jsonl',
    hook_event_name: 'Stop',
  });
  const messageTo = async (session: string) => {
    const { stdout, exitCode } = await workplace.hook(payload(session));
    expect(exitCode).toBe(0);
    // Its worker asks the server, too, and writes down whether that takes the keys.
    await workplace.haveEnded();
    return stdout === '' ? undefined : JSON.parse(stdout).systemMessage;
  };

  test('says that keys are missing, once per session', async () => {
    const { LANGFUSE_SECRET_KEY: _, ...env } = workplace.env;
    workplace.env = env;
    const message = 'cc-langfuse: LANGFUSE_SECRET_KEY not set. Nothing is exported. Run: cc-langfuse doctor';
    expect([await messageTo('one'), await messageTo('one'), await messageTo('two')]).toEqual([
      message,
      undefined,
      message,
    ]);
  });

  test('says at the next hook that the keys were refused, until they are accepted', async () => {
    const played = recording('p-simple');
    workplace.env = { ...workplace.env, CC_LANGFUSE_WAIT: '1' };
    const body = JSON.stringify({ message: 'API key has expired' });
    workplace.server.misbehave = () => ({ status: 401, body });
    const message = `cc-langfuse: Langfuse refused the keys (401) at 127.0.0.1:${workplace.server.port}: "API key has expired"; make new ones for "cc-langfuse install", or for the plugin. Nothing is exported. Run: cc-langfuse doctor`;
    const messages: unknown[] = [];
    await play(played, workplace.home, async ({ event, payload: stop }) => {
      if (event !== 'Stop') return;
      expect(await workplace.hook(stop)).toMatchObject({ stdout: '' });
      workplace.env = { ...workplace.env, CC_LANGFUSE_WAIT: '0' };
      messages.push(await messageTo('one'), await messageTo('one'));
      workplace.env = { ...workplace.env, CC_LANGFUSE_WAIT: '1' };
      workplace.server.misbehave = () => undefined;
      expect(await workplace.hook(stop)).toMatchObject({ stdout: '' });
      workplace.env = { ...workplace.env, CC_LANGFUSE_WAIT: '0' };
      messages.push(await messageTo('two'));
    });
    expect(messages).toEqual([message, undefined, undefined]);
  });

  test('is not printed under claude -p, since it would be in the output', async () => {
    workplace.env = { HOME: workplace.home, TRACE_TO_LANGFUSE: 'true', CLAUDE_CODE_ENTRYPOINT: 'sdk-cli' };
    expect(await messageTo('one')).toBeUndefined();
  });
});

describe('under claude -p, in CI and by hand', () => {
  test.each([
    { CLAUDE_CODE_ENTRYPOINT: 'sdk-cli' },
    { CI: 'true' },
    { CC_LANGFUSE_WAIT: '1' },
    { CLAUDE_CODE_ENTRYPOINT: undefined },
  ])('the hook sends the turn before it ends: %j', async (env) => {
    workplace.env = { ...workplace.env, ...env };
    const observationsAfterStop: number[] = [];
    await play(recording('p-simple'), workplace.home, async ({ event, payload }) => {
      await workplace.hook(payload);
      if (event === 'Stop') observationsAfterStop.push(workplace.server.observations.length);
    });
    expect(observationsAfterStop).toEqual([2]);
  });
});
