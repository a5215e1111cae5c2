import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { PUBLIC_KEY, SECRET_KEY } from './langfuse-server.js';
import { type Ended, type Environment, PROGRAM, run, Workplace } from './program.js';

/** As install registers it. */
export const COMMAND = `exec "${process.execPath}" "${PROGRAM}" hook # cc-langfuse`;
export const TIMEOUTS = { SessionStart: 5, Stop: 15, StopFailure: 15, SessionEnd: 15 };

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

interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warning' | 'broken' | 'none';
  readonly message: string;
  readonly fix?: string;
}

/** A home with a project in it, as doctor finds them. */
export class Patient {
  readonly workplace: Workplace;
  readonly project: string;

  private constructor(workplace: Workplace) {
    this.workplace = workplace;
    this.project = join(workplace.home, 'project');
    mkdirSync(this.project);
  }

  static async open(): Promise<Patient> {
    return new Patient(await Workplace.open());
  }

  /** Whatever is wrong, no key is ever printed. */
  async doctor(args: readonly string[] = [], env: Environment = {}): Promise<Ended> {
    const ended = await run(['doctor', ...args], { TZ: 'UTC', ...this.workplace.env, ...env }, '', {
      cwd: this.project,
    });
    const base64 = Buffer.from(`${PUBLIC_KEY}:${SECRET_KEY}`).toString('base64');
    for (const secret of [PUBLIC_KEY, SECRET_KEY, base64, 'hunter2'])
      expect(ended.stdout + ended.stderr).not.toContain(secret);
    return ended;
  }

  async checked(env: Environment = {}): Promise<{ exitCode: number | null; ok: boolean; checks: Check[] }> {
    const { stdout, stderr, exitCode } = await this.doctor(['--json'], env);
    expect(stderr).toBe('');
    return { exitCode, ...JSON.parse(stdout) };
  }

  /** What is told of one thing; the home is `~`. */
  async told(name: string, env: Environment = {}): Promise<Omit<Check, 'name'>[]> {
    const { checks, ok, exitCode } = await this.checked(env);
    const isBroken = checks.some(({ status }) => status === 'broken');
    expect({ ok, exitCode }).toEqual(isBroken ? { ok: false, exitCode: 1 } : { ok: true, exitCode: 0 });
    const short = (text: string) => text.replaceAll(this.workplace.home, '~');
    return checks
      .filter((check) => check.name === name)
      .map(({ status, message, fix }) => ({ status, message: short(message), ...(fix && { fix: short(fix) }) }));
  }

  writeSettings(settings: object | string, scope: keyof typeof SETTINGS = 'user', mode = 0o666): void {
    const path = join(this.workplace.home, SETTINGS[scope]);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, typeof settings === 'string' ? settings : JSON.stringify(settings), { mode });
  }

  /** The settings move from the shell into the user's file, as install would have them. */
  setUp(more: Environment = {}): void {
    const { HOME, ...env } = this.workplace.env;
    this.workplace.env = { HOME };
    this.writeSettings({ ...hooksOf(), env: { ...env, ...more } }, 'user', 0o600);
  }

  writeState(entries: object | string): void {
    mkdirSync(this.workplace.stateFolder, { recursive: true });
    const text = typeof entries === 'string' ? entries : JSON.stringify(entries);
    writeFileSync(join(this.workplace.stateFolder, 'cc-langfuse_state.json'), text, { mode: 0o600 });
  }

  close(): Promise<void> {
    return this.workplace.close();
  }
}
