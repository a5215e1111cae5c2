import { groupSessions, type ShownSession, type TracedObservation } from '../src/commands/preview/session.js';
import type { StoredObservation } from '../test/support/langfuse-server.js';
import { Workplace } from '../test/support/program.js';
import { play, type Recording, recordings } from '../test/support/recording.js';

export interface Played {
  readonly name: string;
  readonly sessions: readonly ShownSession[];
}

/** How many recordings are played at a time. */
const AT_ONCE = 4;

/** Plays every recording through the built hook, each into a Langfuse of its own; gives the sessions that have arrived. */
export async function playAll(): Promise<Played[]> {
  const all = recordings();
  const played: Played[] = all.map(({ name }) => ({ name, sessions: [] }));
  const queue = [...all.entries()];
  const work = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [place, recording] = next;
      played[place] = { name: recording.name, sessions: await sessionsArrivedFrom(recording) };
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return played;
}

async function sessionsArrivedFrom(recording: Recording): Promise<ShownSession[]> {
  const workplace = await Workplace.open();
  try {
    await play(recording, workplace.home, async ({ payload }) => {
      const { exitCode, stderr } = await workplace.hook(payload);
      if (exitCode !== 0) throw new Error(`${recording.name}: the hook exited with ${exitCode}: ${stderr}`);
    });
    return groupSessions(workplace.server.observations.map(asSent));
  } finally {
    await workplace.close();
  }
}

/** What Langfuse keeps has the words for it that the hook has sent. */
function asSent({ traceId, trace, completionStartTime, ...rest }: StoredObservation): TracedObservation {
  const times = completionStartTime === undefined ? {} : { completionStartTime: Date.parse(completionStartTime) };
  return { ...rest, ...times, trace: { ...trace, id: traceId } } as TracedObservation;
}
