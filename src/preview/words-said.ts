import { isRecord } from '../json.js';
import type { ShownObservation } from './session.js';

/** What was said in messages: an array of them, or one. */
export function wordsIn(messages: unknown): string {
  const all = Array.isArray(messages) ? messages : [messages];
  return all
    .map((message) => (isRecord(message) ? message.content : undefined))
    .filter((content) => typeof content === 'string' && content !== '')
    .join('\n');
}

/** What an observation is about, as far as its name does not tell. */
export function summaryOf({ type, input, output, metadata }: ShownObservation): string {
  if (typeof metadata.summary === 'string') return metadata.summary;
  if (typeof metadata.description === 'string') return metadata.description;
  if (type === 'generation') return wordsIn(output);
  return type === 'event' ? wordsIn(input) : '';
}
