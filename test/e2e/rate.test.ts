import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Collector } from '../support/collector.js';
import { LangfuseServer } from '../support/langfuse-server.js';
import { appendLines, assistant, at, SESSION, toolUse, user } from '../support/lines.js';
import { run, Workplace } from '../support/program.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const OTHER = '22222222-2222-4222-8222-222222222222';
const transcript = (session = SESSION) => workplace.transcriptOf(session);
const append = (n: number, session = SESSION) => workplace.addTurn(n, session);
const stop = (session = SESSION) => workplace.stop(session);
const rate = (...args: string[]) => run(['rate', ...args], workplace.env, '', { cwd: workplace.home });
const traceOf = (name: string) => workplace.server.roots.find((root) => root.name === name)?.traceId;
const ratings = (server = workplace.server) =>
  [...server.api.scores.values()].map(({ traceId, observationId, name, value, dataType, comment }) => ({
    traceId,
    ...(observationId !== undefined && { observationId }),
    [name]: value,
    dataType,
    comment,
  }));
const rated = (turn: string, user_rating: number, comment = '') => ({
  traceId: traceOf(turn),
  user_rating,
  dataType: 'BOOLEAN',
  comment,
});
const becomeUnreachable = () => {
  workplace.server.misbehave = ({ url }) => (/\/(?:scores|ingestion)$/.test(url ?? '') ? { status: 503 } : undefined);
};
const recover = () => {
  workplace.server.misbehave = () => undefined;
};
const dueScores = () => Object.values((workplace.state[SESSION]?.scores ?? {}) as object);

describe('cc-langfuse rate', () => {
  test('rates the last turn, or the one with a number, and replaces what was said before', async () => {
    append(1);
    append(2);
    await stop();
    expect(await rate('good')).toMatchObject({ exitCode: 0, stdout: 'turn 2 is rated good\n', stderr: '' });
    expect(ratings()).toEqual([rated('Turn 2', 1)]);
    expect(await rate('bad', '--comment', 'key sk-lf-12345678-1234-1234-1234-123456789012 ', SESSION)).toMatchObject({
      exitCode: 0,
      stdout: 'turn 2 is rated bad\n',
    });
    expect(ratings()).toEqual([rated('Turn 2', 0, 'key [redacted]')]);
    await rate('good', '--turn', '1');
    expect(ratings()).toEqual([rated('Turn 2', 0, 'key [redacted]'), rated('Turn 1', 1)]);
    expect(dueScores()).toEqual([]);
  });

  test('dates no two ratings of a turn alike, however fast they follow each other, and whatever the clock says', async () => {
    append(1);
    await stop();
    const times: (string | undefined)[] = [];
    const verdicts = ['good', 'bad', 'good', 'bad', 'good', 'bad'];
    for (const verdict of verdicts) {
      await rate(verdict);
      times.push([...workplace.server.api.scores.values()].at(-1)?.timestamp);
    }
    expect(times).toEqual([...new Set(times)].toSorted());
    await Promise.all(verdicts.map((verdict) => rate(verdict)));
    expect(workplace.server.api.scoresTaken).toBe(12);
  });

  test("rates the turn, not the caller's trace that it is in", async () => {
    const trace = 'a'.repeat(32);
    workplace.env = { ...workplace.env, CC_LANGFUSE_TRACEPARENT: `00-${trace}-${'b'.repeat(16)}-01` };
    append(1);
    await stop();
    await rate('good');
    const root = workplace.server.observations.find(({ name }) => name === 'Turn 1');
    expect(ratings()).toEqual([{ ...rated('', 1), traceId: trace, observationId: root?.id }]);
  });

  test('does not rate the turn in which the rating is given', async () => {
    append(1);
    const command =
      '<command-message>cc-langfuse:good</command-message>\n<command-name>/cc-langfuse:good</command-name>';
    appendLines(
      transcript(),
      user(command, { uuid: 'u2', timestamp: at(20), cwd: workplace.home }),
      assistant('m2', 'rated', { timestamp: at(25) }),
      user('<bash-input>cc-langfuse rate bad</bash-input>', { uuid: 'u3', timestamp: at(30) }),
      assistant('m3', 'rated', { timestamp: at(35) }),
    );
    await stop();
    expect(await rate('good')).toMatchObject({ stdout: 'turn 1 is rated good\n' });
    appendLines(
      transcript(),
      user('rate it', { uuid: 'u4', timestamp: at(40) }),
      assistant('m4', [toolUse('t4', 'Bash')], { timestamp: at(45) }),
    );
    workplace.env = { ...workplace.env, CLAUDE_CODE_SESSION_ID: SESSION };
    expect(await rate('good')).toMatchObject({ stdout: 'turn 1 is rated good\n' });
  });

  test('takes the session that Claude Code runs it in, whichever is the newest', async () => {
    append(1);
    await stop();
    append(1, OTHER);
    await stop(OTHER);
    workplace.env = { ...workplace.env, CLAUDE_CODE_SESSION_ID: SESSION };
    await rate('good');
    const own = workplace.server.roots.find(({ trace }) => trace.sessionId === SESSION);
    expect(ratings().map(({ traceId }) => traceId)).toEqual([own?.traceId]);
  });

  test('never sends the comment under CC_LANGFUSE_CAPTURE=metadata, whoever has set it', async () => {
    append(1);
    await stop();
    workplace.env = { ...workplace.env, CC_LANGFUSE_CAPTURE: 'metadata' };
    expect(await rate('bad', '--comment', 'secret words')).toMatchObject({
      exitCode: 0,
      stdout: 'turn 1 is rated bad; without the comment, because no content is sent\n',
    });
    workplace.env = { ...workplace.env, CC_LANGFUSE_CAPTURE: undefined };
    expect(ratings()).toEqual([rated('Turn 1', 0)]);
  });
});

describe('a rating that cannot be sent', () => {
  test('waits in the state, without secrets, and is sent by the next hook; the last one given counts', async () => {
    append(1);
    await stop();
    becomeUnreachable();
    expect(await rate('bad', '--comment', 'password=hunter2hunter2')).toMatchObject({
      exitCode: 0,
      stdout: 'turn 1 is rated bad; it waits for the next hook (the server answers 503 to scores)\n',
    });
    expect(dueScores()).toMatchObject([{ figures: { user_rating: 0 }, comment: 'password=[redacted]' }]);
    await rate('good', '--comment', 'now it works');
    expect(dueScores()).toMatchObject([{ figures: { user_rating: 1 }, comment: 'now it works' }]);
    expect(workplace.state[SESSION]).toMatchObject({ pending: { reason: 'a rating waits to be sent' } });
    recover();
    append(2);
    await stop();
    expect(ratings()).toEqual([rated('Turn 1', 1, 'now it works')]);
    expect(dueScores()).toEqual([]);
    expect(workplace.state[SESSION]).not.toHaveProperty('pending');
  });

  test('is sent by the hook of another session, and by a backfill that sends everything again', async () => {
    append(1);
    await stop();
    becomeUnreachable();
    await rate('good');
    recover();
    workplace.letIdle();
    append(1, OTHER);
    await stop(OTHER);
    expect(ratings()).toEqual([rated('Turn 1', 1)]);

    becomeUnreachable();
    await rate('bad', SESSION);
    recover();
    await workplace.backfill('--force', '--include-open', transcript());
    expect(ratings()).toEqual([rated('Turn 1', 0)]);
    expect(dueScores()).toEqual([]);
  });

  test('is forgotten if a later one was sent', async () => {
    append(1);
    await stop();
    becomeUnreachable();
    await rate('bad');
    recover();
    await rate('good');
    expect(dueScores()).toEqual([]);
    await stop();
    expect(ratings()).toEqual([rated('Turn 1', 1)]);
  });

  test("waits for the keys of the turn's own project, and is sent to no other", async () => {
    append(1);
    await stop();
    const other = await LangfuseServer.start();
    onTestFinished(() => other.stop());
    const own = workplace.env;
    workplace.env = { ...own, LANGFUSE_BASE_URL: other.url };
    expect(await rate('good')).toMatchObject({
      exitCode: 0,
      stdout: 'turn 1 is rated good; it waits for the next hook (your keys are for another project)\n',
    });
    await stop();
    await workplace.hook({ session_id: SESSION, transcript_path: transcript(), hook_event_name: 'SessionEnd' });
    expect(ratings(other)).toEqual([]);
    workplace.env = own;
    await stop();
    expect(ratings(other)).toEqual([]);
    expect(ratings()).toEqual([rated('Turn 1', 1)]);
  });
});

describe('cc-langfuse rate refuses', () => {
  const refusal = (message: string, exitCode = 1) => ({ exitCode, stdout: '', stderr: `cc-langfuse: ${message}\n` });

  test('a session that is muted, not traced, or excluded', async () => {
    append(1);
    expect(await rate('good')).toMatchObject(refusal('the session is not in Langfuse'));
    await stop();
    workplace.env = { ...workplace.env, CC_LANGFUSE_EXCLUDE: workplace.home };
    expect(await rate('good')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^cc-langfuse: the session is not in Langfuse: CC_LANGFUSE_EXCLUDE in /),
    });
    workplace.env = { ...workplace.env, CC_LANGFUSE_EXCLUDE: undefined };
    await run(['mute', SESSION], workplace.env);
    expect(await rate('good')).toMatchObject(refusal('the session is muted; cc-langfuse unmute ends that'));
    append(2);
    await run(['unmute', SESSION], workplace.env);
    expect(await rate('good')).toMatchObject(refusal('turn 2 is not in Langfuse: the session was muted'));
    expect(ratings()).toEqual([]);
  });

  test('a turn that ran without tracing', async () => {
    append(1);
    await stop();
    await workplace.hook({ session_id: SESSION, transcript_path: transcript(), hook_event_name: 'SessionEnd' });
    append(2);
    expect(await rate('good')).toMatchObject(
      refusal('turn 2 is not in Langfuse: it ran without tracing, or without keys, and backfill has not sent it'),
    );
  });

  test('everything if a rule for redaction cannot be applied', async () => {
    append(1);
    await stop();
    workplace.env = { ...workplace.env, CC_LANGFUSE_REDACT_EXTRA: '[{"pattern":"("}]' };
    expect(await rate('bad', '--comment', 'why')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^cc-langfuse: CC_LANGFUSE_REDACT_EXTRA: /),
    });
    expect(ratings()).toEqual([]);
  });

  test('a session that was sent to a Collector', async () => {
    const collector = await Collector.start();
    onTestFinished(() => collector.stop());
    workplace.env = { ...workplace.env, CC_LANGFUSE_OTLP_URL: collector.url };
    append(1);
    await stop();
    expect(await rate('good')).toMatchObject(refusal('the session was sent to the Collector, which takes no scores'));
  });

  test('a rating that the server does not take', async () => {
    append(1);
    await stop();
    workplace.server.misbehave = ({ url }) => (/\/(?:scores|ingestion)$/.test(url ?? '') ? { status: 400 } : undefined);
    expect(await rate('good')).toMatchObject(refusal('the server refuses the rating'));
    expect(dueScores()).toEqual([]);
  });

  test.each([
    [[], 'rate: say whether the turn was good or bad'],
    [['great'], 'rate: say whether the turn was good or bad'],
    [['good', SESSION, OTHER], `${SESSION} and ${OTHER}: rate takes one session`],
    [['good', '--turn', 'x'], '--turn x: expected a whole number above 0'],
  ])('the arguments %j', async (args, message) => {
    append(1);
    await stop();
    expect(await rate(...args)).toMatchObject(refusal(message, 2));
  });
});
