import { changeMute } from './change-mute.js';

export const HELP = `usage: cc-langfuse unmute [session id or .jsonl path]

From now on a muted session is sent again. What was said while it was muted is
never sent. Without a session, it takes the one that Claude Code runs the
command in, or else the newest one of the current directory.

  --help
`;

export function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  return changeMute('unmute', args, env);
}
