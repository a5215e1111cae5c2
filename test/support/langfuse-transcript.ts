import { groupBy } from '../../src/shared/group-by.js';
import { isRecord } from '../../src/shared/json.js';

/** An observation, before it is sent or as it is stored. */
interface Seen {
  readonly type: string | undefined;
  readonly id: string;
  readonly parentId: string | undefined;
  readonly name: string;
  readonly startTime: number;
  readonly input?: unknown;
  readonly output?: unknown;
}

interface Message {
  readonly role: string;
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: string }[];
  /** The call whose result it is. */
  readonly resultOf: string | undefined;
}

type Shown = Message & { readonly key: string | undefined };

interface Call {
  readonly thread: Shown[];
  readonly message: Shown;
  result?: Shown;
  isTaken?: boolean;
}

/**
 * The conversations that the session page of Langfuse makes of a trace since September 2026, each as lines. It follows
 * packages/shared/src/server/transcript/: README.md, ordering.ts, transcript.ts, threads.ts and tool-calls.ts.
 */
export function readTranscript(observations: readonly Seen[]): string[][] {
  const threads: Shown[][] = [];
  const calls = new Map<string, Call>();
  for (const observation of inTreeOrder(observations)) {
    if (observation.type === 'tool') {
      // Our tools' outputs name no call: the first of that name gets it which has none.
      const call = [...calls.values()].find(
        ({ message, isTaken }) => !isTaken && message.calls.some(({ name }) => name === observation.name),
      );
      if (call) {
        call.isTaken = true;
        attach(call, readMessage({ role: 'tool', content: observation.output }), true);
      }
    }
    if (observation.type !== 'generation') continue;
    const [input, output] = [readMessages(observation.input), readMessages(observation.output)];
    if (input.length + output.length === 0) continue;
    const thread = findThread(threads, input) ?? addTo(threads, []);
    const seen = new Map<string, number>();
    for (const message of input) {
      const call = message.resultOf === undefined ? undefined : calls.get(message.resultOf);
      if (call?.thread === thread) {
        attach(call, message, false);
        continue;
      }
      const key = keyOf(message);
      const occurrence = (seen.get(key) ?? 0) + 1;
      seen.set(key, occurrence);
      if (occurrence > thread.filter((shown) => shown.key === key).length) thread.push({ ...message, key });
    }
    for (const message of output) {
      const shown = addTo(thread, { ...message, key: keyOf(message) });
      for (const { id } of message.calls) if (!calls.has(id)) calls.set(id, { thread, message: shown });
    }
  }
  return threads.map((thread) => thread.map(describe));
}

/** A thread goes on if the input has all of its messages. System messages do not matter, nor do results of known calls. */
function findThread(threads: readonly Shown[][], input: readonly Message[]): Shown[] | undefined {
  const keys = new Set(input.map(keyOf));
  return threads.findLast((thread) => {
    const defining = thread.flatMap(({ role, key }) => (role === 'system' || key === undefined ? [] : [key]));
    return defining.length > 0 && defining.every((key) => keys.has(key));
  });
}

function attach(call: Call, message: Message, isFromTool: boolean): void {
  if (call.result && !isFromTool) return;
  const result = { ...message, key: undefined };
  const place = call.thread.indexOf(call.result ?? call.message);
  call.thread.splice(call.result ? place : place + 1, call.result ? 1 : 0, result);
  call.result = result;
}

function inTreeOrder(observations: readonly Seen[]): Seen[] {
  const ids = new Set(observations.map(({ id }) => id));
  const below = groupBy(observations, ({ parentId = '' }) => (ids.has(parentId) ? parentId : ''));
  const walk = (parent: string): Seen[] =>
    (below.get(parent) ?? []).toSorted((a, b) => a.startTime - b.startTime).flatMap((each) => [each, ...walk(each.id)]);
  return walk('');
}

function readMessages(value: unknown): Message[] {
  const all = Array.isArray(value) ? value : [value];
  const messages = all.filter(isRecord).map(readMessage);
  return messages.filter(({ text, calls, resultOf }) => text !== '' || calls.length > 0 || resultOf !== undefined);
}

function readMessage({ role, content, tool_calls: asked, tool_call_id: resultOf }: Record<string, unknown>): Message {
  const calls = (Array.isArray(asked) ? asked.filter(isRecord) : []).map(({ id, function: called }) => {
    const { name, arguments: input } = isRecord(called) ? called : {};
    return { id: String(id), name: String(name), input: String(input) };
  });
  return {
    role: String(role),
    text: typeof content === 'string' ? content : JSON.stringify(content),
    calls,
    resultOf: resultOf as string | undefined,
  };
}

/** Neither the name of a message nor its thinking matters. */
function keyOf({ role, text, calls, resultOf }: Message): string {
  return JSON.stringify([role, text, calls, resultOf]);
}

function describe({ role, text, calls }: Message): string {
  return [`${role}:`, text, ...calls.map(({ name }) => `[${name}]`)].filter((part) => part !== '').join(' ');
}

function addTo<T>(list: T[], item: T): T {
  list.push(item);
  return item;
}
