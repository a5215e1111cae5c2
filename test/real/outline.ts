import type { StoredObservation } from '../support/langfuse-server.js';

const SHOWN_CHARS = 30;

/** Describes what Langfuse would show, one line for each observation; children are indented. */
export function outlineOf(observations: readonly StoredObservation[]): string[] {
  const roots = inOrder(observations.filter(({ parentId }) => parentId === undefined));
  const sessions = new Set(roots.map(({ trace }) => trace.sessionId));
  return [...sessions].flatMap((session) => [
    'session',
    ...roots.filter(({ trace }) => trace.sessionId === session).flatMap((root) => linesOf(root, observations, '  ')),
  ]);
}

function linesOf(observation: StoredObservation, all: readonly StoredObservation[], indent: string): string[] {
  const children = all.filter(
    ({ traceId, parentId }) => traceId === observation.traceId && parentId === observation.id,
  );
  return [
    `${indent}${describe(observation)}`,
    ...inOrder(children).flatMap((child) => linesOf(child, all, `${indent}  `)),
  ];
}

function describe({ type, name, level, metadata, input, output }: StoredObservation): string {
  const mark = level === undefined || level === 'DEFAULT' ? '' : ` ${level}`;
  switch (type) {
    case 'generation':
      return `generation${wordsOf(output)}${mark}`;
    case 'agent':
      return `${name}, ${metadata.outcome}${mark}`;
    case 'event':
      return `${name}${messagesOf(input)}${mark}`;
    default:
      return `${name}${mark}`;
  }
}

interface Answer {
  readonly content?: string;
  readonly thinking?: readonly { readonly content: string }[];
}

function wordsOf(output: unknown): string {
  const { content, thinking = [] } = output as Answer;
  return [
    ...thinking.map((thought) => ` thinking ${quoted(thought.content)}`),
    content ? ` ${quoted(content)}` : '',
  ].join('');
}

/** What the user or a hook said to the model. */
function messagesOf(input: unknown): string {
  const messages = (input ?? []) as readonly { readonly content: string }[];
  return messages.map(({ content }) => ` ${quoted(content)}`).join('');
}

function quoted(text: string): string {
  const words = text.replaceAll('\n', ' ');
  return `"${words.length > SHOWN_CHARS ? `${words.slice(0, SHOWN_CHARS)}…` : words}"`;
}

/** Sorts by time, and within a millisecond by the numbers in the ids of the scripted API. */
function inOrder(observations: readonly StoredObservation[]): StoredObservation[] {
  const number = ({ metadata }: StoredObservation) => String(metadata.message_id ?? metadata.tool_id ?? '');
  return observations.toSorted(
    (a, b) => a.startTime - b.startTime || number(a).localeCompare(number(b), 'en', { numeric: true }),
  );
}
