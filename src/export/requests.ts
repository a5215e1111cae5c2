import type { TraceSettings } from '../observations/build/trace.js';
import type { Observation } from '../observations/model.js';
import type { Line } from '../transcript/file/line.js';

/** The requests of a session, from which the inputs of generations are made. */
export interface Requests {
  /** Takes the next line of the transcript. */
  readonly see: (line: Line) => void;
  /** Takes the lines of an agent's file, all before another's; gives who takes them. */
  readonly seeAgent: (path: string) => (line: Line) => void;
  /** Gives a generation of the transcript, or of the agent read last, the request that it answers as its input. */
  readonly finish: (observation: Observation) => Promise<Observation>;
  readonly close: () => void;
}

const NOT_ASKED_FOR: Requests = {
  see: () => {},
  seeAgent: () => () => {},
  finish: async (observation) => observation,
  close: () => {},
};

/** They cost time and much room at Langfuse: nothing is done for them where nobody wants them. */
export async function openRequests(path: string, settings: TraceSettings): Promise<Requests> {
  if (settings.input === 'answered') return NOT_ASKED_FOR;
  const { exactRequests } = await import('./exact-requests.lazy.js');
  return exactRequests(path, settings);
}
