import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Environment, LAUNCHER } from './program.js';
import { removeFolder } from './remove-folder.js';
import { startHook } from './start-hook.js';

/** A `node` for launchers that writes down each process. */
export class StartedNodes {
  readonly #folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-node-'));

  constructor() {
    const script = `#!/bin/sh\necho "$2 $$" >> "${this.#list}"\nexec "${process.execPath}" "$@"\n`;
    writeFileSync(this.path, script, { mode: 0o755 });
  }

  get path(): string {
    return join(this.#folder, 'node');
  }

  get #list(): string {
    return join(this.#folder, 'started');
  }

  /** Starts the launcher as Claude Code does. Resolves once its worker has started, or the hook in front has ended. */
  async launch(event: string, payload: { readonly session_id: string }, env: Environment): Promise<void> {
    const { length: before } = this.commands;
    const all = { PATH: process.env.PATH, TRACE_TO_LANGFUSE: 'true', ...env };
    const own = { ...all, CLAUDE_CODE_SESSION_ID: payload.session_id };
    await startHook([LAUNCHER, event, this.path], { ...payload, hook_event_name: event }, { env: own });
    while (this.commands.length === before) await sleep(5);
  }

  /** What each was started as, `worker` or `hook`, in the order in which they were. */
  get commands(): string[] {
    return this.#read().map(({ command }) => command);
  }

  /** Those that still run, the oldest first. A killed process can keep its pid for a while. */
  findAlive(): number[] {
    const isAlive = (pid: number) => {
      try {
        return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
      } catch {
        return false;
      }
    };
    return this.#read().flatMap(({ pid }) => (isAlive(pid) ? [pid] : []));
  }

  remove(): Promise<void> {
    return removeFolder(this.#folder);
  }

  #read(): { command: string; pid: number }[] {
    const text = existsSync(this.#list) ? readFileSync(this.#list, 'utf8') : '';
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const [command = '', pid] = line.split(' ');
        return { command, pid: Number(pid) };
      });
  }
}
