import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { HookPayload } from '../../src/commands/hook/payload.js';
import {
  appendLines,
  assistant,
  at,
  jsonLines,
  SESSION,
  text,
  toolResult,
  toolUse,
  turnLines,
  user,
} from '../support/lines.js';
import { POLL, Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { sessionFile } from '../support/state-files.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const transcript = () => workplace.transcriptOf(SESSION);
const projects = () => dirname(transcript());

function write(lines: readonly (object | string)[]): void {
  mkdirSync(projects(), { recursive: true });
  writeFileSync(transcript(), jsonLines(lines));
}

const append = (...lines: object[]) => appendLines(transcript(), ...lines);

function payload(more: object = {}): HookPayload {
  return { session_id: SESSION, transcript_path: transcript(), hook_event_name: 'Stop', ...more };
}

const names = () => workplace.server.observations.map(({ name }) => name);
const messages = () => workplace.log.map(({ msg }) => msg);
const quietly = { exitCode: 0, stdout: '', stderr: '' };

describe('with bad input the hook exits with 0, prints nothing and logs a clear line', () => {
  test.each([
    ['', 'stdin is empty'],
    ['  \n', 'stdin is empty'],
    ['{"session_id": "x"', 'stdin is not JSON'],
    ['null', 'stdin: expected a JSON object'],
    ['{"transcript_path":"/x"}', 'stdin: session_id: expected a string'],
    ['{"session_id":7,"transcript_path":"/x"}', 'stdin: session_id: expected a string'],
    ['{"session_id":"x","transcript_path":["/x"]}', 'stdin: transcript_path: expected a string'],
  ])('if stdin is %j', async (stdin, message) => {
    expect(await workplace.hook(stdin)).toMatchObject(quietly);
    expect(workplace.log).toMatchObject([{ level: 'error', msg: message }]);
  });

  test('if stdin is binary', async () => {
    expect(await workplace.hook(Buffer.from([0, 0xff, 0xfe, 0x7b]))).toMatchObject(quietly);
    expect(messages()).toEqual(['stdin is not JSON']);
  });

  test.each([
    ['a folder', () => mkdirSync(transcript(), { recursive: true }), 'not a regular file'],
    ['a FIFO', () => mkfifo(), 'not a regular file'],
    ['a symlink', () => symlink(), expect.stringMatching(/^ELOOP/)],
  ])('if the transcript is %s', async (_, make, reason) => {
    mkdirSync(projects(), { recursive: true });
    make();
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(workplace.log).toMatchObject([{ level: 'error', msg: reason, file: transcript() }]);
  });

  function mkfifo(): void {
    execFileSync('mkfifo', [transcript()]);
  }

  function symlink(): void {
    writeFileSync(join(projects(), 'target'), '');
    symlinkSync(join(projects(), 'target'), transcript());
  }

  test('if the transcript is empty', async () => {
    write([]);
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(workplace.server.requests).toEqual([]);
    expect(workplace.log).toMatchObject([
      { level: 'warn', msg: 'nothing is sent, because the transcript is empty', file: transcript() },
    ]);
  });

  test('if the transcript does not exist, except at SessionEnd: a session without a prompt has none', async () => {
    expect(await workplace.hook(payload({ hook_event_name: 'SessionEnd' }))).toMatchObject(quietly);
    expect(workplace.log).toEqual([]);
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    workplace.env = { ...workplace.env, CLAUDE_CODE_SKIP_PROMPT_HISTORY: '1' };
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    const begin = 'nothing is sent, because';
    expect(workplace.log).toMatchObject([
      {
        level: 'warn',
        msg: `${begin} there is no transcript; with --no-session-persistence Claude Code writes none`,
        file: transcript(),
      },
      { level: 'warn', msg: `${begin} with CLAUDE_CODE_SKIP_PROMPT_HISTORY Claude Code writes no transcript` },
    ]);
  });

  test('unless the transcript appears shortly after the hook has started, as it does for a quick first answer', async () => {
    const ended = workplace.hook(payload({ last_assistant_message: 'answer 1' }));
    // The first file that it writes, before it looks for the transcript.
    await expect
      .poll(() => existsSync(sessionFile(workplace.stateFolder, SESSION, 'open')), { ...POLL, interval: 1 })
      .toBe(true);
    write(turnLines(1));
    expect(await ended).toMatchObject(quietly);
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
    expect(workplace.log).toEqual([]);
  });

  test('if the transcript contains holes, invalid UTF-8, a byte order mark and unknown lines, and sends its turns', async () => {
    mkdirSync(projects(), { recursive: true });
    const [prompt = {}, answer = {}] = turnLines(1);
    writeFileSync(
      transcript(),
      Buffer.concat([
        Buffer.from(`\uFEFF${jsonLines([{ type: 'brand-new', content: 'x' }])}`),
        Buffer.alloc(4_096),
        Buffer.from(jsonLines([prompt])),
        Buffer.from([0xff, 0xfe, 0x0a]),
        Buffer.from(jsonLines([answer])),
        Buffer.from('{"type":"assistant","message":{"id":"m2","content":"torn'),
      ]),
    );
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
    // The last line may only be half written.
    expect(workplace.log.map(({ line, unknown }) => line ?? unknown)).toEqual([3, 'line type brand-new (1)']);
  });

  test('if the last line has no newline yet, which is no error', async () => {
    mkdirSync(projects(), { recursive: true });
    writeFileSync(transcript(), jsonLines(turnLines(1)).trimEnd());
    await workplace.hook(payload());
    appendFileSync(transcript(), '\n');
    append(...turnLines(2));
    await workplace.hook(payload());
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2']);
    expectEachSentOnce(workplace.server);
  });

  test('if a line has 50 MB, whose output is sent cut', async () => {
    write([
      user('go', { timestamp: at(0) }),
      assistant('m1', [toolUse('t1')], { timestamp: at(1) }),
      user([toolResult('t1', 'x'.repeat(50_000_000))], { timestamp: at(2) }),
      assistant('m2', [text('done')], { timestamp: at(3) }),
    ]);
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    const tool = workplace.server.observations.find(({ type }) => type === 'tool');
    expect(tool?.metadata).toMatchObject({ output_full_chars: 50_000_000 });
    expect(String(tool?.output)).toMatch(/^x{200000}… \[49800000 more characters\]$/);
    expect(workplace.state[SESSION]).toMatchObject({ lastLine: 4 });
  });

  test('if what says how far it was sent is corrupt: it is set aside, and the session is sent again', async () => {
    write(turnLines(1));
    await workplace.hook(payload());
    const path = sessionFile(workplace.stateFolder, SESSION, `${workplace.state[SESSION]?.destination}.json`);
    writeFileSync(path, '{"half":');
    append(...turnLines(2));
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect([...workplace.server.arrivals.values()]).toEqual([2, 2, 1, 1]);
    const [entry] = workplace.log;
    expect(entry?.msg).toBe('the progress of a session could not be read, so it is sent again');
    expect(readFileSync(String(entry?.keptAs), 'utf8')).toBe('{"half":');
  });

  test('if what is known of the session is corrupt: the log names it, and nothing is sent', async () => {
    write(turnLines(1));
    await workplace.start(payload());
    const path = sessionFile(workplace.stateFolder, SESSION);
    writeFileSync(path, '{"runs":');
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(workplace.server.requests).toEqual([]);
    expect(messages()).toContain(`${path} is corrupt`);
  });

  test('if the files of the state are read-only: they are replaced', async () => {
    write(turnLines(1));
    await workplace.hook(payload());
    for (const name of ['session', workplace.state[SESSION]?.destination])
      execFileSync('chmod', ['0400', sessionFile(workplace.stateFolder, SESSION, `${name}.json`)]);
    append(...turnLines(2));
    await workplace.hook(payload());
    expect(workplace.state[SESSION]).toMatchObject({ turnCount: 2 });
  });

  test('if the state folder cannot be created: stderr says so, nothing is sent, and everything is sent once it can be', async () => {
    write(turnLines(1));
    writeFileSync(workplace.stateFolder, 'a file');
    for (let n = 0; n < 2; n += 1) {
      const { exitCode, stdout, stderr } = await workplace.hook(payload());
      expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
      expect(stderr).toMatch(/cc-langfuse: the state folder cannot be written/);
    }
    expect(workplace.server.requests).toEqual([]);
    rmSync(workplace.stateFolder);
    await workplace.hook(payload());
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
  });

  test('if the start of a session cannot be written down: only turns that a Stop names are sent', async () => {
    mkdirSync(dirname(workplace.stateFolder), { recursive: true });
    writeFileSync(workplace.stateFolder, 'a file');
    const hook = (event: string, more: object = {}) =>
      workplace.hookAlone({ session_id: SESSION, transcript_path: transcript(), hook_event_name: event, ...more });
    expect(await hook('SessionStart', { source: 'startup' })).toMatchObject({ exitCode: 0, stdout: '' });
    rmSync(workplace.stateFolder);
    write([...turnLines(1), ...turnLines(2)]);
    await hook('Stop', { prompt_id: 'p2' });
    await hook('SessionEnd');
    expect(names()).toEqual(['claude-opus-5', 'Turn 2']);
  });

  test("if a folder is in the place of a session's file: the log names it", async () => {
    write(turnLines(1));
    const path = sessionFile(workplace.stateFolder, SESSION);
    mkdirSync(path, { recursive: true });
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(new Set(messages())).toEqual(new Set([`${path} cannot be read: not a regular file`]));
    expect(workplace.server.requests).toEqual([]);
  });

  test('if stdin stays open after the payload, with or without a newline', async () => {
    await workplace.start(payload());
    write(turnLines(1));
    for (const end of ['', '\n']) {
      expect(await workplace.hookWithOpenStdin(`${JSON.stringify(payload())}${end}`)).toMatchObject(quietly);
    }
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
    expect(messages()).toEqual([]);
  });

  test('if stdin stays open and empty: the hook ends at its deadline', async () => {
    workplace.env = { ...workplace.env, CC_LANGFUSE_TIMEOUT: '300' };
    expect(await workplace.hookWithOpenStdin('')).toMatchObject(quietly);
    expect(messages()).toEqual(['stdin did not end']);
  });

  test.each([
    ['a call whose input is nested 20,000 deep', [user('go'), deepCall(20_000)]],
    [
      'a turn of 5,000 lines without ids',
      [user('go'), ...Array.from({ length: 5_000 }, () => assistant(undefined, 'x'))],
    ],
    ['3,000 prompts before one answer', manyPrompts(3_000)],
    ['20,000 unreadable lines', [...turnLines(1), ...Array.from({ length: 20_000 }, () => 'no JSON')]],
  ])('if the transcript contains %s, and exports the turn before its deadline', async (_, lines) => {
    write(lines);
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(names().at(-1)).toBe('Turn 1');
    expect(workplace.log.length).toBeLessThan(20);
  });

  function deepCall(depth: number): string {
    const nested = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
    return JSON.stringify(assistant('m1', [toolUse('t1', 'Deep', 'HERE')])).replace('"HERE"', nested);
  }

  function manyPrompts(count: number): object[] {
    const prompts = Array.from({ length: count }, (_, n) => user(`p${n}`, { uuid: `u${n}`, parentUuid: `u${n - 1}` }));
    return [...prompts, assistant('m1', 'answer')];
  }

  test('if a key is missing', async () => {
    write(turnLines(1));
    const { LANGFUSE_SECRET_KEY: _, ...env } = workplace.env;
    workplace.env = env;
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(messages()).toEqual(['LANGFUSE_SECRET_KEY is not set', 'LANGFUSE_SECRET_KEY is not set']);
    expect(workplace.server.requests).toEqual([]);
  });

  test('if the URL is malformed', async () => {
    write(turnLines(1));
    const url = workplace.env.LANGFUSE_BASE_URL;
    workplace.env = { ...workplace.env, LANGFUSE_BASE_URL: 'localhost:3000' };
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    const message = 'LANGFUSE_BASE_URL: expected an http or https URL';
    expect(messages()).toEqual([message, message]);
    workplace.env = { ...workplace.env, LANGFUSE_BASE_URL: url };
    await workplace.hook(payload());
    expect(names()).toEqual(['claude-opus-5', 'Turn 1']);
  });

  test('if the keys contain characters that no header may contain: only the server refuses them', async () => {
    write(turnLines(1));
    workplace.env = { ...workplace.env, LANGFUSE_SECRET_KEY: 'sk lf ünïcode 🔑' };
    expect(await workplace.hook(payload())).toMatchObject(quietly);
    expect(messages()).toEqual([
      `the server refuses the keys (401): "Invalid credentials. Confirm that you've configured the correct host"; make new ones for "cc-langfuse install", or for the plugin`,
    ]);
  });

  test('and writes no key and no content to the log or the state', async () => {
    write([...turnLines(1), 'secret words {']);
    workplace.server.misbehave = (_, number) => (number === 0 ? { status: 401 } : { status: 400 });
    await workplace.hook(payload());
    await workplace.hook(payload());
    await workplace.hook('secret words');
    const written = readdirSync(workplace.stateFolder)
      .filter((file) => statSync(join(workplace.stateFolder, file)).isFile())
      .map((file) => readFileSync(join(workplace.stateFolder, file), 'utf8'))
      .join('');
    expect(written).not.toMatch(/embedded|secret words|question 1|answer 1/);
    expect(workplace.log.length).toBeGreaterThan(2);
  });
});
