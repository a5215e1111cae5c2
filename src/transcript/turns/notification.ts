import { findTag } from './prompt.js';

const START = '<task-notification>';
const END = '</task-notification>';
/** What a notification can say of a task that goes on, or of the session that this one was forked from. */
const NEWS = ['event', 'fork-source'];

/** Whether Claude Code itself has written the message: a background task has ended, or there is news of one. */
export function isNotification(message: string): boolean {
  return message.startsWith(START);
}

/** Whether a notification says that a task has ended. */
export function tellsEnd(message: string): boolean {
  return listParts(message).some((part) => !isNews(part));
}

/** The ids of the tasks that have ended, and of the calls that started them. */
export function readNotifiedIds(message: string): string[] {
  if (!isNotification(message)) return [];
  const ended = listParts(message).filter((part) => !isNews(part));
  return [...ended.join('').matchAll(/<(?:task-id|tool-use-id)>([^<]+)</g)].map(([, id = '']) => id);
}

/** Says in words what a notification says in tags. Any other message stays as it is. */
export function describeNotification(message: string): string {
  if (!isNotification(message)) return message;
  return listParts(message).map(describePart).join('\n').trim();
}

function listParts(message: string): string[] {
  return message.split(START).slice(1);
}

/** A result can quote anything, but an end has a status. */
function isNews(part: string): boolean {
  const [tags = ''] = part.split(END);
  return findTag('status', tags) === undefined && NEWS.some((name) => findTag(name, tags) !== undefined);
}

function describePart(part: string): string {
  const [tags = '', ...after] = part.split(END);
  const summary = findTag('summary', tags)?.trim();
  const texts = (isNews(part) ? NEWS : ['result']).flatMap((name) => findTag(name, tags)?.trim() || []);
  if (!summary && texts.length === 0) return START + part;
  const status = findTag('status', tags)?.trim() ?? 'completed';
  const state = isNews(part) ? '' : `background task ${status === 'completed' ? 'done' : status}: `;
  return [`${state}${summary ?? ''}`, ...texts, ...after].flatMap((line) => line.trim() || []).join('\n');
}
