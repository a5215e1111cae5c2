import { changeMute } from './change-mute.js';

export const HELP = `usage: cc-langfuse mute [session id or .jsonl path]

From now on nothing of a session is sent, by no hook and no backfill, until
cc-langfuse unmute. A turn that is under way is not sent either. Without a
session it is the one that Claude Code runs the command in, or else the newest
one of the current directory. The first characters of an id are enough.

  --help
`;

export function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  return changeMute('mute', args, env);
}
