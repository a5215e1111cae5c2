import { changeMute } from './change-mute.js';

export const HELP = `usage: cc-langfuse mute [session id or .jsonl path]

From now on no hook and no backfill sends anything of a session, until you run
cc-langfuse unmute. That includes the turn under way. Without a session, it
mutes the one that Claude Code runs the command in, or else the newest one of
the current directory. The first characters of an id are enough.

  --help
`;

export function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  return changeMute('mute', args, env);
}
