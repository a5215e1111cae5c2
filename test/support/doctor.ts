import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import type { AddressInfo, Server } from 'node:net';
import { dirname, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { runChecks } from '../../src/commands/doctor/checks.js';
import type { Finding } from '../../src/commands/doctor/finding.js';
import { buildJsonReport, formatReport } from '../../src/commands/doctor/report.js';
import { LangfuseServer, PUBLIC_KEY, SECRET_KEY } from './langfuse-server.js';
import { type Ended, type Environment, PROGRAM, run, Workplace } from './program.js';
import { sessionFile } from './state-files.js';

/** The command that install registers, for any event. */
export const COMMAND = `exec "${dirname(PROGRAM)}/hook.sh" Stop "${process.execPath}" # cc-langfuse`;
export const TIMEOUTS = { SessionStart: 5, Stop: 15, StopFailure: 15, SessionEnd: 15 };

/** Settings that register a command for events. */
export function hooksOf(command = COMMAND, timeouts: { [event: string]: number | undefined } = TIMEOUTS) {
  const entries = Object.entries(timeouts).map(([event, timeout]) => [
    event,
    [{ hooks: [{ type: 'command', command, timeout }] }],
  ]);
  return { hooks: Object.fromEntries(entries) };
}

export const SETTINGS = {
  user: '.claude/settings.json',
  project: 'project/.claude/settings.json',
  local: 'project/.claude/settings.local.json',
};

/** What doctor found; the home is `~`. */
class Findings {
  readonly all: readonly Finding[];

  constructor(all: readonly Finding[]) {
    this.all = all;
  }

  /** What one check found. */
  of(wanted: string): { status: string; message: string; fix?: string }[] {
    const found = this.all.filter(({ name }) => name === wanted);
    return found.map(({ status, message, fix }) => ({ status, message, ...(fix && { fix }) }));
  }

  /** What the checks with such names found, as `status name: message`. */
  lines(names: RegExp): string[] {
    const found = this.all.filter(({ name }) => names.test(name));
    return found.map(({ status, name, message }) => `${status} ${name}: ${message}`);
  }
}

/** A home with a project in it, for doctor to check. Whatever it checks, it must never print a key. */
export class DoctorHome extends Workplace {
  readonly project = join(this.home, 'project');
  /** The path of the built program, as the checks see it when they run in this process. */
  readonly program = join(this.home, 'cc-langfuse', 'dist', 'cli.cjs');
  readonly launcher = join(dirname(this.program), 'hook.sh');

  private constructor(server: LangfuseServer) {
    super(server);
    mkdirSync(this.project);
    mkdirSync(dirname(this.program), { recursive: true });
    writeFileSync(this.program, 'usage: cc-langfuse hook', { mode: 0o755 });
    cpSync(new URL('../../src/commands/hook/hook.sh', import.meta.url), this.launcher);
    chmodSync(this.launcher, 0o755);
  }

  static override async open(): Promise<DoctorHome> {
    return new DoctorHome(await LangfuseServer.start());
  }

  /** Runs every check in this process, as the built program would run it in the project. */
  async check(more: Environment = {}, cwd = this.project): Promise<Findings> {
    const env = { PATH: process.env.PATH, TZ: 'UTC', ...this.env, ...more };
    const parts = await asProgram(this.program, env, () => runChecks({ ...env }, cwd));
    expectNoKeys(JSON.stringify(buildJsonReport(parts)) + formatReport(parts, '').join('\n'));
    const all = JSON.stringify(parts.flatMap(({ findings }) => findings));
    return new Findings(JSON.parse(all.replaceAll(this.home, '~')));
  }

  /** Starts the built program in the project. */
  async doctor(args: readonly string[] = [], env: Environment = {}): Promise<Ended> {
    const ended = await run(['doctor', ...args], { TZ: 'UTC', ...this.env, ...env }, '', {
      cwd: this.project,
    });
    expectNoKeys(ended.stdout + ended.stderr);
    return ended;
  }

  /** Runs every check in the built program, for what Node reads from the environment when it starts. */
  async checkWithProgram(env: Environment = {}): Promise<Findings> {
    const { stdout, stderr } = await this.doctor(['--json'], env);
    expect(stderr).toBe('');
    return new Findings(JSON.parse(stdout.replaceAll(this.home, '~')).checks);
  }

  writeSettings(settings: object | string, scope: keyof typeof SETTINGS = 'user', mode = 0o666): void {
    const path = join(this.home, SETTINGS[scope]);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, typeof settings === 'string' ? settings : JSON.stringify(settings), { mode });
  }

  /** Moves the settings from the shell to the user's file, as install writes them. */
  setUp(more: Environment = {}): void {
    const { HOME, ...env } = this.env;
    this.env = { HOME };
    this.writeSettings({ ...hooksOf(), env: { ...env, ...more } }, 'user', 0o600);
  }

  /** Writes how far sessions have been exported to a destination; of one that is a text, that is all that is known of it. */
  writeState(sessions: { readonly [session: string]: object | string }, destination = 'somewhere'): void {
    for (const [id, progress] of Object.entries(sessions)) {
      const path = (name: string) => sessionFile(this.stateFolder, id, name);
      mkdirSync(path(''), { recursive: true, mode: 0o700 });
      const isWhole = typeof progress !== 'string';
      const session = isWhole ? JSON.stringify({ version: 1, id, facts: [] }) : progress;
      writeFileSync(path('session.json'), session, { mode: 0o600 });
      if (isWhole) writeFileSync(path(`${destination}.json`), JSON.stringify(progress), { mode: 0o600 });
    }
  }
}

/** Runs `act` with the path and the environment of a program. The environment decides about the home and about proxies. */
async function asProgram<T>(path: string, env: Environment, act: () => Promise<T>): Promise<T> {
  const [before, program] = [{ ...process.env }, process.argv[1] ?? ''];
  replaceEnvironment(env);
  process.argv[1] = path;
  try {
    return await act();
  } finally {
    replaceEnvironment(before);
    process.argv[1] = program;
  }
}

/** Node asks the system for some variables, such as HOME, so assigning a new object to `process.env` is not enough. */
function replaceEnvironment(env: Environment): void {
  for (const name of Object.keys(process.env)) delete process.env[name];
  for (const [name, value] of Object.entries(env)) if (value !== undefined) process.env[name] = value;
}

function expectNoKeys(text: string): void {
  const base64 = Buffer.from(`${PUBLIC_KEY}:${SECRET_KEY}`).toString('base64');
  for (const secret of [PUBLIC_KEY, SECRET_KEY, base64, 'hunter2']) expect(text).not.toContain(secret);
}

/** Starts a server for the rest of the test; returns its port. */
export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}
