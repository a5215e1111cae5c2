import { type ChildProcess, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { buildCommand } from '../../src/commands/setup/program-path.js';
import { BEGINNING } from '../../src/shared/place.js';
import { Places } from '../../src/transcript/file/place.js';
import { appendLines, appendTurn, at, lastPromptId, SESSION, user } from '../support/lines.js';
import { type Environment, LAUNCHER, POLL, PROGRAM, run, Workplace } from '../support/program.js';
import { removeFolder } from '../support/remove-folder.js';
import { expectEachSentOnce } from '../support/sent-once.js';
import { startHook } from '../support/start-hook.js';

let workplace: Workplace;
/** Has a `node` that writes down how it is started, waits as long as the file `hold` exists, runs the real one, and writes down that it has ended. */
let tools: string;

beforeEach(async () => {
  workplace = await Workplace.open();
  workplace.env = { ...workplace.env, CLAUDE_CODE_ENTRYPOINT: 'cli', CLAUDE_CODE_SESSION_ID: SESSION };
  tools = mkdtempSync(join(tmpdir(), 'cc-langfuse-tools-'));
  const node = `#!/bin/sh
shift
echo "$@" >> "${tools}/started"
while [ -e "${tools}/hold" ]; do sleep 0.02; done
"${process.execPath}" "${PROGRAM}" "$@"
echo >> "${tools}/ended"
`;
  writeFileSync(join(tools, 'node'), node, { mode: 0o755 });
});

afterEach(async () => {
  await workplace.close();
  await removeFolder(tools);
});

const path = () => workplace.transcriptOf(SESSION);
const turns = () => workplace.server.roots.map(({ name }) => name);
const started = () =>
  existsSync(join(tools, 'started')) ? readFileSync(join(tools, 'started'), 'utf8').split('\n') : [];
const countEnded = () => (existsSync(join(tools, 'ended')) ? readFileSync(join(tools, 'ended')).length : 0);
const hold = () => writeFileSync(join(tools, 'hold'), '');
const release = () => rmSync(join(tools, 'hold'));

const HEADLESS = { CLAUDE_CODE_ENTRYPOINT: 'sdk-cli' };
const OFF = { TRACE_TO_LANGFUSE: 'false' };

interface How {
  readonly env?: Environment;
  /** The shell that runs the launcher, instead of the one that it names. */
  readonly shell?: readonly string[];
  readonly node?: string;
  readonly payload?: object | string;
  readonly onStart?: (launcher: ChildProcess) => void;
}

/** Starts the launcher as Claude Code does, in a session of its own. Resolves when it has ended and its pipes are closed. */
function launch(event: string, { env, shell = [], node = join(tools, 'node'), payload, onStart }: How = {}) {
  const command = [...shell, LAUNCHER, event, node];
  return start(command, { ...workplace.env, ...env }, payload ?? describeEvent(event), onStart);
}

/** What Claude Code says of an event: a Stop names the last prompt. */
function describeEvent(event: string, more: object = {}) {
  const prompt = event.startsWith('Stop') ? { prompt_id: lastPromptId(path()) } : {};
  return { session_id: SESSION, transcript_path: path(), hook_event_name: event, ...prompt, ...more };
}

const start = (
  command: readonly string[],
  env: Environment,
  payload: object | string,
  onStart?: (launcher: ChildProcess) => void,
) => startHook(command, payload, { env: { PATH: process.env.PATH, ...env }, detached: true, onStart });

function killGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch {
    // Nobody is left in it.
  }
}

const SILENT = { exitCode: 0, signal: null, output: '' };
const hasProgram = (name: string) => spawnSync(name, ['--help']).error === undefined;

test.skipIf(!hasProgram('shellcheck'))('shellcheck finds nothing in the launcher', () => {
  const { status, stdout } = spawnSync('shellcheck', [LAUNCHER], { encoding: 'utf8' });
  expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
});

describe.each([
  ['sh', ['/bin/sh']],
  ['dash', ['dash']],
  ['bash', ['bash', '--posix']],
  ['busybox', ['busybox', 'sh']],
  ['zsh', ['zsh', '--emulate', 'sh']],
])('the launcher in %s', (name, shell) => {
  const inShell = test.skipIf(!hasProgram(shell[0] ?? name));

  inShell('hands a turn over to a worker, and ends in silence', async () => {
    appendTurn(path(), 1);
    expect(await launch('Stop', { shell })).toEqual(SILENT);
    await expect.poll(turns, POLL).toEqual(['Turn 1']);
    expect(started()).toEqual(['worker', '']);
  });

  inShell('passes on every byte of a payload that no pipe can hold, though its writer leaves at once', async () => {
    const characters = Array.from({ length: 0x800 }, (_, code) => String.fromCharCode(code + 1)).join('');
    const words = `$(touch "${tools}/run") \`id\` %s \\n \\\\ "quoted" 'single' ${characters}`;
    const payload = JSON.stringify({ words: words.repeat(200) });
    expect(payload.length).toBeGreaterThan(400_000);
    const node = join(tools, 'recorder');
    const record = `#!/bin/sh\ncat > "${tools}/part" && mv "${tools}/part" "${tools}/payload"\n`;
    writeFileSync(node, record, { mode: 0o755 });
    expect(await launch('Stop', { shell, node, payload })).toEqual(SILENT);
    await expect.poll(() => existsSync(join(tools, 'payload')), POLL).toBe(true);
    expect(readFileSync(join(tools, 'payload'), 'utf8') === payload).toBe(true);
    expect(existsSync(join(tools, 'run'))).toBe(false);
  });

  inShell('exits with 0 in silence if there is no node, no program, no home and no payload', async () => {
    const folder = join(tools, 'alone');
    mkdirSync(folder);
    cpSync(LAUNCHER, join(folder, 'hook.sh'));
    const [command = '', ...args] = shell;
    const which = spawnSync('/bin/sh', ['-c', `command -v ${command}`], { encoding: 'utf8' }).stdout.trim();
    for (const event of ['SessionStart', 'Stop', 'SessionEnd', ''])
      for (const env of [{}, { CC_LANGFUSE_WAIT: '1' }, OFF]) {
        const all = { PATH: '/nowhere', TRACE_TO_LANGFUSE: 'true', ...env };
        expect(await start([which, ...args, join(folder, 'hook.sh'), event], all, '')).toEqual(SILENT);
      }
  });

  inShell(
    'finds another node if the registered one is gone: the next of its version manager, never one that is too old',
    async () => {
      const nodes = join(tools, 'versions');
      const put = (version: string, text: string) => {
        mkdirSync(join(nodes, version, 'bin'), { recursive: true });
        writeFileSync(join(nodes, version, 'bin', 'node'), text, { mode: 0o755 });
      };
      put('v18.20.0', `#!/bin/sh\necho old >> "${tools}/started"\n`);
      put('v20.18.0', '#!/bin/sh\nexit 1\n');
      put('v22.1.0', `#!/bin/sh\n[ "$1" = -e ] && exec "${process.execPath}" "$@"\nexec "${tools}/node" "$@"\n`);
      const node = join(nodes, 'v20.19.0', 'bin', 'node');
      const [command = '', ...args] = shell;
      const which = spawnSync('/bin/sh', ['-c', `command -v ${command}`], { encoding: 'utf8' }).stdout.trim();
      const few = join(tools, 'few');
      mkdirSync(few);
      for (const program of ['cat', 'setsid', 'wc'])
        symlinkSync(
          spawnSync('/bin/sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).stdout.trim(),
          join(few, program),
        );
      appendTurn(path(), 1);
      const env = { ...workplace.env, PATH: few };
      const stop = [which, ...args, LAUNCHER, 'Stop', node];
      expect(await start(stop, env, describeEvent('Stop'))).toEqual(SILENT);
      await expect.poll(turns, POLL).toEqual(['Turn 1']);
      appendTurn(path(), 2);
      const waiting = { ...env, CC_LANGFUSE_WAIT: '1' };
      expect(await start(stop, waiting, describeEvent('Stop'))).toEqual(SILENT);
      expect(turns()).toEqual(['Turn 1', 'Turn 2']);
      expect(started()).toEqual(['worker', 'hook', '']);
    },
  );

  inShell('starts no node with tracing off, whatever the event', async () => {
    for (const event of ['SessionStart', 'Stop', 'StopFailure', 'SessionEnd'])
      for (const env of [
        OFF,
        { CC_TRACE_TO_LANGFUSE: 'false' },
        { ...OFF, ...HEADLESS },
        { ...OFF, CC_LANGFUSE_WAIT: '1' },
      ])
        expect(await launch(event, { shell, env: { ...env, PATH: `${tools}:${process.env.PATH}` } })).toEqual(SILENT);
    await workplace.haveEnded();
    expect(started()).toEqual([]);
  });

  inShell('leaves none of its pipes to the worker', async () => {
    hold();
    appendTurn(path(), 1);
    // It resolves once all of them are closed.
    expect(await launch('Stop', { shell })).toEqual(SILENT);
    await expect.poll(started, POLL).toEqual(['worker', '']);
    expect(turns()).toEqual([]);
    release();
    await expect.poll(turns, POLL).toEqual(['Turn 1']);
  });

  inShell('starts a worker that survives whatever happens to the process group of the launcher', async () => {
    hold();
    appendTurn(path(), 1);
    let group = 0;
    const remember = ({ pid = 0 }: ChildProcess) => {
      group = pid;
    };
    expect(await launch('Stop', { shell, onStart: remember })).toEqual(SILENT);
    for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) killGroup(group, signal);
    await expect.poll(started, POLL).toEqual(['worker', '']);
    killGroup(group, 'SIGKILL');
    release();
    await expect.poll(turns, POLL).toEqual(['Turn 1']);
  });
});

/** A folder with what the launcher needs, and neither setsid nor anything else of Linux. */
function makeFewPrograms(): string {
  const few = join(tools, 'few');
  mkdirSync(few);
  for (const name of ['cat', 'sleep', 'sh', 'bash', 'dash', 'busybox', 'zsh']) {
    const found = spawnSync('/bin/sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim();
    if (found !== '') symlinkSync(found, join(few, name));
  }
  // As on macOS, it pads what it prints.
  const wc = spawnSync('/bin/sh', ['-c', 'command -v wc'], { encoding: 'utf8' }).stdout.trim();
  writeFileSync(join(few, 'wc'), `#!/bin/sh\nprintf '%8s\\n' "$(${wc} "$@")"\n`, { mode: 0o755 });
  return few;
}

describe.each([
  ['dash', ['dash']],
  ['bash', ['bash', '--posix']],
  ['busybox', ['busybox', 'sh']],
  ['zsh', ['zsh', '--emulate', 'sh']],
])('the launcher in %s with the programs of macOS', (name, shell) => {
  const inShell = test.skipIf(!hasProgram(shell[0] ?? name));

  inShell('starts a worker that outlives it and ignores the signals of its process group', async () => {
    const env = { PATH: makeFewPrograms() };
    hold();
    appendTurn(path(), 1);
    let group = 0;
    const remember = ({ pid = 0 }: ChildProcess) => {
      group = pid;
    };
    expect(await launch('Stop', { shell, env, onStart: remember })).toEqual(SILENT);
    for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) killGroup(group, signal);
    await expect.poll(started, POLL).toEqual(['worker', '']);
    release();
    await expect.poll(turns, POLL).toEqual(['Turn 1']);
  });

  inShell('tells the worker how long the transcript was when the session began', async () => {
    appendTurn(path(), 1);
    const bytes = readFileSync(path()).length;
    const payload = describeEvent('SessionStart', { source: 'resume' });
    expect(await launch('SessionStart', { shell, env: { PATH: makeFewPrograms() }, payload })).toEqual(SILENT);
    await expect.poll(started, POLL).toEqual([`worker ${bytes}`, '']);
    await expect.poll(countEnded, POLL).toBe(1);
  });
});

test.skipIf(!hasProgram('bash'))(
  'without setsid, in the shell of macOS, the worker survives the end of the process group, too',
  async () => {
    const few = makeFewPrograms();
    hold();
    appendTurn(path(), 1);
    let group = 0;
    const remember = ({ pid = 0 }: ChildProcess) => {
      group = pid;
    };
    expect(await launch('Stop', { shell: ['bash', '--posix'], env: { PATH: few }, onStart: remember })).toEqual(SILENT);
    killGroup(group, 'SIGTERM');
    await expect.poll(started, POLL).toEqual(['worker', '']);
    killGroup(group, 'SIGKILL');
    release();
    await expect.poll(turns, POLL).toEqual(['Turn 1']);
  },
);

test('whenever the launcher is killed, no turn is lost or doubled once a later event has come', async () => {
  const kills: (string | null)[] = [];
  // Not in the background: it must be recorded before the first Stop.
  await run(
    ['hook'],
    { ...workplace.env, ...HEADLESS },
    JSON.stringify(describeEvent('SessionStart', { source: 'startup' })),
  );
  expect(workplace.state[SESSION]).toMatchObject({ runs: [{ from: BEGINNING }] });
  for (let n = 1; n <= 24; n += 1) {
    appendTurn(path(), n);
    const { exitCode, signal, output } = await launch('Stop', {
      node: process.execPath,
      onStart: async (launcher) => {
        // On a busy machine, each later moment may come when the launcher has ended.
        if (n > 2) await sleep(n / 3);
        launcher.kill(n % 2 === 0 ? 'SIGKILL' : 'SIGTERM');
      },
    });
    expect({ exitCode: exitCode ?? 0, output }).toEqual({ exitCode: 0, output: '' });
    kills.push(signal);
  }
  expect(new Set(kills)).toContain('SIGTERM');
  expect(new Set(kills)).toContain('SIGKILL');
  expect(await launch('SessionEnd', { env: HEADLESS, node: process.execPath })).toEqual(SILENT);
  expect(turns().toSorted()).toEqual(Array.from({ length: 24 }, (_, n) => `Turn ${n + 1}`).toSorted());
  expectEachSentOnce(workplace.server);
});

test('names with spaces, quotes, dollars and newlines are names', async () => {
  const folder = join(tools, `a $HOME \`id\` "b" 'c'\n\\d`);
  mkdirSync(folder);
  cpSync(dirname(PROGRAM), join(folder, 'dist'), { recursive: true });
  symlinkSync(process.execPath, join(folder, 'node'));
  const home = join(folder, 'home');
  const config = join(folder, 'claude');
  const launcher = join(folder, 'dist', 'hook.sh');
  const program = join(folder, 'dist', 'cli.cjs');
  const own = { platform: process.platform, node: join(folder, 'node'), program, launcher, claudeVersion: undefined };
  const transcript = join(home, '.claude', 'projects', '-work', `${SESSION}.jsonl`);
  for (const [n, env] of [{ HOME: home }, { HOME: home, CLAUDE_CONFIG_DIR: config }].entries()) {
    for (const event of ['SessionStart', 'Stop', 'SessionEnd']) {
      if (event === 'Stop') appendTurn(transcript, n + 1);
      const { command } = buildCommand(event, own);
      const payload = describeEvent(event, {
        transcript_path: transcript,
        source: event === 'SessionStart' ? 'startup' : undefined,
        prompt_id: `p${n + 1}`,
      });
      const all = { ...workplace.env, ...HEADLESS, ...env };
      expect(await start(['/bin/sh', '-c', command], all, payload)).toEqual(SILENT);
    }
    expect(existsSync(join(env.CLAUDE_CONFIG_DIR ?? join(home, '.claude'), 'state', 'cc-langfuse_sessions'))).toBe(
      true,
    );
  }
  expect(new Set(turns())).toEqual(new Set(['Turn 1', 'Turn 2']));
});

describe('headless', () => {
  test.each([HEADLESS, { CLAUDE_CODE_ENTRYPOINT: undefined }, { CI: 'true' }])(
    'SessionStart and Stop are handed over, and SessionEnd waits for the acknowledgement: %j',
    async (env) => {
      await workplace.start(describeEvent('Stop'));
      hold();
      for (const event of ['SessionStart', 'Stop', 'StopFailure']) {
        if (event === 'Stop') appendTurn(path(), 1);
        expect(await launch(event, { env })).toEqual(SILENT);
      }
      expect(workplace.server.requests).toEqual([]);
      expect(await launch('SessionEnd', { env, node: process.execPath })).toEqual(SILENT);
      expect(turns()).toEqual(['Turn 1']);
      release();
      await expect.poll(() => started().length, POLL).toBe(4);
      expect(started()).toContain('worker 0');
    },
  );

  test('SessionEnd waits for a worker that is sending the turn', async () => {
    const hanging = workplace.server.hang();
    appendTurn(path(), 1);
    await launch('Stop', { env: HEADLESS });
    await expect.poll(() => hanging.count, POLL).toBe(1);
    let hasEnded = false;
    const ended = launch('SessionEnd', { env: HEADLESS }).then((result) => {
      hasEnded = true;
      return result;
    });
    await expect.poll(started, POLL).toEqual(['worker', 'hook', '']);
    await sleep(300);
    expect(hasEnded).toBe(false);
    hanging.release();
    expect(await ended).toEqual(SILENT);
    expect(turns()).toEqual(['Turn 1']);
    expectEachSentOnce(workplace.server);
  });

  test('what the keys lack is not said, since it would be in the output', async () => {
    const env = { ...HEADLESS, LANGFUSE_SECRET_KEY: undefined };
    for (const event of ['SessionStart', 'Stop', 'SessionEnd']) expect(await launch(event, { env })).toEqual(SILENT);
  });
});

describe('in the terminal', () => {
  test('nothing waits, SessionEnd included', async () => {
    hold();
    for (const event of ['SessionStart', 'Stop', 'SessionEnd']) {
      if (event === 'Stop') appendTurn(path(), 1);
      expect(await launch(event)).toEqual(SILENT);
    }
    expect(workplace.server.requests).toEqual([]);
    release();
    await expect.poll(turns, POLL).toEqual(['Turn 1']);
    expectEachSentOnce(workplace.server);
  });

  test('the user is told once per session that keys are missing; node is in front only for that', async () => {
    const env = { LANGFUSE_SECRET_KEY: ' ' };
    const message = 'cc-langfuse: LANGFUSE_SECRET_KEY not set. Nothing is exported. Run: cc-langfuse doctor';
    const { output, exitCode } = await launch('SessionStart', { env });
    expect({ exitCode, message: JSON.parse(output).systemMessage }).toEqual({ exitCode: 0, message });
    expect(await launch('Stop', { env })).toEqual(SILENT);
    await expect.poll(started, POLL).toEqual(['hook', 'worker', '']);
  });

  test('the user is told that the keys were refused', async () => {
    workplace.server.misbehave = () => ({ status: 401 });
    appendTurn(path(), 1);
    expect(await launch('Stop', { env: { CC_LANGFUSE_WAIT: '1' } })).toEqual(SILENT);
    const { output } = await launch('Stop');
    expect(JSON.parse(output).systemMessage).toContain('Langfuse refused the keys (401)');
    expect(await launch('Stop')).toEqual(SILENT);
  });

  test('keys that the user entered for the plugin are not missing', async () => {
    const { LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL } = workplace.env;
    const env = {
      LANGFUSE_PUBLIC_KEY: undefined,
      LANGFUSE_SECRET_KEY: undefined,
      LANGFUSE_BASE_URL: undefined,
      CLAUDE_PLUGIN_ROOT: '/plugin',
      CLAUDE_PLUGIN_OPTION_PUBLIC_KEY: LANGFUSE_PUBLIC_KEY,
      CLAUDE_PLUGIN_OPTION_SECRET_KEY: LANGFUSE_SECRET_KEY,
      CLAUDE_PLUGIN_OPTION_BASE_URL: LANGFUSE_BASE_URL,
    };
    appendTurn(path(), 1);
    expect(await launch('Stop', { env })).toEqual(SILENT);
    await expect.poll(turns, POLL).toEqual(['Turn 1']);
    expect(started()).toEqual(['worker', '']);
  });
});

test.each([{}, HEADLESS])('with CC_LANGFUSE_WAIT=1 all but SessionStart wait: %j', async (entrypoint) => {
  const env = { ...entrypoint, CC_LANGFUSE_WAIT: '1' };
  expect(await launch('SessionStart', { env })).toEqual(SILENT);
  await expect.poll(() => workplace.readRuns(), POLL).toBeDefined();
  for (const [n, event] of ['Stop', 'StopFailure', 'SessionEnd'].entries()) {
    appendTurn(path(), n + 1);
    expect(await launch(event, { env })).toEqual(SILENT);
    expect(turns()).toHaveLength(n + 1);
  }
  expect(started().filter((each) => each === 'hook')).toHaveLength(3);
});

describe('a worker that starts late', () => {
  /** Runs what comes after an event before its worker does anything. */
  async function late(event: string, how: How, meanwhile: () => Promise<void>): Promise<void> {
    const before = countEnded();
    hold();
    expect(await launch(event, how)).toEqual(SILENT);
    await meanwhile();
    release();
    await expect.poll(countEnded, POLL).toBe(before + 1);
  }
  const wait = { node: process.execPath, env: { CC_LANGFUSE_WAIT: '1' } };
  const startOf = (source: string) => describeEvent('SessionStart', { source });

  test('does not take what was said with tracing off for the run before it, which was killed', async () => {
    await workplace.start(describeEvent('Stop'));
    appendTurn(path(), 1);
    await launch('Stop', wait);
    appendTurn(path(), 2);
    await late('SessionStart', { env: OFF, payload: startOf('resume') }, async () => appendTurn(path(), 3));
    await late('SessionStart', { payload: startOf('resume') }, async () => appendTurn(path(), 4));
    await launch('Stop', wait);
    expect(turns()).toEqual(['Turn 1', 'Turn 2', 'Turn 4']);
  });

  test('begins the run at its first prompt, though that is written by then', async () => {
    await workplace.start(describeEvent('Stop'));
    appendTurn(path(), 1);
    await launch('Stop', wait);
    await launch('SessionEnd', wait);
    const end = new Places(path()).at();
    await late('SessionStart', { payload: startOf('resume') }, async () => {
      // The user pressed Esc, so no Stop comes.
      appendLines(path(), user('question 2', { uuid: 'u2', timestamp: at(20) }));
      appendLines(path(), user('[Request interrupted by user]', { uuid: 'i2', timestamp: at(21) }));
      appendTurn(path(), 3);
    });
    expect(workplace.state[SESSION]?.runs).toMatchObject([{ to: end }, { from: end }]);
  });

  test('does not begin a run again that has ended by then', async () => {
    await late('SessionStart', { payload: startOf('startup') }, async () => {
      appendTurn(path(), 1);
      await launch('Stop', wait);
      await launch('SessionEnd', wait);
    });
    expect(workplace.state[SESSION]?.runs).toMatchObject([{ from: BEGINNING, to: new Places(path()).at() }]);
    expect(turns()).toEqual(['Turn 1']);
  });
});
