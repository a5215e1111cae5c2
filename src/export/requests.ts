import type { TraceSettings } from '../observations/build/trace.js';
import type { Observation } from '../observations/model.js';
import type { Line } from '../transcript/file/line.js';

/** The API requests that a transcript records, for generations whose input is the whole request. */
export interface Requests {
  /** Takes the next line of the transcript. */
  observe(line: Line): void;
  /** Begins an agent's file; returns what takes its lines. */
  observeAgent(path: string): (line: Line) => void;
  /** Replaces the input of a generation, of the transcript or of the agent read last, by the request that it answers. */
  withRequest(observation: Observation): Promise<Observation>;
  close(): void;
}

const NO_REQUESTS: Requests = {
  observe() {},
  observeAgent: () => () => {},
  withRequest: async (observation) => observation,
  close() {},
};

/** Whole requests cost time, and much space in Langfuse: without the setting nothing is done for them. */
export async function openRequests(path: string, settings: TraceSettings): Promise<Requests> {
  if (settings.input === 'answered') return NO_REQUESTS;
  const { openExactRequests } = await import('./exact-requests.lazy.js');
  return openExactRequests(path, settings);
}
