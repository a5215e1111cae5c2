import type { ClaudeSession } from './claude-session.js';
import { type Environment, run, type Workplace } from './program.js';

/** What the tests of several runs do in a workplace. `current` returns that of the test, and the session that it is about. */
export function actionsIn(current: () => { readonly workplace: Workplace; readonly session: ClaudeSession }) {
  /** A hook of a run of Claude Code that was started with these variables. */
  const hook = (payload: object, env?: Environment) => current().workplace.hook(payload, env);
  return {
    hook,

    backfill(env: Environment, ...args: string[]) {
      const { workplace } = current();
      workplace.letIdle();
      return run(['backfill', '--yes', '--all', ...args], { ...workplace.env, TRACE_TO_LANGFUSE: undefined, ...env });
    },

    /** What a server has of each turn: whose it is, its name, and whether its words are there. */
    turns: (server = current().workplace.server) =>
      server.roots.map(
        ({ trace, name, input }) => `${String(trace.sessionId)[0]} ${name}${input === undefined ? '' : ' with words'}`,
      ),

    async whileRefusing<T>(work: () => Promise<T>, server = current().workplace.server): Promise<T> {
      server.misbehave = () => ({ status: 401 });
      const result = await work();
      server.misbehave = () => undefined;
      return result;
    },

    /** `claude -p`: one turn, with the hooks of a run with these variables, maybe without one for SessionStart. */
    async runOnce(
      source: 'startup' | 'resume',
      { env = {}, hasStart = true }: { env?: Environment; hasStart?: boolean } = {},
      one = current().session,
    ): Promise<void> {
      if (hasStart) await hook(one.startPayload(source), env);
      one.addTurn();
      await current().workplace.hookAlone(one.payload('Stop'), env);
      await current().workplace.hookAlone(one.payload('SessionEnd', { reason: 'other' }), env);
    },
  };
}
