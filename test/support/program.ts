import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isStop } from '../../src/commands/hook/hook-event.js';
import { HookPayload } from '../../src/commands/hook/payload.js';
import type { Place } from '../../src/shared/place.js';
import { serversFolder } from '../../src/state/servers.js';
import { startBefore } from './call-hook.js';
import { killProcesses, waitForProcesses } from './home-processes.js';
import { LangfuseServer, PUBLIC_KEY, SECRET_KEY } from './langfuse-server.js';
import { appendTurn, lastPromptId, SESSION } from './lines.js';
import { removeFolder } from './remove-folder.js';
import { readState, type SessionState } from './state-files.js';

export const PROGRAM = fileURLToPath(new URL('../../dist/cli.cjs', import.meta.url));
/** What Claude Code starts for each event. */
export const LAUNCHER = fileURLToPath(new URL('../../dist/hook.sh', import.meta.url));

/** How to wait for what a worker does in the background. */
export const POLL = { timeout: 60_000, interval: 25 };

export interface Ended {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly ms: number;
}

export type Environment = { readonly [name: string]: string | undefined };

/** Runs the built program without the caller's environment. */
export function run(
  args: readonly string[],
  env: Environment,
  stdin: string | Buffer = '',
  { keepStdinOpen = false, cwd = process.cwd(), onStart = (_: ChildProcess) => {} } = {},
): Promise<Ended> {
  return new Promise((resolve) => {
    const startedAt = performance.now();
    const child = spawn(process.execPath, [PROGRAM, ...args], {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      cwd,
    });
    onStart(child);
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk;
    });
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk;
    });
    child.stdin.on('error', () => {});
    child.stdin.write(stdin);
    if (!keepStdinOpen) child.stdin.end();
    child.on('close', (exitCode) => resolve({ exitCode, stdout, stderr, ms: performance.now() - startedAt }));
  });
}

/** Sets the time of a file, or of everything in a folder, to an hour ago, so that its session counts as idle. */
export function letIdle(path: string): void {
  const anHourAgo = new Date(Date.now() - 3_600_000);
  const names = statSync(path).isDirectory() ? readdirSync(path, { recursive: true, encoding: 'utf8' }) : [''];
  for (const name of names) utimesSync(join(path, name), anHourAgo, anHourAgo);
}

/** The variables that say where a home is: on Windows, Node looks at another one than shells do. */
export function homeVariables(home: string): Environment {
  return process.platform === 'win32' ? { HOME: home, USERPROFILE: home } : { HOME: home };
}

/** A hook's event: its session and variables, and further fields of the payload. */
export interface HookEvent {
  readonly session?: string;
  readonly env?: Environment;
  readonly [field: string]: unknown;
}

/** A home and a server of its own, with the program between them. */
export class Workplace {
  readonly home = mkdtempSync(join(tmpdir(), 'cc-langfuse-'));
  readonly server: LangfuseServer;
  readonly #started = new Set<string>();
  /** The program's environment. A test may set or unset variables. */
  env: Environment;

  constructor(server: LangfuseServer) {
    this.server = server;
    this.env = {
      ...homeVariables(this.home),
      TRACE_TO_LANGFUSE: 'true',
      LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
      LANGFUSE_SECRET_KEY: SECRET_KEY,
      LANGFUSE_BASE_URL: server.url,
    };
  }

  static async open(): Promise<Workplace> {
    return new Workplace(await LangfuseServer.start());
  }

  /**
   * Runs a hook, with further variables, as Claude Code does: each session begins with a SessionStart, before its first line, and
   * a Stop names its prompt. What is no payload is passed on as it is.
   */
  async hook(payload: unknown, env: Environment = {}): Promise<Ended> {
    const { success, data } = HookPayload.safeParse(payload);
    if (!success) return this.hookAlone(payload, env);
    await this.start(data, env);
    const named = isStop(data.hook_event_name) ? { prompt_id: lastPromptId(data.transcript_path) } : {};
    return this.hookAlone({ ...named, ...(payload as object) }, env);
  }

  /**
   * Calls the SessionStart hook of a session whose first event this would be, with further variables, as if its transcript had no
   * line yet, whatever has been written of it.
   */
  async start(event: HookPayload, env: Environment = {}): Promise<void> {
    const { session_id: session, hook_event_name: name } = event;
    if (this.#started.has(session)) return;
    this.#started.add(session);
    if (name !== 'SessionStart') await startBefore(event, { ...this.env, ...env });
  }

  /** Runs a hook without a SessionStart before it, and with what the payload has alone. */
  hookAlone(payload: unknown, env: Environment = {}): Promise<Ended> {
    const stdin = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload : JSON.stringify(payload);
    return run(['hook'], { ...this.env, ...env }, stdin);
  }

  /** Calls a hook alone, of a session that runs in the home, as Claude Code does: it names the session in the environment, too. */
  callHook(event: string, { session = SESSION, env = {}, ...more }: HookEvent = {}): Promise<Ended> {
    const payload = {
      session_id: session,
      transcript_path: this.transcriptOf(session),
      cwd: this.home,
      hook_event_name: event,
      ...more,
    };
    return this.hookAlone(payload, { CLAUDE_CODE_SESSION_ID: session, ...env });
  }

  /** Appends the nth turn of a session that runs in the home. */
  addTurn(n: number, session = SESSION): void {
    appendTurn(this.transcriptOf(session), n, { cwd: this.home });
  }

  /** Runs the Stop hook of such a session. */
  stop(session = SESSION): Promise<Ended> {
    const transcript = this.transcriptOf(session);
    return this.hook({ session_id: session, transcript_path: transcript, hook_event_name: 'Stop', cwd: this.home });
  }

  /** Starts a backfill, for which TRACE_TO_LANGFUSE does not matter. */
  backfill(...args: string[]): Promise<Ended> {
    return run(['backfill', '--yes', ...args], { ...this.env, TRACE_TO_LANGFUSE: undefined });
  }

  hookWithOpenStdin(stdin: string): Promise<Ended> {
    return run(['hook'], this.env, stdin, { keepStdinOpen: true });
  }

  /** The folder of all transcripts. */
  get projects(): string {
    return join(this.home, '.claude', 'projects');
  }

  /** The path of a session's transcript, in the project `-work`. */
  transcriptOf(session: string): string {
    return join(this.projects, '-work', `${session}.jsonl`);
  }

  letIdle(path = this.projects): void {
    letIdle(path);
  }

  /** Lets the server work again, and the minutes pass in which runs in front expect that it does not, and give up after 1.5 s. */
  repairServer(): void {
    this.server.misbehave = () => undefined;
    const folder = serversFolder(this.stateFolder);
    const names = existsSync(folder) ? readdirSync(folder) : [];
    for (const name of names.filter((each) => each.endsWith('.json'))) {
      const path = join(folder, name);
      const { outage, ...known } = JSON.parse(readFileSync(path, 'utf8'));
      if (outage) writeFileSync(path, JSON.stringify({ ...known, outage: { ...outage, until: Date.now() - 1 } }));
    }
  }

  get stateFolder(): string {
    return join(this.home, '.claude', 'state');
  }

  /** What the state knows of each session. */
  get state(): { [session: string]: SessionState } {
    return readState(this.stateFolder);
  }

  /** The runs of a session; undefined as long as there is no state. */
  readRuns(session = SESSION): readonly { readonly to?: Place }[] | undefined {
    try {
      return this.state[session]?.runs as { to?: Place }[] | undefined;
    } catch {
      return undefined;
    }
  }

  /** The log's lines. */
  get log(): { level: string; msg: string; [detail: string]: unknown }[] {
    try {
      const text = readFileSync(join(this.stateFolder, 'cc-langfuse_hook.log'), 'utf8');
      return text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line));
    } catch {
      return [];
    }
  }

  /** Waits until all that was started in the home has ended, workers in the background included. */
  haveEnded(): Promise<void> {
    return waitForProcesses(this.home);
  }

  async close(): Promise<void> {
    await killProcesses(this.home);
    await this.server.stop();
    await removeFolder(this.home);
  }
}
