import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appendTurn, SESSION } from '../support/lines.js';
import { type Environment, run, Workplace } from '../support/program.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const path = () => workplace.transcriptOf(SESSION);
const turns = () => workplace.server.roots.map(({ name }) => name);

/** A hook of a run; Claude Code names the session in its environment, too. */
function hook(event: string, env: Environment = {}, more: object = {}) {
  const payload = { session_id: SESSION, transcript_path: path(), hook_event_name: event, ...more };
  return workplace.hook(payload, { CLAUDE_CODE_SESSION_ID: SESSION, ...env });
}

const OFF = { TRACE_TO_LANGFUSE: 'false' };

describe('what follows with tracing off is never sent after a run that was killed', () => {
  test.each([
    ['the hooks of Claude Code name their session in the environment', {}],
    ['they do not, as in older versions', { CLAUDE_CODE_SESSION_ID: undefined }],
  ])('if %s', async (_, env) => {
    await hook('SessionStart', env, { source: 'startup' });
    appendTurn(path(), 1);
    await hook('Stop', env);
    appendTurn(path(), 2);
    // Killed before its Stop. The session goes on with tracing off, and then with tracing on.
    await hook('SessionStart', { ...env, ...OFF }, { source: 'resume' });
    appendTurn(path(), 3);
    await hook('Stop', { ...env, ...OFF });
    await hook('SessionEnd', { ...env, ...OFF });
    await hook('SessionStart', env, { source: 'resume' });
    appendTurn(path(), 4);
    await hook('Stop', env);
    expect(turns()).toEqual(['Turn 1', 'Turn 2', 'Turn 4']);
  });
});

test('with tracing off a hook reads no input and writes nothing, unless its own session was traced', async () => {
  appendTurn(path(), 1);
  await hook('SessionStart', {}, { source: 'startup' });
  const other = 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb';
  const env = { ...workplace.env, ...OFF, CLAUDE_CODE_SESSION_ID: other };
  expect(await run(['hook'], env, 'no payload')).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
  expect(Object.keys(workplace.state)).toEqual([SESSION]);
});

test('CC_TRACE_TO_LANGFUSE=false in the shell is stronger than TRACE_TO_LANGFUSE=true in the settings', async () => {
  appendTurn(path(), 1);
  expect(await hook('Stop', { CC_TRACE_TO_LANGFUSE: 'false' })).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
  expect(workplace.server.requests).toEqual([]);
  await hook('Stop', { CC_TRACE_TO_LANGFUSE: 'true', TRACE_TO_LANGFUSE: 'false' });
  expect(turns()).toEqual(['Turn 1']);
});
