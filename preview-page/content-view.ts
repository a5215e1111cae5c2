import { contentToText } from '../src/commands/preview/text.js';
import { isRecord, type Json, parseJson, withoutUndefined } from '../src/shared/json.js';
import { compareTexts, renderDiff, splitDiff } from './diff-view.js';
import { element } from './dom.js';
import { renderMarkdown } from './markdown-view.js';
import { markMatches, renderText } from './text-view.js';

/** Shows an input or output: messages as a conversation, an object by its fields, anything else as text. */
export function renderContent(content: Json, query: string): HTMLElement {
  const text = contentToText(content);
  if (text !== undefined) return renderResult(text, query);
  const messages = Array.isArray(content) ? content : [content];
  if (messages.length > 0 && messages.every(isMessage)) {
    return element('div', { class: 'messages' }, ...messages.map((message) => renderMessage(message, query)));
  }
  if (isRecord(content)) return renderFields(content, query);
  return renderText(toText(content), query);
}

/** What a tool returned, with what it changed below. */
function renderResult(text: string, query: string): HTMLElement {
  const { before, diff } = splitDiff(text);
  if (diff === undefined) return renderText(text, query);
  return element('div', { class: 'result' }, renderText(before, query), renderDiff(diff, query));
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
  return element(
    'section',
    { class: 'message', 'data-role': role },
    element('h4', {}, typeof name === 'string' ? name : role),
    ...onlyRecords(thinking).map((thought) => renderText(String(thought.content ?? ''), query, 'text thinking')),
    renderWords(role, contentToText(content) ?? toText(content ?? ''), query),
    ...onlyRecords(calls).map((call) => renderCall(call, query)),
  );
}

/** Models write Markdown. Prompts and tool results are shown as plain text. */
export function renderWords(role: string, text: string, query: string): HTMLElement | undefined {
  if (text === '') return undefined;
  return role === 'assistant' ? renderMarkdown(text, query) : renderResult(text, query);
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

function renderFields({ old_string: before, new_string: after, ...others }: Record<string, unknown>, query: string) {
  const isEdit = typeof before === 'string' && typeof after === 'string';
  const fields = { ...others, ...(isEdit ? {} : withoutUndefined({ old_string: before, new_string: after })) };
  const rows = Object.entries(fields).map(([name, value]) =>
    renderField(name, renderText(toText(value), query), query),
  );
  if (isEdit) rows.push(renderField('change', renderDiff(compareTexts(before, after), query), query));
  return rows.length > 0 ? element('dl', { class: 'fields' }, ...rows) : element('pre', { class: 'text' }, '{}');
}

function renderField(name: string, value: HTMLElement, query: string): HTMLElement {
  return element('div', {}, element('dt', {}, ...markMatches(name, query)), element('dd', {}, value));
}

export function toText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

function onlyRecords(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
