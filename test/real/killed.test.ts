import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { isRecord, parseJson } from '../../src/shared/json.js';
import { killProcesses } from '../support/home-processes.js';
import { claudeProgram } from './claude-code.js';
import { register } from './registration.js';
import { bash, type Script, says, text } from './replies.js';
import { TracedHome } from './traced-home.js';

const CALLS = 20;
/** What was written so shortly before the end may be lost. */
const LAST_SECONDS_MS = 6_000;
const TIMEOUT_MS = 120_000;

const WORK: Script = {
  'Work all night': [
    ...Array.from({ length: CALLS - 1 }, (_, n) => says(text(`Step ${n + 1}.`), bash(`sleep 1; echo step ${n + 1}`))),
    says(text('The last step.'), bash('sleep 600')),
  ],
};

interface Written {
  readonly id: string;
  readonly at: number;
}

/** The calls and the responses of a transcript that nothing can change any more: those with results. */
function finalOf(path: string): { calls: Written[]; responses: Written[] } {
  const lines = readFileSync(path, 'utf8').split('\n').map(parseJson).filter(isRecord);
  const calls: Written[] = [];
  const responses: Written[] = [];
  let response = '';
  for (const { type, message, timestamp } of lines) {
    if (!isRecord(message) || !Array.isArray(message.content)) continue;
    if (type === 'assistant') response = `${message.id}`;
    for (const block of message.content) {
      if (type !== 'user' || block.type !== 'tool_result') continue;
      const at = Date.parse(`${timestamp}`);
      calls.push({ id: block.tool_use_id, at });
      responses.push({ id: response, at });
    }
  }
  return { calls, responses };
}

test.skipIf(process.platform !== 'linux')(
  'of a turn that is killed with everything that it started, Langfuse has all but the last seconds',
  async () => {
    const traced = await TracedHome.open(WORK, {}, (home, server) => register(home, server, ['--live']));
    const { home, work: cwd, env } = traced.claude;
    try {
      const claude = spawn(claudeProgram(), ['-p', 'Work all night'], { cwd, env, stdio: 'ignore', detached: true });
      const ended = new Promise((resolve) => claude.on('close', resolve));
      const countCalls = () => traced.claude.api.served.filter(({ isAside }) => !isAside).length;
      await vi.waitUntil(() => countCalls() === CALLS && traced.claude.transcripts.length > 0, { timeout: TIMEOUT_MS });
      const killedAt = Date.now();
      await killProcesses(home);
      await ended;

      const [path = ''] = traced.claude.transcripts;
      const { calls, responses } = finalOf(path);
      const { observations } = traced.server;
      const sentCalls = observations.map(({ metadata }) => metadata.tool_id);
      const sentResponses = observations.map(({ metadata }) => metadata.message_id);
      const isOld = ({ at }: Written) => at < killedAt - LAST_SECONDS_MS;
      expect(calls.filter(isOld).length).toBeGreaterThan(CALLS / 4);
      expect(calls.filter((call) => isOld(call) && !sentCalls.includes(call.id))).toEqual([]);
      expect(responses.filter((response) => isOld(response) && !sentResponses.includes(response.id))).toEqual([]);
      expect(observations.filter(({ parentId }) => parentId === undefined)).toEqual([]);
      expect(observations.filter((each) => traced.server.timesSent(each) > 1)).toEqual([]);
    } finally {
      await killProcesses(home);
      await traced.close();
    }
  },
);
