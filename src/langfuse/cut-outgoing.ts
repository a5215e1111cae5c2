import { cutContent } from '../observations/content/cut.js';
import type { Outgoing } from './destination.js';
import { cutSpan, encodeSpan } from './otlp/span.js';

const FEWEST_CHARS = 1_000;

/** Yields ever smaller forms of an observation: each time half as much of its content, and at last none of it. */
export function* cutOutgoing(whole: Outgoing): Generator<Outgoing, void, undefined> {
  let { length } = whole.json;
  for (let maxChars = length; maxChars > 0; ) {
    maxChars = maxChars < 2 * FEWEST_CHARS ? 0 : Math.floor(maxChars / 2);
    const cut = cutTo(whole, maxChars);
    if (cut.json.length >= length) continue;
    length = cut.json.length;
    yield cut;
  }
}

function cutTo({ json, observation }: Outgoing, maxChars: number): Outgoing {
  if (!observation) return { json: cutSpan(json, maxChars) };
  const cut = { ...observation, ...cutContent(observation, maxChars) };
  return { json: encodeSpan(cut), observation: cut };
}
