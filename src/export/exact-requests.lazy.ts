import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { TraceSettings } from '../observations/build/trace.js';
import { type RequestInput, RequestInputBuilder } from '../observations/content/request-input.js';
import type { Observation } from '../observations/model.js';
import { RequestIndex, type SentRequest } from '../transcript/requests/request-index.js';
import type { Requests } from './requests.js';

/** Makes each generation's input the request that it answers, as far as the transcript contains it. */
export function openExactRequests(path: string, settings: TraceSettings): Requests {
  const inputs = new RequestInputBuilder(settings);
  const main = new RequestIndex(path);
  let agent: RequestIndex | undefined;
  return {
    observe: (line) => main.addLine(line),
    observeAgent: (agentPath) => {
      agent?.close();
      const index = new RequestIndex(agentPath);
      agent = index;
      return (line) => index.addLine(line);
    },
    withRequest: async (observation) => {
      if (observation.requestRef === undefined) return observation;
      // One takes some milliseconds, and there may be hundreds.
      await yieldToEventLoop();
      const request = main.find(observation.requestRef) ?? agent?.find(observation.requestRef);
      return replaceInput(observation, request && buildInput(request, inputs));
    },
    close: () => {
      main.close();
      agent?.close();
    },
  };
}

/** A request may contain anything: one that cannot be shown must not cost the turn. */
function buildInput(request: SentRequest, inputs: RequestInputBuilder): RequestInput | undefined {
  try {
    return inputs.build(request);
  } catch {
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
