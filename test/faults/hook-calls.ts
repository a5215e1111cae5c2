import { existsSync } from 'node:fs';
import { hook } from '../../src/commands/hook/hook.lazy.js';
import { optOut } from '../../src/commands/hook/opt-out.lazy.js';
import { changeMute } from '../../src/commands/mute/change-mute.js';
import { dropForeignVariables } from '../../src/config/own-variables.lazy.js';
import { waitForProcesses } from '../support/home-processes.js';
import type { Environment } from '../support/program.js';
import type { StartedNodes } from '../support/started-nodes.js';
import { sessionFile } from '../support/state-files.js';
import { withStdin } from '../support/with-stdin.js';

interface Payload {
  readonly session_id: string;
  readonly hook_event_name: string;
  readonly cwd: string;
}

/** What calls the hook of an event, as Claude Code would in a home. */
export type CallHook = (payload: Payload, env: Environment) => Promise<void>;

/** Calls hooks in this process: a process of their own would take ten times as long. */
export function callHere(stateFolder: string): CallHook {
  return async (payload, env) => {
    if (env.TRACE_TO_LANGFUSE === 'true')
      await withStdin(JSON.stringify(payload), () => hook(dropForeignVariables(env, [payload.cwd])));
    else if (mayBeOpen(payload, stateFolder)) await withStdin(JSON.stringify(payload), () => optOut(env));
  };
}

/** Lets the launcher start them. Without tracing, it starts nothing unless the session was traced before. */
export function callByLauncher(stateFolder: string, home: string, nodes: StartedNodes): CallHook {
  return async (payload, env) => {
    if (env.TRACE_TO_LANGFUSE !== 'true' && !mayBeOpen(payload, stateFolder)) return;
    await nodes.launch(payload.hook_event_name, payload, env);
    // What follows a start or an end was written after it. Stops may overlap.
    if (payload.hook_event_name.startsWith('Session')) await waitForProcesses(home);
  };
}

function mayBeOpen({ session_id: session }: Payload, stateFolder: string): boolean {
  return existsSync(sessionFile(stateFolder, session, 'open'));
}

/** What the user does with `cc-langfuse mute` and `unmute`. */
export async function callMute(command: 'mute' | 'unmute', session: string, env: Environment): Promise<void> {
  const { write } = process.stdout;
  process.stdout.write = () => true;
  try {
    await changeMute(command, [session], env);
  } finally {
    process.stdout.write = write;
  }
}
