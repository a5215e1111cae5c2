import { closeSync, mkdirSync, openSync, utimesSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface GeneratedSession {
  readonly sessionId: string;
  readonly cwd: string;
  /** In ms since 1970. */
  readonly startsAt: number;
  readonly turns: number;
  /** The number of its first turn, if it is to be appended to another part. */
  readonly firstTurn?: number;
  readonly callsPerTurn?: number;
  /** The lengths of a tool's result, of the text before each call, and of the lines that are skipped. */
  readonly resultChars?: number;
  readonly answerChars?: number;
  readonly requestChars?: number;
  readonly attachmentChars?: number;
}

export function sessionIdOf(n: number): string {
  return `${n.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`;
}

/** The proportions of long recordings: about a quarter each of answers, attachments and requests, and half as much of results. */
export const AS_RECORDED = { resultChars: 1_500, answerChars: 5_000, requestChars: 5_500, attachmentChars: 5_500 };

const WORDS = 'the quick brown fox jumps over a lazy dog while tests are running and results are written down, ';
const WORDS_CHARS = 200_000;
const LONG = WORDS.repeat(Math.ceil(WORDS_CHARS / WORDS.length));

/** Writes a session that ran `n` days ago. */
export function writeNthSession(projects: string, n: number, more: Partial<GeneratedSession> = {}): string {
  const startsAt = Date.now() - n * 86_400_000;
  return writeSession(projects, { sessionId: sessionIdOf(n), cwd: '/home/dev/one', turns: 2, startsAt, ...more });
}

/** Writes a transcript as Claude Code does, with a file time that makes it idle. Returns its path. */
export function writeSession(projects: string, session: GeneratedSession): string {
  const { sessionId, cwd, startsAt, turns, firstTurn = 1, callsPerTurn = 2 } = session;
  const { resultChars = 400, answerChars = 0, requestChars = 800, attachmentChars = 0 } = session;
  const path = join(projects, cwd.replace(/\W/g, '-'), `${sessionId}.jsonl`);
  mkdirSync(dirname(path), { recursive: true });
  let texts = 0;
  // No two texts begin alike, as in real sessions.
  const words = (chars: number) => {
    texts += 1;
    const from = (texts * 7) % WORDS.length;
    return `${texts} ${LONG.slice(from, from + chars)}`.slice(0, chars);
  };
  let now = startsAt;
  const common = () => {
    now += 700;
    return { timestamp: new Date(now).toISOString(), cwd, sessionId, version: '2.1.326', isSidechain: false };
  };
  const file = openSync(path, 'w');
  const write = (...lines: object[]) => writeSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const usage = { input_tokens: 10, output_tokens: 20, cache_read_input_tokens: 3_000 };
  const answer = (id: string, block: object) => ({
    message: { id, role: 'assistant', model: 'claude-opus-5', content: [block], usage },
    type: 'assistant',
    ...common(),
  });
  for (let turn = firstTurn; turn < firstTurn + turns; turn += 1) {
    const name = `${sessionId}-${turn}`;
    write({ type: 'user', message: { role: 'user', content: `question ${turn}` }, uuid: name, ...common() });
    for (let call = 1; call <= callsPerTurn; call += 1) {
      const id = `toolu_${name}-${call}`;
      const result = words(resultChars);
      write(
        { type: 'api-request-shape', sessionId, body: words(requestChars) },
        ...(attachmentChars > 0
          ? [
              {
                parentUuid: name,
                attachment: { type: 'date', content: words(attachmentChars) },
                type: 'attachment',
                ...common(),
              },
            ]
          : []),
        ...(answerChars > 0 ? [answer(`msg_${name}-${call}`, { type: 'text', text: words(answerChars) })] : []),
        answer(`msg_${name}-${call}`, { type: 'tool_use', id, name: 'Bash', input: { command: `npm test ${turn}` } }),
        {
          type: 'user',
          message: {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: id, content: result }],
          },
          uuid: `${name}-${call}`,
          ...(answerChars > 0 && { toolUseResult: { stdout: result } }),
          ...common(),
        },
      );
    }
    write(answer(`msg_${name}`, { type: 'text', text: `answer ${turn}` }));
  }
  closeSync(file);
  const last = new Date(Math.min(now, Date.now() - 3_600_000));
  utimesSync(path, last, last);
  return path;
}
