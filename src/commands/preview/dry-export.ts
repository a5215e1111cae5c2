import type { Settings } from '../../config/settings.js';
import { exportSession } from '../../export/session.js';
import { DryRunDestination } from '../../langfuse/dry-run-destination.js';
import { fingerprint } from '../../langfuse/endpoint.js';
import type { Log } from '../../shared/log.js';
import { DryRunState } from '../../state/dry-run.js';
import type { SessionState } from '../../state/store.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import type { SentObservation } from './view-model.js';

/** Exports a whole session, its last turn included, as if nothing of it had been sent. Sends nothing and keeps the state. */
export async function previewObservations(
  { sessionId, path }: SessionOverview,
  { settings, state, log }: { settings: Settings; state: SessionState; log: Log },
): Promise<SentObservation[]> {
  const observations: SentObservation[] = [];
  const agents = { running: new Set<string>(), sessionEnded: true, includeLegacyFiles: true };
  await exportSession(
    { sessionId, path, occasion: 'backfill', closing: { kind: 'everything' }, agents, force: true },
    {
      state: new DryRunState(state),
      destination: new DryRunDestination(),
      destinationId: settings.destination ? fingerprint(settings.destination) : '',
      settings,
      given: {},
      deadline: Number.POSITIVE_INFINITY,
      log,
      observer: {
        onObservation: ({ line: _, media: __, requestRef: ___, ...observation }) => observations.push(observation),
      },
    },
  );
  return observations;
}
