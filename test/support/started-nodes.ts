import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeFolder } from './remove-folder.js';

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

  /** Returns false if it has just ended. */
  kill(pid: number): boolean {
    try {
      return process.kill(pid, 'SIGKILL');
    } catch {
      return false;
    }
  }

  async remove(): Promise<void> {
    for (const pid of this.findAlive()) this.kill(pid);
    await removeFolder(this.#folder);
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
