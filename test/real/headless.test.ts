import { describe, expect, test } from 'vitest';
import { claudeProgram } from './claude-code.js';
import { ClaudeHome } from './claude-home.js';
import { type Printed, print } from './headless.js';
import { proveMedia } from './media-proof.js';
import { proveArrival, proveExport, type Task } from './proof.js';
import { proveRequests } from './request-proof.js';
import { PICTURES, SCENARIOS, type Scenario, WHOLE_REQUESTS } from './scenarios.js';
import { TracedHome } from './traced-home.js';

describe('Langfuse receives everything from claude -p', () => {
  for (const scenario of SCENARIOS) test.concurrent(scenario.name, ({ task }) => play(scenario, task));

  test.concurrent(WHOLE_REQUESTS.name, ({ task }) => play(WHOLE_REQUESTS, task, proveRequests));

  test.concurrent(PICTURES.name, ({ task }) => play(PICTURES, task, proveMedia));
});

async function play(scenario: Scenario, task: Task, prove = (_: TracedHome) => {}): Promise<void> {
  const { script, runs, exitCode = 0 } = scenario;
  const traced = await TracedHome.open(script, { ...scenario, keepsPayloads: true });
  const untraced = await ClaudeHome.open(script, scenario);
  try {
    for (const { prompt, args = [] } of runs) {
      const run = (home: ClaudeHome) =>
        print(
          claudeProgram(),
          home,
          prompt,
          args.map((arg) => (arg === '$SESSION' ? home.lastSession : arg)),
        );
      const [printed, without] = await Promise.all([run(traced.claude), run(untraced)]);
      expect(comparable(printed)).toEqual(comparable(without));
      expect(printed.exitCode).toBe(exitCode);
      // An error is printed before the hooks that send it start.
      if (exitCode === 0) await proveArrival(traced, printed.at, task);
    }
    await proveExport(traced, scenario, task);
    prove(traced);
  } finally {
    await Promise.all([traced.close(), untraced.close()]);
  }
}

/** Removes ids and times, in which two runs of the same scenario differ. */
function comparable({ exitCode, stdout, stderr }: Printed) {
  const common = (output: string) =>
    output
      .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'an id')
      .replace(/"(\w*_ms|duration\w*)":\d+/g, '"$1":"some time"');
  return { exitCode, stdout: common(stdout), stderr: common(stderr) };
}
