import { appendFileSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { type Line, parseLine } from '../../src/transcript/file/line.js';
import { NO_SESSION_FACTS, type Turn } from '../../src/transcript/turns/turn.js';
import { TurnGrouper } from '../../src/transcript/turns/turn-grouper.js';

export const SESSION = '11111111-1111-4111-8111-111111111111';
const BORN_AT = Date.UTC(2025, 0, 1);

/** The text of a transcript that contains these objects, or these texts as they are. */
export function jsonLines(contents: readonly (object | string)[]): string {
  return contents.map((content) => `${typeof content === 'string' ? content : JSON.stringify(content)}\n`).join('');
}

/** Appends lines to a transcript, and creates it if it does not exist. */
export function appendLines(path: string, ...contents: (object | string)[]): void {
  mkdirSync(dirname(path), { recursive: true });
  appendFileSync(path, jsonLines(contents));
}

/** Appends the nth turn of a session, a question and an answer; `more` has further fields of the question's line. */
export function appendTurn(path: string, n: number, more: object = {}): void {
  const session = basename(path, '.jsonl');
  appendLines(
    path,
    user(`question ${n}`, { uuid: `${session}-${n}`, promptId: `p${n}`, timestamp: at(n * 10), ...more }),
    assistant(`${session}-m${n}`, `answer ${n}`, { timestamp: at(n * 10 + 5) }),
  );
}

/** The id of the last prompt in a transcript; undefined if its lines name none. */
export function lastPromptId(path: string): string | undefined {
  const text = statSync(path, { throwIfNoEntry: false })?.isFile() ? readFileSync(path, 'utf8') : '';
  const prompts = text
    .split('\n')
    .filter((line) => /"type":"user"/.test(line) && !/"tool_result"|"isMeta":true/.test(line));
  return /"promptId":"([^"]+)"/.exec(prompts.at(-1) ?? '')?.[1];
}

/** The lines of a turn, a question and its answer; both descend from the turn with the number before. */
export function turnLines(n: number, more: object = {}): object[] {
  return [
    user(`question ${n}`, {
      uuid: `u${n}`,
      parentUuid: `a${n - 1}`,
      promptId: `p${n}`,
      timestamp: at(n * 10),
      ...more,
    }),
    assistant(`m${n}`, `answer ${n}`, { uuid: `a${n}`, parentUuid: `u${n}`, timestamp: at(n * 10 + 5), ...more }),
  ];
}

/** Parses a transcript that contains these objects, or these texts as they are. */
export function linesOf(contents: readonly (object | string)[]): Line[] {
  let start = 0;
  return contents.flatMap((content, index) => {
    const bytes = Buffer.from(typeof content === 'string' ? content : JSON.stringify(content));
    const end = start + bytes.length + 1;
    const line = parseLine({ number: index + 1, start, end, bytes });
    start = end;
    return line ? [line] : [];
  });
}

interface Grouped {
  /** The turns that have ended before another one. */
  readonly ended: readonly Turn[];
  /** The last turn that has not ended, if it has a response. */
  readonly open: Turn | undefined;
  readonly all: readonly Turn[];
}

/** `elsewhere` has the uuids of the lines that another session's transcript has, if not all of them. */
export function groupTurns(
  contents: readonly (object | string)[],
  sessionId = SESSION,
  elsewhere?: readonly string[],
): Grouped {
  return grouped(linesOf(contents), sessionId, () => BORN_AT, elsewhere);
}

/** Groups the lines of a main thread into turns. */
export function grouped(
  lines: Iterable<Line>,
  sessionId: string,
  time: () => number,
  elsewhere?: readonly string[],
): Grouped {
  const grouper = new TurnGrouper({
    session: NO_SESSION_FACTS,
    thread: 'main',
    sessionId,
    turnCount: 0,
    line: 1,
    offset: 0,
    time,
    isHeldBy: (_, uuid) => elsewhere === undefined || (uuid !== undefined && elsewhere.includes(uuid)),
  });
  const ended = [...lines].flatMap((line) => grouper.push(line)?.turns ?? []);
  const open = grouper.open()?.turns ?? [];
  return { ended, open: open.at(-1), all: [...ended, ...open] };
}

/** The timestamp so many seconds after 2025-01-15 10:00 UTC. */
export function at(seconds: number): string {
  return new Date(Date.UTC(2025, 0, 15, 10, 0, seconds)).toISOString();
}

export function ms(seconds: number): number {
  return Date.parse(at(seconds));
}

export function user(content: unknown, more: object = {}): object {
  return { type: 'user', message: { role: 'user', content }, ...more };
}

export function assistant(id: string | undefined, content: unknown, more: object = {}): object {
  return { type: 'assistant', message: { role: 'assistant', model: 'claude-opus-5', id, content }, ...more };
}

export function text(words: string): object {
  return { type: 'text', text: words };
}

export function toolUse(id: string, name = 'Read', input: unknown = {}): object {
  return { type: 'tool_use', id, name, input };
}

export function toolResult(id: string, content: unknown = 'done', more: object = {}): object {
  return { type: 'tool_result', tool_use_id: id, content, ...more };
}
