import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { appendTurn, SESSION } from '../support/lines.js';
import { LAUNCHER, POLL, run, Workplace } from '../support/program.js';
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
function launch(event: string, payload: object, shell: readonly string[] = ['/bin/sh'], more: object = {}): string {
  const [command = '', ...args] = [...shell, LAUNCHER, event, process.execPath];
  const env = { PATH: process.env.PATH, ...workplace.env, ...more } as NodeJS.ProcessEnv;
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
const hook = (event = 'Stop', more: object = {}, shell?: readonly string[]) =>
  launch(event, payload(event), shell, more);
const statusLine = (shell?: readonly string[], cost: unknown = 0.4267) =>
  launch('statusline', { session_id: SESSION, model: { id: 'm' }, cost: { total_cost_usd: cost } }, shell);
const textFile = () => join(workplace.stateFolder, 'cc-langfuse_status', SESSION);

const hasProgram = (name: string) => spawnSync(name, ['--help']).error === undefined;
const SHELLS: [string, string[]][] = [
  ['sh', ['/bin/sh']],
  ['dash', ['dash']],
  ['bash', ['bash', '--posix']],
  ['busybox', ['busybox', 'sh']],
];

describe.each(SHELLS)('the launcher in %s', (name, shell) => {
  const inShell = test.skipIf(!hasProgram(shell[0] ?? name));

  inShell('prints for the status line what a worker has left, and the cost that Claude Code passes', async () => {
    expect(statusLine(shell)).toBe('Langfuse: not traced, $0.42\n');
    hook('SessionStart');
    await expect.poll(() => statusLine(shell), POLL).toBe('Langfuse: traced, $0.42\n');
    append(1);
    hook();
    await expect.poll(() => statusLine(shell), POLL).toBe('Langfuse: traced, 1 turn sent, $0.42\n');
    for (const [cost, shown] of [
      [0, ', $0.00'],
      [12, ', $12.00'],
      [1.5, ', $1.50'],
      [1234.056, ', $1234.05'],
      [1.5e-7, ', $0.00'],
      [null, ''],
      ['$(id)', ''],
    ])
      expect(statusLine(shell, cost)).toBe(`Langfuse: traced, 1 turn sent${shown}\n`);
  });

  inShell('shows no text that a worker does not write, and nothing without a session', () => {
    statusLine(shell);
    mkdirSync(join(workplace.stateFolder, 'cc-langfuse_open'));
    writeFileSync(join(workplace.stateFolder, 'cc-langfuse_open', SESSION), '');
    for (const text of ['\u001b[31mred', '$(id)', '`id`', 'a;b', '%s'])
      for (const end of ['', '\n']) {
        writeFileSync(textFile(), text + end);
        expect(statusLine(shell)).toBe('Langfuse: traced, $0.42\n');
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
    await expect.poll(() => existsSync(join(workplace.stateFolder, 'cc-langfuse_open', SESSION)), POLL).toBe(false);
    expect(existsSync(dirname(textFile()))).toBe(false);
  });

  test('says that the session is muted, and that more is pending', async () => {
    statusLine();
    await workplace.start(payload('Stop'));
    append(1);
    hook();
    await expect.poll(statusLine, POLL).toBe('Langfuse: traced, 1 turn sent, $0.42\n');
    workplace.server.misbehave = () => ({ status: 401 });
    append(2);
    hook();
    await expect.poll(statusLine, POLL).toBe('Langfuse: traced, 1 turn sent, more pending, $0.42\n');
    await run(['mute'], workplace.env);
    expect(statusLine()).toBe('Langfuse: muted, 1 turn sent, more pending, $0.42\n');
    await run(['unmute'], workplace.env);
    expect(statusLine()).toBe('Langfuse: traced, 1 turn sent, more pending, $0.42\n');
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
