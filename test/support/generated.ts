import { closeSync, mkdirSync, openSync, utimesSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface GeneratedSession {
  readonly sessionId: string;
  readonly cwd: string;
  /** When it begins, in ms since 1970. */
  readonly startsAt: number;
  readonly turns: number;
  /** How long a tool's result is, and a line that nobody reads. */
  readonly resultChars?: number;
  readonly skippedChars?: number;
  readonly callsPerTurn?: number;
}

export function sessionIdOf(n: number): string {
  return `${n.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`;
}

const WORDS = 'the quick brown fox jumps over a lazy dog while tests are running and results are written down, ';

/** Writes a transcript as Claude Code does, and lets it lie idle since; gives its path. */
export function writeSession(projects: string, session: GeneratedSession): string {
  const { sessionId, cwd, startsAt, turns, resultChars = 400, skippedChars = 800, callsPerTurn = 2 } = session;
  const path = join(projects, cwd.replace(/\W/g, '-'), `${sessionId}.jsonl`);
  mkdirSync(dirname(path), { recursive: true });
  const words = WORDS.repeat(Math.ceil(Math.max(resultChars, skippedChars, 400) / WORDS.length));
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
  for (let turn = 1; turn <= turns; turn += 1) {
    const name = `${sessionId}-${turn}`;
    write({ type: 'user', message: { role: 'user', content: `question ${turn}` }, uuid: name, ...common() });
    for (let call = 1; call <= callsPerTurn; call += 1) {
      const id = `toolu_${name}-${call}`;
      write(
        { type: 'api-request-shape', sessionId, body: words.slice(0, skippedChars) },
        answer(`msg_${name}-${call}`, { type: 'tool_use', id, name: 'Bash', input: { command: `npm test ${turn}` } }),
        {
          type: 'user',
          message: {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: id, content: words.slice(0, resultChars) }],
          },
          uuid: `${name}-${call}`,
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
