import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appendLines, assistant, SESSION, text, toolUse, turnLines, user } from '../support/lines.js';
import { Workplace } from '../support/program.js';
import { ScriptedSession } from '../support/requests.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const quietly = { exitCode: 0, stdout: '', stderr: '' };

function stop(rules: readonly object[], more: { [name: string]: string } = {}) {
  workplace.env = { ...workplace.env, ...more, CC_LANGFUSE_REDACT_EXTRA: JSON.stringify(rules) };
  const path = workplace.transcriptOf(SESSION);
  return workplace.hook({ session_id: SESSION, transcript_path: path, hook_event_name: 'Stop' });
}

function logText(): string {
  return JSON.stringify(workplace.log);
}

describe('a rule of the user', () => {
  test.each([
    ['(\\w|\\d)+@acme\\.com', '7'.repeat(200)],
    ['(a|b|ab)*c', 'ab'.repeat(200)],
    ['\\w*\\w*\\w*\\w*x@', 'w'.repeat(5_000)],
  ])('that backtracks for ever ends, sends nothing and is named by its number: %s', async (pattern, nasty) => {
    appendLines(workplace.transcriptOf(SESSION), user(`see ${nasty}`, { uuid: 'u1' }), assistant('m1', `${nasty}!`));
    expect(await stop([{ pattern: 'CUST-\\d+' }, { pattern }])).toMatchObject(quietly);
    expect(workplace.server.requests).toEqual([]);
    expect(logText()).toContain('CC_LANGFUSE_REDACT_EXTRA: rule 2 takes too long');
    expect(logText()).not.toContain(pattern.slice(0, 5));
    expect(logText()).not.toContain(nasty.slice(0, 20));
  });

  test('that holds turns back is named in the terminal, once per session, until it is fixed', async () => {
    appendLines(workplace.transcriptOf(SESSION), ...turnLines(1));
    await stop([{ pattern: '(question' }]);
    const { env } = workplace;
    workplace.env = { ...env, CLAUDE_CODE_ENTRYPOINT: 'cli' };
    const systemMessage =
      'cc-langfuse: CC_LANGFUSE_REDACT_EXTRA: rule 1 is not a valid regular expression. Nothing is exported. Run: cc-langfuse doctor';
    expect(await stop([{ pattern: '(question' }])).toMatchObject({ stdout: `${JSON.stringify({ systemMessage })}\n` });
    expect(await stop([{ pattern: '(question' }])).toMatchObject(quietly);
    expect(await stop([{ pattern: 'question' }])).toMatchObject(quietly);
    workplace.env = env;
    await stop([{ pattern: 'question' }]);
    expect(existsSync(join(workplace.stateFolder, 'cc-langfuse_refused'))).toBe(false);
  });

  test('that cannot be read holds the turns back, and they are sent once it is fixed', async () => {
    appendLines(workplace.transcriptOf(SESSION), ...turnLines(1));
    expect(await stop([{ pattern: '(question' }])).toMatchObject(quietly);
    expect(workplace.server.requests).toEqual([]);
    expect(logText()).toContain('CC_LANGFUSE_REDACT_EXTRA: rule 1 is not a valid regular expression');
    expect(logText()).not.toContain('question');
    expect(await stop([{ pattern: '(question)' }])).toMatchObject(quietly);
    expect(JSON.stringify(workplace.server.observations)).toContain('[redacted] 1');
  });

  describe('that takes too long on a real text', () => {
    // No sample that is made of the rule contains a v.
    const rules = [{ pattern: '(?:\\x76|[t-w])+!' }];
    const nasty = 'v'.repeat(60);

    test('holds that turn and all after it, but not those before, and lets them go once it is fixed', async () => {
      appendLines(workplace.transcriptOf(SESSION), ...turnLines(1));
      appendLines(
        workplace.transcriptOf(SESSION),
        user('question 2', { uuid: 'u2', parentUuid: 'a1' }),
        assistant('m2', [toolUse('t1', 'Bash', { command: nasty })], { uuid: 'a2', parentUuid: 'u2' }),
        ...turnLines(3),
      );
      expect(await stop(rules)).toMatchObject(quietly);
      const names = () => workplace.server.observations.map(({ name }) => name);
      expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1']);
      const reason = 'CC_LANGFUSE_REDACT_EXTRA: rule 1 takes too long';
      expect(workplace.state[SESSION]).toMatchObject({ pending: { code: 'rules', reason, attempts: 1 } });
      expect(workplace.log).toMatchObject([{ level: 'warn', msg: reason, session: SESSION }]);
      expect(await stop(rules)).toMatchObject(quietly);
      expect(workplace.state[SESSION]).toMatchObject({ pending: { reason, attempts: 2 } });
      expect(await stop([{ pattern: 'v+' }])).toMatchObject(quietly);
      expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2', 'Turn 3']);
      expect(workplace.state[SESSION]).not.toHaveProperty('pending');
    });

    test('holds a turn if only its whole request, with the system prompt, contains that text', async () => {
      const session = new ScriptedSession().remind({ role: 'system', content: nasty });
      appendLines(workplace.transcriptOf(SESSION), ...session.prompt('hi').answer(text('Hello.')).takeLines());
      expect(await stop(rules, { CC_LANGFUSE_INPUT: 'request' })).toMatchObject(quietly);
      expect(workplace.server.requests).toEqual([]);
      expect(workplace.state[SESSION]).toMatchObject({
        pending: { reason: 'CC_LANGFUSE_REDACT_EXTRA: rule 1 takes too long' },
      });
    });
  });
});
