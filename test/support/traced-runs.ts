import { join } from 'node:path';
import { ClaudeSession } from './claude-session.js';
import { LangfuseServer } from './langfuse-server.js';
import { type Ended, type Environment, run, Workplace } from './program.js';

/** A workplace in whose folder `work` two sessions run, each several times, with settings that may differ. */
export class TracedRuns extends Workplace {
  readonly session = this.#createSession('aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
  readonly other = this.#createSession('bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');

  readonly #servers: LangfuseServer[] = [];

  static override async open(): Promise<TracedRuns> {
    return new TracedRuns(await LangfuseServer.start());
  }

  /** `claude -p`: one turn, with the hooks of a run with these variables, maybe without one for SessionStart. */
  async once(
    source: 'startup' | 'resume',
    { env = {}, hasStart = true }: { env?: Environment; hasStart?: boolean } = {},
    session = this.session,
  ): Promise<void> {
    if (hasStart) await this.hook(session.startPayload(source), env);
    session.addTurn();
    await this.hookAlone(session.payload('Stop'), env);
    await this.hookAlone(session.payload('SessionEnd', { reason: 'other' }), env);
  }

  /** A backfill of all sessions, none of which is being written. */
  backfillAll(env: Environment, ...args: string[]): Promise<Ended> {
    this.letIdle();
    return run(['backfill', '--yes', '--all', ...args], { ...this.env, TRACE_TO_LANGFUSE: undefined, ...env });
  }

  async whileRefusing<T>(work: () => Promise<T>, server = this.server): Promise<T> {
    server.misbehave = () => ({ status: 401 });
    const result = await work();
    server.misbehave = () => undefined;
    return result;
  }

  /** What a server has of each turn: whose it is, its name, and whether its words are there. */
  turns(server = this.server): string[] {
    return server.roots.map(
      ({ trace, name, input }) => `${String(trace.sessionId)[0]} ${name}${input === undefined ? '' : ' with words'}`,
    );
  }

  /** Starts another server, which stops with the workplace. */
  async startServer(): Promise<LangfuseServer> {
    const server = await LangfuseServer.start();
    this.#servers.push(server);
    return server;
  }

  override async close(): Promise<void> {
    await super.close();
    for (const server of this.#servers) await server.stop();
  }

  #createSession(id: string): ClaudeSession {
    return new ClaudeSession(id, this.transcriptOf(id), join(this.home, 'work'));
  }
}
