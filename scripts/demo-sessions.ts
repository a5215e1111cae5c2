import { fileURLToPath } from 'node:url';
import { groupSessions, type SentObservation, type ShownSession } from '../src/commands/preview/view-model.js';
import type { StoredObservation } from '../test/support/langfuse-server.js';
import { Workplace } from '../test/support/program.js';
import { play, type Recording } from '../test/support/recording.js';
import { withoutShared } from '../test/support/traces.js';

/** A session that was written by hand, since the texts of the recordings are synthetic. */
export const DEMO: Recording = { name: 'demo', folder: fileURLToPath(new URL('../fixtures/demo', import.meta.url)) };

interface Played {
  readonly name: string;
  readonly sessions: readonly ShownSession[];
}

const CONCURRENCY = 4;

/** Plays each recording through the built hook into an embedded Langfuse of its own. Returns the sessions that arrived. */
export async function playRecordings(recordings: readonly Recording[]): Promise<Played[]> {
  const played: Played[] = recordings.map(({ name }) => ({ name, sessions: [] }));
  const queue = [...recordings.entries()];
  const playNext = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [index, recording] = next;
      played[index] = { name: recording.name, sessions: await playRecording(recording) };
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, playNext));
  return played;
}

async function playRecording(recording: Recording): Promise<ShownSession[]> {
  const workplace = await Workplace.open();
  try {
    await play(recording, workplace.home, async ({ payload }) => {
      const { exitCode, stderr } = await workplace.hook(payload);
      if (exitCode !== 0) throw new Error(`${recording.name}: the hook exited with ${exitCode}: ${stderr}`);
    });
    const { observations, roots } = workplace.server;
    const traces = new Map(roots.map(({ traceId, trace }) => [traceId, trace]));
    return groupSessions(observations.map((each) => toTraced(each, traces.get(each.traceId) ?? each.trace)));
  } finally {
    await workplace.close();
  }
}

/** Langfuse stores the trace's id separately, its metadata with the root and also with the observation's, and times as text. */
function toTraced(
  { traceId, trace: { metadata: shared }, completionStartTime, isAppRoot: _, ...rest }: StoredObservation,
  trace: StoredObservation['trace'],
): SentObservation {
  const times = completionStartTime === undefined ? {} : { completionStartTime: Date.parse(completionStartTime) };
  const metadata = withoutShared(rest.metadata, shared);
  return { ...rest, ...times, metadata, trace: { ...trace, id: traceId, scope: traceId } } as SentObservation;
}
