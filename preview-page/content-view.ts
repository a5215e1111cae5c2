import { contentToText } from '../src/commands/preview/text.js';
import { isRecord, type Json, parseJson } from '../src/shared/json.js';
import { element } from './dom.js';
import { marked, textView } from './text-view.js';

/** An input or an output: messages as a conversation, all else as it is. */
export function contentView(content: Json, query: string): HTMLElement {
  const words = contentToText(content);
  if (words !== undefined) return textView(words, query);
  const messages = Array.isArray(content) ? content : [content];
  if (messages.length > 0 && messages.every(isMessage)) {
    return element('div', { class: 'messages' }, ...messages.map((message) => messageView(message, query)));
  }
  if (isRecord(content)) return fieldsView(content, query);
  return textView(asText(content), query);
}

interface Message {
  readonly role: string;
  readonly [field: string]: unknown;
}

function isMessage(value: unknown): value is Message {
  return isRecord(value) && typeof value.role === 'string';
}

function messageView({ role, content, thinking, tool_calls: calls }: Message, query: string): HTMLElement {
  const words = contentToText(content) ?? asText(content ?? '');
  return element(
    'section',
    { class: 'message', 'data-role': role },
    element('h4', {}, role),
    ...listOf(thinking).map((thought) => textView(String(thought.content ?? ''), query, 'text thinking')),
    words === '' ? undefined : textView(words, query),
    ...listOf(calls).map((call) => callView(call, query)),
  );
}

function callView(call: Record<string, unknown>, query: string): HTMLElement {
  const { name, arguments: given } = isRecord(call.function) ? call.function : {};
  const fields = parseJson(String(given ?? ''));
  return element(
    'div',
    { class: 'call' },
    element('h5', {}, ...marked(String(name ?? 'tool'), query)),
    isRecord(fields) ? fieldsView(fields, query) : textView(String(given ?? ''), query),
  );
}

function fieldsView(fields: Record<string, unknown>, query: string): HTMLElement {
  const rows = Object.entries(fields).map(([name, value]) =>
    element('div', {}, element('dt', {}, ...marked(name, query)), element('dd', {}, textView(asText(value), query))),
  );
  return rows.length > 0 ? element('dl', { class: 'fields' }, ...rows) : element('pre', { class: 'text' }, '{}');
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

function listOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
