import { stateFolder } from '../../config/claude-folder.js';
import { StateStore } from '../../state/store.js';
import { hasOpenRun, markRunClosed } from './open-runs.js';
import { parsePayload } from './payload.js';
import { recordOptOut } from './record-run.js';
import { readStdin } from './stdin.js';

/** Tracing is off in a session that was traced before, and killed: records that what follows belongs to no run. */
export async function optOut(env: NodeJS.ProcessEnv, transcriptBytes?: number): Promise<void> {
  const folder = stateFolder(env);
  const payload = parsePayload(await readStdin());
  if (!hasOpenRun(folder, payload.session_id)) return;
  await recordOptOut(payload, new StateStore(folder), transcriptBytes);
  markRunClosed(folder, payload.session_id);
}
