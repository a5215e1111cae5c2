import { join } from 'node:path';
import { stateFolder } from '../../config/claude-folder.js';
import { readSettings, type Settings } from '../../config/settings.js';
import { fingerprint, openDestination } from '../../langfuse/open-destination.js';
import { type Log, openLog } from '../../shared/log.js';
import { isRunning, takeLock } from '../../state/lock.js';
import { sessionFolder } from '../../state/session-folder.js';
import { Follower } from './follower.js';
import { parsePayload } from './payload.js';
import { readStdin } from './stdin.js';

/** How long to wait for another follower to end. One that goes on sees the new prompt in the file before it counts as idle. */
const HANDOVER_MS = 5_000;

/** Follows the session that stdin names: sends the final parts of its turns while they run. Never fails and prints nothing. */
export async function follow(env: NodeJS.ProcessEnv): Promise<void> {
  const settings = await readSettings(env);
  const log = openLog(stateFolder(env), settings);
  try {
    const text = await readStdin();
    if (text !== '' && settings.live) await followSession(text, settings, env, log);
  } catch (error) {
    log.error((error as Error).message);
  } finally {
    await log.flush();
  }
}

async function followSession(
  text: string,
  { destination: config, budget }: Settings,
  env: NodeJS.ProcessEnv,
  log: Log,
): Promise<void> {
  const { session_id: sessionId, transcript_path: path, cwd } = parsePayload(text);
  // The hooks say what is missing.
  if (!config) return;
  const folder = stateFolder(env);
  const destinationId = fingerprint(config);
  const lockPath = join(sessionFolder(folder, sessionId), `follower.${destinationId}.lock`);
  // In another namespace the pid means nothing. It is looked at first, since Claude Code may end meanwhile.
  const pid = Number(env.CLAUDE_PID);
  const claude = pid > 0 && isRunning(pid) ? pid : undefined;
  const lock = await takeLock(lockPath, Date.now() + HANDOVER_MS);
  if (!lock) return;
  const destination = openDestination(config, folder);
  const watch = budget && new (await import('./budget.lazy.js')).BudgetWatch({ sessionId, budget, env, folder });
  try {
    await new Follower({
      sessionId,
      path,
      workedIn: env.CLAUDE_PROJECT_DIR || cwd,
      claude,
      env,
      folder,
      lock,
      destination,
      destinationId,
      watch,
      log,
    }).run();
  } finally {
    lock.release();
    await destination.close();
  }
}
