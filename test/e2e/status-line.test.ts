import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appendTurn, SESSION } from '../support/lines.js';
import { LAUNCHER, POLL, run, Workplace } from '../support/program.js';
import { sessionFile } from '../support/state-files.js';
import { runInTerminal } from '../support/terminal.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
  workplace.env = { ...workplace.env, CLAUDE_CODE_ENTRYPOINT: 'cli', CLAUDE_CODE_SESSION_ID: SESSION };
});

afterEach(() => workplace.close());

const transcript = () => workplace.transcriptOf(SESSION);
const append = (n: number) => appendTurn(transcript(), n, { cwd: workplace.home });
const turns = () => workplace.server.roots.map(({ name }) => name);

/** Starts the launcher as Claude Code does. Returns what it prints. */
function launch(event: string, payload: object, shell: readonly string[] = ['/bin/sh']): string {
  const [command = '', ...args] = [...shell, LAUNCHER, event, process.execPath];
  const env = { PATH: process.env.PATH, ...workplace.env } as NodeJS.ProcessEnv;
  const { stdout, stderr, status } = spawnSync(command, args, {
    env,
    input: JSON.stringify(payload),
    encoding: 'utf8',
  });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  return stdout;
}

const payload = (event: string) => ({
  session_id: SESSION,
  transcript_path: transcript(),
  hook_event_name: event,
  cwd: workplace.home,
});
const hook = (event = 'Stop') => launch(event, payload(event));
const statusLine = (shell?: readonly string[]) =>
  launch('statusline', { session_id: SESSION, model: { id: 'm' }, cost: { total_cost_usd: 0.4267 } }, shell);
const textFile = () => sessionFile(workplace.stateFolder, SESSION, 'status');

const hasProgram = (name: string) => spawnSync(name, ['--help']).error === undefined;
const SHELLS: [string, string[]][] = [
  ['sh', ['/bin/sh']],
  ['dash', ['dash']],
  ['bash', ['bash', '--posix']],
  ['busybox', ['busybox', 'sh']],
];

describe.each(SHELLS)('the launcher in %s', (name, shell) => {
  const inShell = test.skipIf(!hasProgram(shell[0] ?? name));

  inShell('prints for the status line what a worker has left', async () => {
    expect(statusLine(shell)).toBe('Langfuse: not traced\n');
    hook('SessionStart');
    await expect.poll(() => statusLine(shell), POLL).toBe('Langfuse: traced\n');
    append(1);
    hook();
    await expect.poll(() => statusLine(shell), POLL).toBe('Langfuse: traced, 1 turn sent\n');
  });

  inShell('shows no text that a worker does not write, and nothing without a session', () => {
    statusLine(shell);
    mkdirSync(dirname(textFile()), { recursive: true });
    writeFileSync(sessionFile(workplace.stateFolder, SESSION, 'open'), '');
    for (const text of ['\u001b[31mred', '$(id)', '`id`', 'a;b', '%s'])
      for (const end of ['', '\n']) {
        writeFileSync(textFile(), text + end);
        expect(statusLine(shell)).toBe('Langfuse: traced\n');
      }
    for (const session_id of ['', '../x', 'a/b', '$(id)', undefined])
      expect(launch('statusline', { session_id }, shell)).toBe('');
  });
});

describe("what a worker keeps for Claude Code's status line", () => {
  test('is nothing for those who do not have it there', async () => {
    await workplace.start(payload('Stop'));
    append(1);
    hook();
    await expect.poll(turns, POLL).toEqual(['Turn 1']);
    hook('SessionEnd');
    await expect.poll(() => existsSync(sessionFile(workplace.stateFolder, SESSION, 'open')), POLL).toBe(false);
    expect(existsSync(textFile())).toBe(false);
  });

  test('says that the session is muted, and that more is pending', async () => {
    statusLine();
    await workplace.start(payload('Stop'));
    append(1);
    hook();
    await expect.poll(statusLine, POLL).toBe('Langfuse: traced, 1 turn sent\n');
    workplace.server.misbehave = () => ({ status: 401 });
    append(2);
    hook();
    await expect.poll(statusLine, POLL).toBe('Langfuse: traced, 1 turn sent, more pending\n');
    await run(['mute'], workplace.env);
    expect(statusLine()).toBe('Langfuse: muted, 1 turn sent, more pending\n');
    await run(['unmute'], workplace.env);
    expect(statusLine()).toBe('Langfuse: traced, 1 turn sent, more pending\n');
  });
});

describe('cc-langfuse statusline', () => {
  test('says in a terminal what to add to the settings', async () => {
    const { exitCode, screen } = await runInTerminal(['statusline'], workplace);
    expect({ exitCode, screen: screen.replaceAll('\r', '') }).toEqual({
      exitCode: 0,
      screen: `Add this to ~/.claude/settings.json:
{
  "statusLine": {
    "type": "command",
    "command": "${LAUNCHER} statusline"
  }
}
`,
    });
  });

  test('prints what the launcher prints if something is piped into it', async () => {
    expect(await run(['statusline'], workplace.env, JSON.stringify({ session_id: SESSION }))).toMatchObject({
      exitCode: 0,
      stdout: 'Langfuse: not traced\n',
    });
    expect(await run(['statusline', 'x'], workplace.env)).toMatchObject({ exitCode: 2 });
  });
});
