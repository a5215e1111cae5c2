import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { saveInstalledDestination } from '../../src/config/installed-destinations.js';
import { ClaudeSession, writeFolderSettings } from '../support/claude-session.js';
import { LangfuseServer, PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { type Environment, run, Workplace } from '../support/program.js';

let workplace: Workplace;
let theirs: LangfuseServer;
let session: ClaudeSession;
let project: string;

beforeEach(async () => {
  workplace = await Workplace.open();
  theirs = await LangfuseServer.start();
  project = join(workplace.home, 'work');
  const id = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
  session = new ClaudeSession(id, workplace.transcriptOf(id), project);
  session.addTurn();
});

afterEach(async () => {
  await workplace.close();
  await theirs.stop();
});

/** Runs a hook with what Claude Code passes on: the shell's variables, and those of all settings. */
function hook(settings: Environment, env: Environment = {}, payload = session.payload('Stop')) {
  const passed = { ...workplace.env, CLAUDE_PROJECT_DIR: project, ...settings, ...env };
  return run(['hook'], passed, JSON.stringify(payload), { cwd: project });
}

const received = () => [workplace.server, theirs].map(({ roots }) => roots.length);

describe('a server that only a repository names', () => {
  test.each([
    ['settings.json', 'LANGFUSE_BASE_URL'],
    ['settings.json', 'CC_LANGFUSE_BASE_URL'],
    ['settings.json', 'LANGFUSE_HOST'],
    ['settings.local.json', 'LANGFUSE_BASE_URL'],
  ])('gets no key of the user: %s names it as %s', async (file, variable) => {
    const settings = { LANGFUSE_PUBLIC_KEY: 'pk-lf-theirs', LANGFUSE_BASE_URL: undefined, [variable]: theirs.url };
    writeFolderSettings(project, { LANGFUSE_PUBLIC_KEY: 'pk-lf-theirs', [variable]: theirs.url }, file);
    for (const event of ['Stop', 'SessionEnd'] as const) {
      const { exitCode, stdout } = await hook(settings, {}, session.payload(event));
      expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
    }
    expect([...theirs.requests, ...workplace.server.requests]).toEqual([]);
    expect(workplace.log.map(({ msg }) => msg)).toContain(
      `LANGFUSE_SECRET_KEY: is ignored, because ${join(project, '.claude', file)} chooses the server`,
    );
  });

  test('is named in the terminal, once, and the turn arrives when the user has named the server too', async () => {
    const settings = { LANGFUSE_BASE_URL: theirs.url };
    writeFolderSettings(project, settings);
    await hook(settings);
    const other = { ...session.payload('Stop'), session_id: 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb' };
    const { stdout } = await hook(settings, { CLAUDE_CODE_ENTRYPOINT: 'cli' }, other);
    expect(JSON.parse(stdout).systemMessage).toContain('chooses the server');
    writeFolderSettings(workplace.home, settings);
    await hook(settings);
    expect(received()).toEqual([0, 1]);
  });

  test('gets nothing with keys of its own, nor does the server of the user, until the user has installed it there', async () => {
    const settings = {
      LANGFUSE_BASE_URL: theirs.url,
      CC_LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
      CC_LANGFUSE_SECRET_KEY: SECRET_KEY,
    };
    writeFolderSettings(project, settings);
    await hook(settings);
    expect([...theirs.requests, ...workplace.server.requests]).toEqual([]);
    const file = join(project, '.claude', 'settings.json');
    const message = workplace.log.map(({ msg }) => msg).find((msg) => msg.startsWith('LANGFUSE_SECRET_KEY: '));
    expect(message).toContain(`because ${file} names another destination`);
    saveInstalledDestination(workplace.stateFolder, file, settings);
    await hook(settings, { LANGFUSE_SECRET_KEY: 'sk-lf-of-the-user' });
    expect(received()).toEqual([0, 1]);
    expect(JSON.stringify(theirs.requests)).not.toContain(
      Buffer.from(`${PUBLIC_KEY}:sk-lf-of-the-user`).toString('base64'),
    );
  });

  test('gets no headers that the user has set for a Collector', async () => {
    const settings = { CC_LANGFUSE_OTLP_URL: `${theirs.url}/v1/traces` };
    writeFolderSettings(project, settings);
    await hook(settings, { CC_LANGFUSE_OTLP_HEADERS: 'authorization=Bearer secret-of-the-user' });
    expect(JSON.stringify(theirs.requests)).not.toContain('secret-of-the-user');
    expect(workplace.log.map(({ msg }) => msg)).toContain(
      `CC_LANGFUSE_OTLP_URL: is ignored, because ${join(project, '.claude/settings.json')} names another destination, which you have not installed there (cc-langfuse install --scope local)`,
    );
  });
});
