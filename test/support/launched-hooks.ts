import type { ChildProcess } from 'node:child_process';
import { expect } from 'vitest';
import { findProcesses } from './home-processes.js';
import { appendTurn, SESSION } from './lines.js';
import { type Environment, LAUNCHER, POLL, Workplace } from './program.js';
import { startHook } from './start-hook.js';
import { StartedNodes } from './started-nodes.js';
import { listLocks, listWaiting } from './state-files.js';

interface How {
  readonly session?: string;
  readonly env?: Environment;
  /** Further fields of the payload. */
  readonly more?: object;
  readonly onStart?: (launcher: ChildProcess) => void;
}

/** A home whose hooks are started as Claude Code starts them in the terminal: by the launcher, with workers in the background. */
export class LaunchedHooks {
  readonly workplace: Workplace;
  readonly nodes = new StartedNodes();

  private constructor(workplace: Workplace) {
    this.workplace = workplace;
  }

  static async open(): Promise<LaunchedHooks> {
    const workplace = await Workplace.open();
    workplace.env = { ...workplace.env, CLAUDE_CODE_ENTRYPOINT: 'cli' };
    return new LaunchedHooks(workplace);
  }

  async close(): Promise<void> {
    await this.workplace.close();
    await this.nodes.remove();
  }

  /** Resolves once Claude Code would go on, with what it sees of the hook: success, and no output. */
  async launch(event: string, { session = SESSION, env, more, onStart }: How = {}) {
    const transcript = this.workplace.transcriptOf(session);
    const payload = { session_id: session, transcript_path: transcript, hook_event_name: event, ...more };
    const all = { PATH: process.env.PATH, ...this.workplace.env, CLAUDE_CODE_SESSION_ID: session, ...env };
    const launcher = [LAUNCHER, event, this.nodes.path];
    const { exitCode, signal, output } = await startHook(launcher, payload, { env: all, detached: true, onStart });
    const seen = { exitCode: signal === null ? exitCode : 0, output };
    expect(seen).toEqual({ exitCode: 0, output: '' });
    return seen;
  }

  /** Starts a session, and waits until its run is recorded. */
  async start(session = SESSION, env: Environment = {}): Promise<void> {
    await this.launch('SessionStart', { session, env, more: { source: 'startup' } });
    await expect.poll(() => this.readRuns(session), POLL).toBeDefined();
  }

  /** Ends the nth turn of a session, whose lines are written before. */
  async stop(n: number, { more, ...how }: How = {}): Promise<void> {
    appendTurn(this.workplace.transcriptOf(how.session ?? SESSION), n, { promptId: `p${n}` });
    await this.launch('Stop', { ...how, more: stopOf(n, more) });
  }

  /** The sessions of the Stops whose turns have not been sent. */
  readonly waiting = (): string[] => listWaiting(this.workplace.stateFolder);

  /** The locks that are held. */
  readonly locks = (): string[] => listLocks(this.workplace.stateFolder);

  /** The turns at the server, with their sessions. */
  readonly turns = (): string[] =>
    this.workplace.server.roots.map(({ trace, name }) => `${trace.sessionId} ${name}`).toSorted();

  /** The launchers and workers that run. */
  readonly findAlive = (): number[] => findProcesses(this.workplace.home);

  countStarted(command: string): number {
    return this.nodes.commands.filter((each) => each === command).length;
  }

  readonly readRuns = (session = SESSION) => this.workplace.readRuns(session);
}

/** What Claude Code says about the end of the nth turn. */
export function stopOf(n: number, more: object = {}): object {
  return { prompt_id: `p${n}`, last_assistant_message: `answer ${n}`, background_tasks: [], ...more };
}

/** The id of another session. */
export const sessionId = (n: number) => `${SESSION.slice(0, -2)}${String(n).padStart(2, '0')}`;

/** What the server has if it has so many turns of these sessions. */
export const allTurns = (sessions: readonly string[], count: number) =>
  sessions.flatMap((session) => Array.from({ length: count }, (_, n) => `${session} Turn ${n + 1}`)).toSorted();

export const HEADLESS = { CLAUDE_CODE_ENTRYPOINT: 'sdk-cli' };
