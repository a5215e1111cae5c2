import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { TraceSettings } from '../observations/build/trace.js';
import { type RequestInput, RequestInputBuilder } from '../observations/content/request-input.js';
import type { Observation } from '../observations/model.js';
import { isRedactionError } from '../observations/redaction/redact.js';
import { memoize } from '../shared/memoize.js';
import type { Line } from '../transcript/file/line.js';
import { RequestIndex } from '../transcript/requests/request-index.js';

export type ExactRequests = ReturnType<typeof openExactRequests>;

/** The API requests that a transcript records: each generation's input becomes the request that it answers. */
export function openExactRequests(path: string) {
  const builderFor = memoize((settings: TraceSettings) => new RequestInputBuilder(settings));
  const main = new RequestIndex(path);
  let agent: RequestIndex[] = [];
  return {
    /** Takes the next line of the transcript. */
    observe: (line: Line) => main.addLine(line),

    /** Forgets the requests of the agent that was read last. */
    beginAgent(): void {
      for (const index of agent) index.close();
      agent = [];
    },

    /** Takes the lines of a file of the agent as they pass. */
    *observeAgent(agentPath: string, lines: Iterable<Line>): Generator<Line, void, undefined> {
      const index = new RequestIndex(agentPath);
      agent.push(index);
      yield* index.observe(lines);
    },

    /** Replaces the input of a generation, if the transcript contains the request. */
    async withRequest(observation: Observation, settings: TraceSettings): Promise<Observation> {
      if (observation.requestRef === undefined || settings.input !== 'request') return observation;
      // One takes some milliseconds, and there may be hundreds.
      await yieldToEventLoop();
      const { requestRef } = observation;
      const request = [main, ...agent].map((index) => index.find(requestRef)).find((found) => found !== undefined);
      return replaceInput(observation, request && buildInput(() => builderFor(settings).build(request)));
    },

    close() {
      for (const index of [main, ...agent]) index.close();
    },
  };
}

/** A request may contain anything: one that cannot be shown must not cost the turn. One that cannot be redacted holds it. */
function buildInput(build: () => RequestInput | undefined): RequestInput | undefined {
  try {
    return build();
  } catch (error) {
    if (isRedactionError(error)) throw error;
    return undefined;
  }
}

/** Without its request an observation keeps its own input, and says so in its metadata. */
function replaceInput(observation: Observation, found: RequestInput | undefined): Observation {
  if (!found) return { ...observation, metadata: { ...observation.metadata, request_missing: true } };
  const { input_full_chars: _, ...metadata } = observation.metadata;
  const { media: own = [] } = observation;
  const media = [
    ...own.filter(({ field }) => field === 'output'),
    ...found.media.map((each) => ({ ...each, field: 'input' as const })),
  ];
  return { ...observation, input: found.input, media, metadata: { ...metadata, ...found.metadata } };
}
