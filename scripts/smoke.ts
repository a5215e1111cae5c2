// npm run smoke: builds the program, installs it in an empty home, plays a recorded session through the hooks as install has
// registered them, and compares what arrives in an embedded Langfuse. It runs on Linux, macOS and Windows.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Newcomer } from '../test/support/newcomer.js';
import type { Ended } from '../test/support/program.js';
import { play, recording } from '../test/support/recording.js';
import { startHook } from '../test/support/start-hook.js';
import { describeTraces } from '../test/support/traces.js';
import { bundle } from './bundle.js';

const RECORDING = recording('p-simple');
/** The hooks hand over to workers in the background. */
const ARRIVAL_MS = 30_000;
const POLL_MS = 50;

/** How settings register a program for an event. */
interface Registered {
  readonly command: string;
  readonly args?: readonly string[];
}

/** On Windows, what install registers depends on Claude Code's version. */
const CLAUDE_VERSIONS = process.platform === 'win32' ? ['2.1.138', '2.1.139'] : [undefined];

await bundle();
for (const claudeVersion of CLAUDE_VERSIONS) await check(claudeVersion);

async function check(claudeVersion: string | undefined): Promise<void> {
  const newcomer = await Newcomer.arrive();
  try {
    if (claudeVersion !== undefined) pretendClaude(newcomer, claudeVersion);
    mkdirSync(join(newcomer.home, 'p-simple'));
    expectSuccess('install', await newcomer.install());
    const settings = JSON.parse(newcomer.settings);
    await play(RECORDING, newcomer.home, async ({ event, payload }) => {
      const [registered] = settings.hooks[event]?.[0].hooks ?? [];
      if (registered) await callHook(event, registered, payload, { ...newcomer.env, ...settings.env });
    });
    await expectArrival(newcomer);
    const status = await newcomer.run(['status', '--json'], '', join(newcomer.home, 'p-simple'));
    expectSuccess('status', status);
    const { tracing, newest, pending } = JSON.parse(status.stdout);
    if (!tracing.on || tracing.problems.length > 0 || newest?.url === undefined || pending.length > 0)
      throw new Error(`status: ${status.stdout}`);
    expectSuccess('uninstall', await newcomer.run(['uninstall', '--yes']));
    const about = claudeVersion === undefined ? '' : `, registered for Claude Code ${claudeVersion}`;
    process.stdout.write(`passed on ${process.platform} with Node ${process.version}${about}\n`);
  } finally {
    await newcomer.close();
  }
}

/** Puts a program on the PATH that only says which version of Claude Code it is. */
function pretendClaude(newcomer: Newcomer, version: string): void {
  const folder = join(newcomer.home, 'bin');
  mkdirSync(folder);
  writeFileSync(join(folder, 'claude.cmd'), `@echo ${version} (Claude Code)\r\n`);
  newcomer.env = { ...newcomer.env, PATH: `${folder}${delimiter}${process.env.PATH}` };
}

/** Starts a hook as Claude Code does: a command with arguments by itself, another in a shell, which on Windows is that of Git. */
async function callHook(
  event: string,
  { command, args }: Registered,
  payload: object,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const hook = args ? [command, ...args] : [findShell(), '-c', command];
  const headless = { PATH: process.env.PATH, ...env, CLAUDE_CODE_ENTRYPOINT: 'sdk-cli' };
  const { exitCode, output } = await startHook(hook, payload, { env: headless });
  if (exitCode !== 0 || output !== '')
    throw new Error(`the hook for ${event} ended with ${exitCode} and printed: ${output}`);
}

function findShell(): string {
  if (process.platform !== 'win32') return '/bin/sh';
  return process.env.CLAUDE_CODE_GIT_BASH_PATH ?? 'C:\\Program Files\\Git\\bin\\bash.exe';
}

async function expectArrival(newcomer: Newcomer): Promise<void> {
  const expected = readFileSync(join(RECORDING.folder, 'expected.json'), 'utf8');
  const until = Date.now() + ARRIVAL_MS;
  while (describeTraces(newcomer.server.observations) !== expected) {
    if (Date.now() > until) {
      const arrived = describeTraces(newcomer.server.observations);
      throw new Error(`something else arrived:\n${arrived}\nlog: ${JSON.stringify(newcomer.log, null, 2)}`);
    }
    await sleep(POLL_MS);
  }
}

function expectSuccess(command: string, { exitCode, stdout, stderr }: Ended): void {
  if (exitCode !== 0) throw new Error(`${command} ended with ${exitCode}: ${stdout}${stderr}`);
}
