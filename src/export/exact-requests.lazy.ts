import { setImmediate as othersTurn } from 'node:timers/promises';
import type { TraceSettings } from '../observations/build/trace.js';
import { type RequestInput, RequestInputBuilder } from '../observations/content/request-input.js';
import type { Media, Observation } from '../observations/model.js';
import { RequestIndex, type SentRequest } from '../transcript/requests/request-index.js';
import type { Requests } from './requests.js';

/** Makes each generation's input the request that it answers, as far as the transcript holds it. */
export function exactRequests(path: string, settings: TraceSettings): Requests {
  const inputs = new RequestInputBuilder(settings);
  const main = new RequestIndex(path);
  let agent: RequestIndex | undefined;
  return {
    see: (line) => main.addLine(line),
    seeAgent: (agentPath) => {
      agent?.close();
      const index = new RequestIndex(agentPath);
      agent = index;
      return (line) => index.addLine(line);
    },
    finish: async (observation) => {
      if (observation.requestRef === undefined) return observation;
      // One takes some milliseconds, and there may be hundreds.
      await othersTurn();
      const request = main.find(observation.requestRef) ?? agent?.find(observation.requestRef);
      return withRequest(observation, request && inputOf(request, inputs));
    },
    close: () => {
      main.close();
      agent?.close();
    },
  };
}

/** It may hold whatever anyone has put into it: what cannot be shown must not cost the turn. */
function inputOf(request: SentRequest, inputs: RequestInputBuilder): RequestInput | undefined {
  try {
    return inputs.build(request);
  } catch {
    return undefined;
  }
}

/** Without its request an observation keeps its own input, and says so. */
function withRequest(observation: Observation, found: RequestInput | undefined): Observation {
  if (!found) return { ...observation, metadata: { ...observation.metadata, request_missing: true } };
  const { input_full_chars: _, ...metadata } = observation.metadata;
  const { media: own = [] } = observation;
  const media = [...own.filter(({ field }) => field === 'output'), ...found.media.map(asInput)];
  return { ...observation, input: found.input, media, metadata: { ...metadata, ...found.metadata } };
}

function asInput(media: Omit<Media, 'field'>): Media {
  return { ...media, field: 'input' };
}
