import type { Settings } from '../../config/settings.js';
import { NOTHING_SENT } from '../../export/nothing-sent.js';
import { exportSession } from '../../export/session.js';
import { fingerprint } from '../../langfuse/receiver.js';
import type { Observation } from '../../observations/model.js';
import type { Log } from '../../shared/log.js';
import { DryRun } from '../../state/dry-run.js';
import type { SessionState } from '../../state/store.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';

/** What would be sent of a whole session if nothing of it had been, its last turn included: nothing is, and no state changes. */
export async function previewObservations(
  { sessionId, path }: Pick<SessionOverview, 'sessionId' | 'path'>,
  { settings, state, log }: { settings: Settings; state: SessionState; log: Log },
): Promise<Observation[]> {
  const observations: Observation[] = [];
  await exportSession(
    {
      sessionId,
      path,
      occasion: 'backfill',
      closing: { kind: 'everything' },
      agents: { running: new Set(), areOver: true, mayBeBeside: true },
      isAnew: true,
    },
    {
      store: new DryRun(state),
      ...NOTHING_SENT,
      waitUntil: 0,
      readUntil: Number.POSITIVE_INFINITY,
      options: settings,
      given: {},
      destination: settings.destination ? fingerprint(settings.destination) : '',
      log,
      onObservation: (observation) => observations.push(observation),
    },
  );
  return observations;
}
