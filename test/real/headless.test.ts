import { describe, expect, test, vi } from 'vitest';
import { claudeProgram } from './claude-code.js';
import { ClaudeHome } from './claude-home.js';
import { type Printed, print } from './headless.js';
import { proveMedia } from './media-proof.js';
import { proveArrival, proveExport, type Task } from './proof.js';
import { proveRequests } from './request-proof.js';
import { PICTURES, type Run, SCENARIOS, type Scenario, WHOLE_REQUESTS } from './scenarios.js';
import { TracedHome } from './traced-home.js';

const ANSWER_TIMEOUT_MS = 60_000;

describe('Langfuse receives everything from claude -p', () => {
  for (const scenario of SCENARIOS) {
    const { name, failsBecause } = scenario;
    const judge = failsBecause === undefined ? test : test.fails;
    const reason = failsBecause === undefined ? '' : ` (not yet: ${failsBecause})`;
    judge(name + reason, ({ task }) => play(scenario, task));
  }

  test(WHOLE_REQUESTS.name, ({ task }) => play(WHOLE_REQUESTS, task, proveRequests));

  test(PICTURES.name, ({ task }) => play(PICTURES, task, proveMedia));
});

async function play(scenario: Scenario, task: Task, prove = (_: TracedHome) => {}): Promise<void> {
  const { script, runs, exitCode = 0 } = scenario;
  const traced = await TracedHome.open(script, { ...scenario, keepsPayloads: true });
  const untraced = await ClaudeHome.open(script, scenario);
  try {
    for (const run of runs) {
      const [printed, without] = await Promise.all([start(run, traced.claude), start(run, untraced)]);
      expect(printed.map(comparable)).toEqual(without.map(comparable));
      for (const one of printed) expect(one.exitCode).toBe(exitCode);
      // An error is printed before the hooks that send it start.
      if (exitCode === 0) await proveArrival(traced, Math.max(...printed.map(({ at }) => at)), task);
    }
    await proveExport(traced, scenario, task);
    prove(traced);
  } finally {
    await Promise.all([traced.close(), untraced.close()]);
  }
}

/** Starts the process of a run, or both. */
async function start({ prompt, args = [], meanwhile }: Run, home: ClaudeHome): Promise<Printed[]> {
  const filledIn = args.map((arg) => (arg === '$SESSION' ? home.lastSession : arg));
  const countAnswers = () => home.api.served.filter(({ isAside, isWhole }) => isWhole && !isAside).length;
  const before = countAnswers();
  const printed = print(claudeProgram(), home, prompt, filledIn);
  if (meanwhile === undefined) return [await printed];
  await vi.waitUntil(() => countAnswers() > before, { timeout: ANSWER_TIMEOUT_MS });
  return Promise.all([printed, print(claudeProgram(), home, meanwhile, filledIn)]);
}

/** Removes ids and times, in which two runs of the same scenario differ. */
function comparable({ exitCode, stdout, stderr }: Printed) {
  const common = (output: string) =>
    output
      .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'an id')
      .replace(/"(\w*_ms|duration\w*)":\d+/g, '"$1":"some time"');
  return { exitCode, stdout: common(stdout), stderr: common(stderr) };
}
