import { mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HOOK_EVENTS, STATE_PLACES, WAITS } from '../../src/config/platform.js';
import { waitForProcesses } from '../support/home-processes.js';
import { type Environment, LAUNCHER } from '../support/program.js';
import { removeFolder } from '../support/remove-folder.js';
import { startHook } from '../support/start-hook.js';

const SESSION = 'a-session';
const KEYS = { LANGFUSE_PUBLIC_KEY: 'pk', LANGFUSE_SECRET_KEY: 'sk' };
const ENTRYPOINTS = [undefined, 'cli', 'claude-desktop', 'sdk-cli', 'sdk-py'];
const BOTH = [false, true];
const EVENTS = Object.entries(HOOK_EVENTS);

/** Where everything of a test is. */
let folder: string;
/** A folder with all programs that a launcher may use, but for `setsid`. */
let withoutSetsid: string;
/** What each started launcher should start, and the folder in which it does. */
let expected: Map<string, string>;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-table-'));
  expected = new Map();
  withoutSetsid = join(folder, 'bin');
  mkdirSync(withoutSetsid);
  for (const name of ['cat', 'wc', 'sh', 'ps', 'mv']) symlinkSync(findProgram(name), join(withoutSetsid, name));
});

afterEach(() => removeFolder(folder));

function findProgram(name: string): string {
  const found = ['/usr/bin', '/bin'].find((each) => readdirSync(each).includes(name));
  return join(found ?? '', name);
}

/**
 * Starts the launcher with a `node` that writes down how it was started. What is in front has the pid of the launcher; what
 * is in the background has a process group of its own.
 */
async function launch(event: string, env: Environment, wanted: string, shell: readonly string[] = []): Promise<void> {
  const own = join(folder, `${expected.size}`);
  mkdirSync(own, { recursive: true });
  const node = join(own, 'node');
  const script = `#!/bin/sh
shift
echo "$*/$$/$(ps -o pgid= -p $$)" > "${own}/part" && mv "${own}/part" "${own}/started"
cat > /dev/null
`;
  writeFileSync(node, script, { mode: 0o755 });
  expected.set(`${expected.size} ${event} ${JSON.stringify(env)}`, wanted);
  // Whatever it starts has the folder in its environment, also if its home is another one.
  const all = { PATH: process.env.PATH, HOME: own, OF_LAUNCH: own, CLAUDE_CODE_SESSION_ID: SESSION, ...env };
  const payload = { session_id: SESSION, transcript_path: join(own, 'none.jsonl'), hook_event_name: event };
  let launcher = 0;
  const remember = ({ pid = 0 }: { pid?: number | undefined }) => {
    launcher = pid;
  };
  const how = { env: all, cwd: own, detached: true, onStart: remember };
  expect(await startHook([...shell, LAUNCHER, event, node], payload, how)).toEqual({
    exitCode: 0,
    signal: null,
    output: '',
  });
  writeFileSync(join(own, 'launcher'), `${launcher}`);
}

/** What the nth launcher has started. */
function describeStarted(n: number): string {
  const names = readdirSync(join(folder, `${n}`));
  if (!names.includes('started')) return 'nothing';
  const launcher = readFileSync(join(folder, `${n}`, 'launcher'), 'utf8');
  const [command, pid, group] = readFileSync(join(folder, `${n}`, 'started'), 'utf8').split('/');
  if (pid === launcher) return `${command} in front`;
  return `${command} ${group?.trim() === launcher ? 'with the launcher' : 'in the background'}`;
}

async function compare(): Promise<void> {
  const started = () => Object.fromEntries([...expected.keys()].map((name, n) => [name, describeStarted(n)]));
  for (let n = 0; n < expected.size; n += 1) await waitForProcesses(join(folder, `${n}`));
  expect(started()).toEqual(Object.fromEntries(expected));
}

/** What the table says about an event with tracing on. */
function findStart(event: string, env: Environment, hasNotice: boolean): string {
  const { command, waits, mayNotify } = rowOf(event);
  const isAwaited = waits.some((wait) => WAITS[wait](env));
  const isNotified = mayNotify && hasNotice && !WAITS.headless(env);
  if (isAwaited || isNotified) return `${command === 'worker' ? 'hook' : command} in front`;
  return findInBackground(event);
}

function findInBackground(event: string): string {
  const { command, measures } = rowOf(event);
  if (command === 'none') return 'nothing';
  return `${command}${measures ? ' 0' : ''} in the background`;
}

function rowOf(event: string) {
  return HOOK_EVENTS[event] ?? expect.fail(event);
}

test.each(EVENTS.map(([event]) => event))(
  'the launcher starts for %s what the table says, whoever waits',
  async (event) => {
    for (const CLAUDE_CODE_ENTRYPOINT of ENTRYPOINTS)
      for (const CI of [undefined, 'true'])
        for (const CC_LANGFUSE_WAIT of [undefined, '0', '1'])
          for (const hasNotice of BOTH) {
            const keys = hasNotice ? {} : KEYS;
            const facts = { TRACE_TO_LANGFUSE: 'true', CC_LANGFUSE_LIVE: 'true', ...keys };
            const env = { ...facts, CLAUDE_CODE_ENTRYPOINT, CI, CC_LANGFUSE_WAIT };
            await launch(event, env, findStart(event, env, hasNotice));
          }
    await compare();
  },
);

test('what runs in the background has a process group of its own without setsid, too, as on macOS', async () => {
  for (const [event] of EVENTS) {
    const facts = { TRACE_TO_LANGFUSE: 'true', CC_LANGFUSE_LIVE: 'true', CLAUDE_CODE_ENTRYPOINT: 'cli', ...KEYS };
    // The shell of macOS. Without setsid, dash would need a terminal for that.
    await launch(event, { ...facts, PATH: withoutSetsid }, findStart(event, facts, false), ['/bin/bash', '--posix']);
  }
  await compare();
});

test('turns are followed only if they are to be seen while they run', async () => {
  for (const [event, { registeredBy }] of EVENTS) {
    const env = { TRACE_TO_LANGFUSE: 'true', CLAUDE_CODE_ENTRYPOINT: 'cli', ...KEYS };
    await launch(event, env, registeredBy === 'install --live' ? 'nothing' : findStart(event, env, false));
  }
  await compare();
});

test('with tracing off something is started only if the table says so', async () => {
  for (const [event, { withTracingOff }] of EVENTS)
    for (const wasTraced of BOTH)
      for (const CLAUDE_CODE_ENTRYPOINT of ['cli', 'sdk-cli']) {
        const CLAUDE_CONFIG_DIR = makeTraced(wasTraced ? SESSION : 'another');
        const env = { CLAUDE_CODE_ENTRYPOINT, CC_LANGFUSE_LIVE: 'true', CLAUDE_CONFIG_DIR };
        const isRecorded = withTracingOff === 'recorded if it was on' && wasTraced;
        const otherwise = withTracingOff === 'as usual' ? findStart(event, env, false) : 'nothing';
        await launch(event, env, isRecorded ? findInBackground(event) : otherwise);
      }
  await compare();
});

test('a relative folder for the state counts only where the table says so', async () => {
  for (const { variable, below, isAbsolute } of STATE_PLACES) {
    const home = mkdtempSync(join(folder, 'home-'));
    openSession(`${home}/.claude/state`);
    const cwd = join(folder, `${expected.size}`);
    openSession(`${cwd}/relative${below}`, 'another');
    const env = { HOME: home, [variable]: 'relative', CLAUDE_CODE_ENTRYPOINT: 'cli' };
    await launch('Stop', env, isAbsolute ? 'worker in the background' : 'nothing');
  }
  await compare();
});

test('the launcher looks for the state where the table says', async () => {
  for (const [n, { variable }] of STATE_PLACES.entries())
    for (const [place, { below }] of STATE_PLACES.entries()) {
      const folders = STATE_PLACES.map(() => mkdtempSync(join(folder, 'state-')));
      const later = STATE_PLACES.map((each, index) => [each.variable, index < n ? '' : folders[index]] as const);
      openSession(`${folders[place]}${below}`);
      const env: Environment = { ...Object.fromEntries(later), CLAUDE_CODE_ENTRYPOINT: 'cli' };
      await launch('Stop', env, place === n ? 'worker in the background' : 'nothing');
      expect(env[variable]).toBe(folders[n]);
    }
  await compare();
});

/** Returns a folder of Claude Code's in which a session is traced. */
function makeTraced(session: string): string {
  const claude = mkdtempSync(join(folder, 'claude-'));
  openSession(join(claude, 'state'), session);
  return claude;
}

function openSession(state: string, session = SESSION): void {
  mkdirSync(join(state, 'cc-langfuse_sessions', session), { recursive: true });
  writeFileSync(join(state, 'cc-langfuse_sessions', session, 'open'), '');
}
