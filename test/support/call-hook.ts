import { join } from 'node:path';
import { vi } from 'vitest';
import { hook, type Worker } from '../../src/commands/hook/hook.lazy.js';
import type { HookPayload } from '../../src/commands/hook/payload.js';
import { dropForeignVariables } from '../../src/config/own-variables.lazy.js';
import { withPluginOptions } from '../../src/config/plugin-options.js';
import { withStdin } from './with-stdin.js';

let previous: Promise<void> = Promise.resolve();

/** Calls the hook in this process: a process of its own would take ten times as long. One is called after the other. */
function callHook(payload: object, env: NodeJS.ProcessEnv, worker?: Worker): Promise<void> {
  const call = previous.then(() => callAlone(payload, env, worker));
  previous = call.catch(() => {});
  return call;
}

function callAlone(payload: object, env: NodeJS.ProcessEnv, worker?: Worker): Promise<void> {
  const { HOME = '', CLAUDE_CONFIG_DIR = join(HOME, '.claude'), CLAUDE_PROJECT_DIR } = env;
  const all = withPluginOptions({ ...env, CLAUDE_CONFIG_DIR });
  const own = dropForeignVariables(all, [CLAUDE_PROJECT_DIR || process.cwd(), process.cwd()]);
  return withStdin(JSON.stringify(payload), () => hook(own, worker));
}

/** Calls a hook while time stands still: one that waits until some time has passed never ends. */
export async function callInstantly(payload: object, env: NodeJS.ProcessEnv): Promise<void> {
  vi.useFakeTimers({ toFake: ['Date'] });
  try {
    await callHook(payload, env);
  } finally {
    vi.useRealTimers();
  }
}

/** Calls a session's SessionStart as if its transcript had no line yet, whatever has been written of it since. */
export async function startBefore(payload: HookPayload, env: NodeJS.ProcessEnv): Promise<void> {
  const isTracing = (env.CC_TRACE_TO_LANGFUSE || env.TRACE_TO_LANGFUSE) === 'true';
  const start = { ...payload, hook_event_name: 'SessionStart', source: 'startup' };
  if (isTracing) await callHook(start, env, { forMs: 20_000, transcriptBytes: 0 });
}
