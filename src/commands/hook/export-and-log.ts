import type { ExportContext, ExportRequest } from '../../export/export-request.js';
import { exportSession } from '../../export/session.js';
import type { Lock } from '../../state/lock.js';

/** `unsent`: a later run sends it. `broken`: it failed on this machine. `busy`: another run held the lock all the time. */
type Result = 'done' | 'unsent' | 'broken' | 'busy';

/** A failure is logged and never holds up Claude Code. */
export async function exportAndLog(request: ExportRequest, context: ExportContext, lock?: Lock): Promise<Result> {
  const { sessionId: session, path: file } = request;
  const { log } = context;
  try {
    const { sent, failure, isBusy } = await exportSession(request, context, lock);
    if (failure) log.warn(failure.text, { session, file });
    if (!failure || sent.observations > 0) log.debug('exported', { session, observations: sent.observations });
    if (isBusy) return 'busy';
    return failure ? 'unsent' : 'done';
  } catch (error) {
    log.error((error as Error).message, { session, file });
    return 'broken';
  }
}
