import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { POLL, run } from '../support/program.js';
import { removeFolder } from '../support/remove-folder.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-'));
});

// A shell that ends writes its history.
afterEach(() => removeFolder(folder));

const hasProgram = (name: string) => spawnSync(name, ['--help']).error === undefined;
const hasTerminal = process.platform === 'linux';

async function writeScript(shell: string): Promise<string> {
  const { exitCode, stdout, stderr } = await run(['completion', shell], {});
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  const path = join(folder, `script.${shell}`);
  writeFileSync(path, stdout);
  return path;
}

/** What has to be typed to start a shell in which the program prints its arguments. */
const SHELLS = {
  bash: { start: 'bash --norc --noprofile -i', prepare: 'cc-langfuse() { printf "[%s]" "$@"; echo .; }' },
  zsh: {
    start: 'zsh -f -i',
    prepare: 'autoload -U compinit; compinit -D -u; cc-langfuse() { printf "[%s]" "$@"; echo .; }',
  },
  fish: { start: 'fish --no-config -i', prepare: 'function cc-langfuse; printf "[%s]" $argv; echo .; end' },
} as const;

/** Types a line into the shell, with Tab at its end, and returns what the program gets then. */
async function complete(shell: keyof typeof SHELLS, typed: string): Promise<string | undefined> {
  const { start, prepare } = SHELLS[shell];
  const script = await writeScript(shell);
  const terminal = spawn('script', ['-qefc', start, '/dev/null'], {
    env: { PATH: process.env.PATH, HOME: folder, TERM: 'xterm' },
    cwd: folder,
  });
  let screen = '';
  terminal.stdout.on('data', (chunk: Buffer) => {
    screen += chunk;
  });
  // The words of the screen are put together, so that they differ from what is typed.
  terminal.stdin.write(`${prepare}; source ${script}; echo re''ady\r`);
  await expect.poll(() => screen, POLL).toMatch(/\bready\b/);
  screen = '';
  terminal.stdin.write(`${typed}\t`);
  // Tab takes effect before the next key.
  terminal.stdin.write('\r');
  const printed = () => /((?:\[[\w.-]+\])+)\./.exec(screen)?.[1];
  await expect.poll(printed, POLL).toBeDefined();
  const got = printed();
  terminal.stdin.end('\u0003\u0004exit\r');
  terminal.kill();
  return got;
}

for (const shell of ['bash', 'zsh', 'fish'] as const) {
  describe.skipIf(!hasTerminal || !hasProgram(shell))(
    `in ${shell}, Tab (needs ${shell})`,
    { concurrent: false },
    () => {
      test.each([
        ['cc-langfuse statusl', '[statusline]'],
        ['cc-langfuse sessions --sea', '[sessions][--search]'],
        ['cc-langfuse status --exi', '[status][--exit-code]'],
        ['cc-langfuse rate goo', '[rate][good]'],
        ['cc-langfuse help dash', '[help][dashboard]'],
        ['cc-langfuse completion zs', '[completion][zsh]'],
        ['cc-langfuse preview script.', `[preview][script.${shell}]`],
        ['cc-langfuse preview --html script.', `[preview][--html][script.${shell}]`],
      ])('completes %s to %s', async (typed, got) => {
        expect(await complete(shell, typed)).toBe(got);
      });
    },
  );
}

test.skipIf(!hasProgram('shellcheck'))('shellcheck finds nothing in the script for bash', async () => {
  const { status, stdout } = spawnSync('shellcheck', ['-s', 'bash', await writeScript('bash')], { encoding: 'utf8' });
  expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
});

test.each(['bash', 'zsh', 'fish'])(
  'the script for %s has every command and option that --help lists',
  async (shell) => {
    const { stdout: script } = await run(['completion', shell], {});
    const { stdout: help } = await run(['--help'], {});
    const commands = Array.from(help.matchAll(/^ {2}(\w+) {2,}/gm), ([, name = '']) => name);
    expect(commands.length).toBeGreaterThan(15);
    for (const command of commands) {
      const { stdout } = await run([command, '--help'], {});
      const options = Array.from(stdout.matchAll(/^ {2}(?:-\w, )?--([\w-]+)/gm), ([, name = '']) => name);
      const lines = script.split('\n');
      const start = lines.findIndex((line) => line.trim().startsWith(`${command})`));
      const own =
        shell === 'fish'
          ? lines.filter((line) => line.includes(`'__cc_langfuse_in ${command}'`))
          : lines.slice(start, start + (shell === 'bash' ? 1 : 3));
      const missing = options.filter((name) => !new RegExp(`(?:--|-l )${name}\\b`).test(own.join('\n')));
      expect([command, missing]).toEqual([command, []]);
    }
  },
);

test.each([
  [[], 'completion: expected bash, zsh, fish; see completion --help'],
  [['tcsh'], 'completion: expected bash, zsh, fish; see completion --help'],
  [['bash', 'zsh'], 'completion: expected bash, zsh, fish; see completion --help'],
  [['--frob'], "Unknown option '--frob'; --help lists the options"],
])('completion %j is refused in one line with exit code 2', async (args, message) => {
  expect(await run(['completion', ...args], {})).toMatchObject({
    exitCode: 2,
    stdout: '',
    stderr: `cc-langfuse: ${message}\n`,
  });
});
