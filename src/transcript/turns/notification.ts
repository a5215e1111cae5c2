import { findTag } from './prompt.js';

const START = '<task-notification>';
const END = '</task-notification>';

/** Whether Claude Code itself has written the message, to say that a background task has ended. */
export function isNotification(message: string): boolean {
  return message.startsWith(START);
}

/** The ids of the tasks that have ended, and of the calls that started them. */
export function readNotifiedIds(message: string): string[] {
  if (!isNotification(message)) return [];
  return [...message.matchAll(/<(?:task-id|tool-use-id)>([^<]+)</g)].map(([, id = '']) => id);
}

/** Says in words what a notification says in tags. Any other message stays as it is. */
export function describeNotification(message: string): string {
  if (!isNotification(message)) return message;
  const parts = message.split(START).slice(1).map(describePart);
  return parts.join('\n').trim();
}

function describePart(part: string): string {
  const [tags = '', ...after] = part.split(END);
  const [summary, result] = [findTag('summary', tags)?.trim(), findTag('result', tags)?.trim()];
  if (!summary && !result) return START + part;
  const status = findTag('status', tags)?.trim() ?? 'completed';
  const state = `background task ${status === 'completed' ? 'done' : status}`;
  const lines = [summary ? `${state}: ${summary}` : `${state}:`, result, ...after];
  return lines.flatMap((line) => line?.trim() || []).join('\n');
}
