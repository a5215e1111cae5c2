import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { version } from '../../src/shared/version.js';
import { LangfuseServer, PROJECT, PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { appendTurn, SESSION } from '../support/lines.js';
import { PROGRAM, run, Workplace } from '../support/program.js';

const ROOT = new URL('../../', import.meta.url).pathname;
const PLUGIN = join(ROOT, 'plugin');
const hooksIn = (path: string) => JSON.parse(readFileSync(join(PLUGIN, path), 'utf8')).hooks;
const NAMES = readdirSync(join(PLUGIN, 'commands')).map((name) => basename(name, '.md'));

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const transcript = () => workplace.transcriptOf(SESSION);
const append = (n: number) => workplace.addTurn(n);
const stop = () => workplace.stop();

/** What Claude Code passes to the plugin's hooks: the keys that the user has entered, and nothing in the environment. */
const options = () => ({
  HOME: workplace.home,
  PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
  // The program from the current build.
  CLAUDE_PLUGIN_ROOT: ROOT,
  CLAUDE_PLUGIN_OPTION_PUBLIC_KEY: PUBLIC_KEY,
  CLAUDE_PLUGIN_OPTION_SECRET_KEY: SECRET_KEY,
  CLAUDE_PLUGIN_OPTION_BASE_URL: workplace.server.url,
});

/** Types a command of the plugin. Returns what Claude Code shows; undefined if the model gets the prompt. */
async function type(command: string, args = '', env: NodeJS.ProcessEnv = options()): Promise<string | undefined> {
  const [{ hooks, matcher }] = hooksIn('hooks/commands.json').UserPromptExpansion;
  expect(new RegExp(`^(?:${matcher})$`).test(command)).toBe(/^cc-langfuse:/.test(command));
  const payload = {
    session_id: SESSION,
    transcript_path: transcript(),
    cwd: workplace.home,
    hook_event_name: 'UserPromptExpansion',
    command_name: command,
    command_args: args,
    command_source: 'plugin',
  };
  const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((resolve, reject) => {
    const shell = execFile('sh', ['-c', hooks[0].command], { env }, (error, out, err) =>
      error ? reject(error) : resolve({ stdout: out, stderr: err }),
    );
    shell.stdin?.end(JSON.stringify(payload));
  });
  expect(stderr).toBe('');
  if (stdout === '') return undefined;
  const { reason, ...answer } = JSON.parse(stdout);
  expect(answer).toEqual({ decision: 'block', suppressOriginalPrompt: true });
  return reason;
}

describe('a command of the plugin', () => {
  test("has the plugin's keys, works on its own session, and asks no model", async () => {
    append(1);
    await stop();
    appendTurn(workplace.transcriptOf('22222222-2222-4222-8222-222222222222'), 1, { cwd: workplace.home });
    expect(await type('cc-langfuse:open')).toBe(`${workplace.server.url}/project/${PROJECT.id}/sessions/${SESSION}`);
    expect(await type('cc-langfuse:open', ' --turn  1 ')).toMatch(/\/traces\/[0-9a-f]{32}$/);
    expect(await type('cc-langfuse:preview')).toContain('question 1');
    const doctor = await type('cc-langfuse:doctor');
    expect(doctor).toContain("public-key      CC_LANGFUSE_PUBLIC_KEY is pk-lf-em… (from the plugin's options)");
    expect(doctor).toContain("secret-key      CC_LANGFUSE_SECRET_KEY is sk-lf-… (from the plugin's options)");
    expect(doctor).not.toContain('from the shell');
    expect(await type('cc-langfuse:good')).toBe('turn 1 is rated good');
    expect(await type('cc-langfuse:mute')).toMatch(new RegExp(`^muted: question 1 \\(${SESSION}\\)`));
    expect(await type('cc-langfuse:good')).toBe('cc-langfuse: the session is muted; cc-langfuse unmute ends that');
    expect(await type('cc-langfuse:unmute')).toMatch(/^unmuted: /);
  });

  test.each(['$(touch run)', '`touch run`', '"; touch run; "', "'; touch run; '", '--turn 9', '-h', "isn't\n\\ good"])(
    'rates with the comment %j as it was typed, which no shell reads',
    async (why) => {
      append(1);
      await stop();
      expect(await type('cc-langfuse:bad', why)).toBe('turn 1 is rated bad');
      expect([...workplace.server.api.scores.values()]).toMatchObject([{ value: 0, comment: why }]);
      expect(existsSync(join(workplace.home, 'run'))).toBe(false);
    },
  );

  test('says why it fails', async () => {
    expect(await type('cc-langfuse:open')).toMatch(/^cc-langfuse: no session 11111111-/);
    append(1);
    expect(await type('cc-langfuse:open', '--x')).toBe("cc-langfuse: Unknown option '--x'; --help lists the options");
  });

  test('goes on to the model if it is unknown, or not of this plugin', async () => {
    for (const command of ['cc-langfuse:nothing', 'cc-langfuse:backfill', 'cc-langfuse:toString', 'other:good', 'good'])
      expect(await type(command)).toBeUndefined();
  });

  test('works with tracing off, and with a project that has a server of its own, of which the keys of the plugin know nothing', async () => {
    append(1);
    await stop();
    const other = await LangfuseServer.start();
    const env = { ...options(), TRACE_TO_LANGFUSE: 'false', LANGFUSE_BASE_URL: other.url };
    expect(await type('cc-langfuse:open', '', env)).toBe(
      `${workplace.server.url}/project/${PROJECT.id}/sessions/${SESSION}`,
    );
    expect(other.requests).toEqual([]);
    await other.stop();
  });
});

describe('the commands of the plugin', () => {
  test('are those that the program knows, and none is offered to the model', () => {
    expect(NAMES.toSorted()).toEqual(['bad', 'doctor', 'good', 'mute', 'open', 'preview', 'status', 'unmute']);
    for (const name of NAMES) {
      const text = readFileSync(join(PLUGIN, 'commands', `${name}.md`), 'utf8');
      expect(text, name).toMatch(/^---\ndescription: .+\n(?:argument-hint: .+\n)?disable-model-invocation: true\n/);
      expect(text, name).toContain('allowed-tools: Bash(cc-langfuse:*)');
    }
  });

  test('let no shell read what the user types', () => {
    for (const name of NAMES) {
      const text = readFileSync(join(PLUGIN, 'commands', `${name}.md`), 'utf8');
      for (const [command] of text.matchAll(/!`[^`]*`/g)) expect(command, name).not.toContain('$');
    }
  });

  // Claude Code ignores a whole file of hooks if it does not know one of its events (seen with 2.1.90).
  test('have a file of hooks of their own, so that older versions go on tracing', () => {
    const manifest = JSON.parse(readFileSync(join(PLUGIN, 'plugin.json'), 'utf8'));
    expect(manifest.hooks).toBe('./hooks/commands.json');
    expect(Object.keys(hooksIn('hooks/commands.json'))).toEqual(['UserPromptExpansion']);
    expect(Object.keys(hooksIn('hooks/hooks.json'))).not.toContain('UserPromptExpansion');
  });
});

describe('the program on the path of the Bash tool', () => {
  test('runs what the plugin contains', () => {
    const folder = join(workplace.home, 'plugin dir');
    mkdirSync(join(folder, 'bin'), { recursive: true });
    symlinkSync(dirname(PROGRAM), join(folder, 'dist'));
    const program = join(folder, 'bin', 'cc-langfuse');
    writeFileSync(program, readFileSync(join(PLUGIN, 'bin', 'cc-langfuse')), { mode: 0o755 });
    const env = { HOME: workplace.home, PATH: options().PATH };
    const { stdout, status } = spawnSync(program, ['--version'], { env, encoding: 'utf8' });
    expect({ stdout, status }).toEqual({
      stdout: `${version}\n`,
      status: 0,
    });
  });

  test("says that only hooks have the plugin's keys", async () => {
    append(1);
    await stop();
    const settings = { enabledPlugins: { 'cc-langfuse@somewhere': true } };
    writeFileSync(join(workplace.home, '.claude', 'settings.json'), JSON.stringify(settings));
    const advice =
      'Claude Code passes the keys that you entered for the plugin only to its hooks and commands, such as /cc-langfuse:open; set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY in the shell';
    const env = { HOME: workplace.home };
    const stderr = async (...args: string[]) => (await run(args, env, '', { cwd: workplace.home })).stderr;
    expect(await stderr('open')).toBe(`cc-langfuse: open needs the session's keys once: ${advice}\n`);
    expect(await stderr('backfill', '--yes')).toBe(`cc-langfuse: there is nowhere to send to: ${advice}\n`);
    const need = 'needs a Langfuse server and its keys';
    expect(await stderr('dashboard', '--yes')).toBe(`cc-langfuse: dashboard ${need}: ${advice}\n`);
    expect(await stderr('prices')).toContain(advice);
  });
});
