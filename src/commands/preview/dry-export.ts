import type { Settings } from '../../config/settings.js';
import { NOTHING_SENT } from '../../export/nothing-sent.js';
import { exportSession } from '../../export/session.js';
import { fingerprint } from '../../langfuse/endpoint.js';
import type { Log } from '../../shared/log.js';
import { DryRun } from '../../state/dry-run.js';
import type { SessionState } from '../../state/store.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import type { SentObservation } from './view-model.js';

/** Exports a whole session, its last turn included, as if nothing of it had been sent. Sends nothing and keeps the state. */
export async function previewObservations(
  { sessionId, path }: SessionOverview,
  { settings, state, log }: { settings: Settings; state: SessionState; log: Log },
): Promise<SentObservation[]> {
  const observations: SentObservation[] = [];
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
      onObservation: ({ line: _, media: __, requestRef: ___, ...observation }) => observations.push(observation),
    },
  );
  return observations;
}
