import { plural } from '../../cli/format.js';
import { isRecord } from '../../shared/json.js';
import type { ShownObservation, ShownSession } from './session.js';

/** How many turns a session has, and how many agents that none of them started. */
export function describeTurns({ turns }: ShownSession): string {
  const numbered = turns.filter(({ metadata }) => metadata.turn_number !== undefined).length;
  const others = turns.length - numbered;
  return [
    ...(numbered > 0 ? [plural(numbered, 'turn')] : []),
    ...(others > 0 ? [plural(others, 'other agent')] : []),
  ].join(', ');
}

/** What was said in messages: an array of them, or one. */
export function messagesText(messages: unknown): string {
  const all = Array.isArray(messages) ? messages : [messages];
  return all
    .map((message) => (isRecord(message) ? contentToText(message.content) : undefined))
    .filter((words) => words !== undefined && words !== '')
    .join('\n');
}

const REFERENCE = /^@@@langfuseMedia:type=([^|]+)\|/;

/** Content in words, with one for each image and document that it refers to; undefined where it is no words. */
export function contentToText(content: unknown): string | undefined {
  if (typeof content === 'string') return content;
  const words = Array.isArray(content) ? content.map(wordOf) : [undefined];
  return words.every((word) => word !== undefined) ? words.join('\n') : undefined;
}

function wordOf(part: unknown): string | undefined {
  if (!isRecord(part)) return undefined;
  if (part.type === 'text' && typeof part.text === 'string') return part.text;
  const reference = isRecord(part.image_url) ? part.image_url.url : part.data;
  const [, type] = (typeof reference === 'string' && REFERENCE.exec(reference)) || [];
  return type && `[${type}]`;
}

/** What an observation is about, as far as its name does not tell. */
export function summarize({ type, input, output, metadata }: ShownObservation): string {
  if (typeof metadata.summary === 'string') return metadata.summary;
  if (typeof metadata.description === 'string') return metadata.description;
  if (type === 'generation') return messagesText(output);
  return type === 'event' ? messagesText(input) : '';
}
