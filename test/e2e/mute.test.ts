import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appendLines, assistant, at, SESSION, user } from '../support/lines.js';
import { run, Workplace } from '../support/program.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const transcript = () => workplace.transcriptOf(SESSION);
const append = (n: number) => workplace.addTurn(n);
const stop = () => workplace.stop();
const command = (...args: string[]) => run(args, workplace.env, '', { cwd: workplace.home });
const turns = () => workplace.server.roots.map(({ name }) => name);

describe('a session that is muted', () => {
  test('is not sent from then on by hooks, nor by a backfill, until it is unmuted', async () => {
    append(1);
    await stop();
    expect(await command('mute')).toMatchObject({
      exitCode: 0,
      stdout: `muted: question 1 (${SESSION}). Nothing more of the session is sent, including the turn under way.\n`,
    });
    append(2);
    await stop();
    const { stdout } = await workplace.backfill('--all', '--include-open');
    expect(stdout).toContain(`– ${SESSION} is muted`);
    await workplace.backfill('--all', '--include-open', '--force');
    expect((await command('sessions')).stdout).toContain(' · muted · ');
    expect((await command('doctor')).stdout).toContain(`${SESSION} is muted; cc-langfuse unmute ${SESSION} ends that`);
    expect(turns()).toEqual(['Turn 1']);

    expect(await command('unmute', SESSION.slice(0, 8))).toMatchObject({
      exitCode: 0,
      stdout: `unmuted: question 1 (${SESSION}). What was said while it was muted is not sent.\n`,
    });
    append(3);
    await stop();
    await workplace.backfill('--all', '--include-open');
    expect(turns()).toEqual(['Turn 1', 'Turn 3']);
    expect((await command('sessions')).stdout).toContain(' · exported · ');
  });

  test('sends nothing more of a turn that is under way, but what was over before', async () => {
    append(1);
    appendLines(transcript(), user('question 2', { uuid: 'u2', timestamp: at(20) }));
    await command('mute');
    appendLines(transcript(), assistant('m2', 'answer 2', { timestamp: at(25) }));
    await stop();
    expect(turns()).toEqual(['Turn 1']);
  });

  test('is known as such before tracing has seen it', async () => {
    append(1);
    await command('mute', SESSION);
    append(2);
    await workplace.backfill('--all', '--include-open');
    expect(turns()).toEqual(['Turn 1']);
  });
});

test('mute and unmute say if there is nothing to change', async () => {
  append(1);
  expect(await command('unmute')).toMatchObject({ exitCode: 0, stdout: `question 1 (${SESSION}) is not muted\n` });
  await command('mute');
  expect(await command('mute')).toMatchObject({ exitCode: 0, stdout: `question 1 (${SESSION}) is already muted\n` });
});

test('mute refuses a session that does not exist, and a second one', async () => {
  expect(await command('mute')).toMatchObject({
    exitCode: 2,
    stderr: 'cc-langfuse: no session ran in this directory; name one, cc-langfuse sessions lists them\n',
  });
  append(1);
  expect(await command('mute', SESSION, 'other')).toMatchObject({
    exitCode: 2,
    stderr: `cc-langfuse: ${SESSION} and other: mute takes one session\n`,
  });
  writeFileSync(join(workplace.home, 'x.jsonl'), 'no transcript');
  expect(await command('mute', 'x.jsonl')).toMatchObject({ exitCode: 2 });
});
