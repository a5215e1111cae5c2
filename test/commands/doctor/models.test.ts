import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DoctorHome } from '../../support/doctor.js';
import { appendLines, assistant, user } from '../../support/lines.js';

let home: DoctorHome;

beforeEach(async () => {
  home = await DoctorHome.open();
});

afterEach(() => home.close());

/** Writes a session whose answer comes from a model. */
function writeSession(n: number, model: string): void {
  const line = assistant(`m${n}`, 'an answer') as { message: object };
  const path = join(home.projects, '-work', `0000000${n}-0000-4000-8000-000000000000.jsonl`);
  appendLines(path, user('a question'), { ...line, message: { ...line.message, model } });
}

describe('the prices of the models that are in use', () => {
  test('are all known to the server', async () => {
    writeSession(1, 'claude-opus-5');
    writeSession(2, 'global.anthropic.claude-opus-5-v1:0');
    writeSession(3, 'claude-haiku-4-5@20251001');
    expect((await home.check()).of('prices')).toEqual([
      { status: 'ok', message: 'Langfuse has prices for claude-haiku-4-5-20251001, claude-opus-5' },
    ]);
  });

  test('are missing there for some, which are named', async () => {
    writeSession(1, 'claude-opus-5');
    writeSession(2, 'claude-opus-5-5');
    writeSession(3, 'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc');
    expect((await home.check()).of('prices')).toEqual([
      {
        status: 'warning',
        message:
          'Langfuse has no price for arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc, claude-opus-5-5, so it shows no cost',
        fix: 'cc-langfuse prices',
      },
    ]);
  });

  test('of a model that the project has defined without a price are missing', async () => {
    writeSession(1, 'claude-opus-5');
    const own = { modelName: 'mine', matchPattern: '(?i)^claude-opus', isLangfuseManaged: false, prices: {} };
    home.server.api.models.models.push(own);
    expect((await home.check()).of('prices')).toMatchObject([{ status: 'warning' }]);
  });

  test('are not asked for without a session, with refused keys, or of a server that only a project names', async () => {
    expect((await home.check()).of('prices')).toEqual([]);
    writeSession(1, 'claude-opus-5');
    expect((await home.check({ LANGFUSE_SECRET_KEY: 'wrong' })).of('prices')).toEqual([]);
    const { HOME, ...env } = home.env;
    home.env = { HOME };
    home.writeSettings({ env }, 'project');
    home.server.requests.splice(0);
    expect((await home.check()).of('prices')).toEqual([]);
    expect(home.server.requests).toEqual([]);
  });
});
