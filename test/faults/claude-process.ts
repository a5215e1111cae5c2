import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Config } from './turn-oracle.js';

/** A process of Claude Code in a session. */
export class ClaudeProcess {
  readonly config: Config;
  /** Whether a hook saw its start. */
  readonly isStartSeen: boolean;
  hasAsked = false;
  /** Whether an event has told how it is traced. */
  isTold = false;
  /** The last line of its conversation, from which the next one descends. */
  lastLine: string | undefined;
  /** Whether no other process has been in its session at the same time. */
  isAlone = true;
  /** Whether the user has unmuted its session while it ran. */
  isUnmuted = false;
  /** What stands for it, if hooks know the process. */
  readonly #running: ChildProcess | undefined;

  constructor(config: Config, { isStartSeen, hasPid }: { readonly isStartSeen: boolean; readonly hasPid: boolean }) {
    this.config = config;
    this.isStartSeen = isStartSeen;
    this.#running = hasPid ? spawn('sleep', ['600'], { stdio: 'ignore' }) : undefined;
  }

  get pid(): number | undefined {
    return this.#running?.pid;
  }

  async kill(): Promise<void> {
    if (this.#running?.kill('SIGKILL')) await once(this.#running, 'exit');
  }
}
