import { contentToText } from '../src/commands/preview/text.js';
import { isRecord, type Json, parseJson } from '../src/shared/json.js';
import { element } from './dom.js';
import { markMatches, renderText } from './text-view.js';

/** Shows an input or output: messages as a conversation, an object by its fields, anything else as text. */
export function renderContent(content: Json, query: string): HTMLElement {
  const text = contentToText(content);
  if (text !== undefined) return renderText(text, query);
  const messages = Array.isArray(content) ? content : [content];
  if (messages.length > 0 && messages.every(isMessage)) {
    return element('div', { class: 'messages' }, ...messages.map((message) => renderMessage(message, query)));
  }
  if (isRecord(content)) return renderFields(content, query);
  return renderText(toText(content), query);
}

interface Message {
  readonly role: string;
  readonly [field: string]: unknown;
}

function isMessage(value: unknown): value is Message {
  return isRecord(value) && typeof value.role === 'string';
}

/** Its title is its name, or else its role, as in Langfuse. */
function renderMessage({ role, name, content, thinking, tool_calls: calls }: Message, query: string): HTMLElement {
  const text = contentToText(content) ?? toText(content ?? '');
  return element(
    'section',
    { class: 'message', 'data-role': role },
    element('h4', {}, typeof name === 'string' ? name : role),
    ...onlyRecords(thinking).map((thought) => renderText(String(thought.content ?? ''), query, 'text thinking')),
    text === '' ? undefined : renderText(text, query),
    ...onlyRecords(calls).map((call) => renderCall(call, query)),
  );
}

function renderCall(call: Record<string, unknown>, query: string): HTMLElement {
  const { name = 'tool', arguments: json = '' } = isRecord(call.function) ? call.function : {};
  const input = parseJson(String(json));
  return element(
    'div',
    { class: 'call' },
    element('h5', {}, ...markMatches(String(name), query)),
    isRecord(input) ? renderFields(input, query) : renderText(String(json), query),
  );
}

function renderFields(fields: Record<string, unknown>, query: string): HTMLElement {
  const rows = Object.entries(fields).map(([name, value]) =>
    element(
      'div',
      {},
      element('dt', {}, ...markMatches(name, query)),
      element('dd', {}, renderText(toText(value), query)),
    ),
  );
  return rows.length > 0 ? element('dl', { class: 'fields' }, ...rows) : element('pre', { class: 'text' }, '{}');
}

export function toText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

function onlyRecords(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
