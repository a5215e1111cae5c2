import { expect, test } from 'vitest';
import { version } from '../../src/shared/version.js';
import { run } from '../support/program.js';

const { stdout: HELP } = await run(['--help'], {});
const GROUPS = {
  'Every day': ['status', 'sessions', 'cost', 'preview', 'open', 'verify', 'rate', 'mute', 'unmute', 'backfill'],
  'Set up': ['install', 'upgrade', 'uninstall', 'doctor', 'log', 'statusline', 'completion', 'hook'],
  Langfuse: ['prices', 'dashboard'],
};
const COMMANDS = Object.values(GROUPS).flat();

test('--help lists the commands in 80 columns, by what they are for', async () => {
  const sections = HELP.split('\n\n').slice(1, -1);
  const groups = sections.map((section) => {
    const [title = '', ...lines] = section.split('\n');
    return [title, lines.map((line) => /^ {2}(\w+) {2,}\S/.exec(line)?.[1])];
  });
  expect(Object.fromEntries(groups)).toEqual(GROUPS);
  expect(HELP.split('\n').filter((line) => line.length > 80)).toEqual([]);
  expect(await run(['-h'], {})).toMatchObject({ exitCode: 0, stdout: HELP, stderr: '' });
});

test('without a command the help goes to stderr', async () => {
  expect(await run([], {})).toMatchObject({ exitCode: 2, stdout: '', stderr: HELP });
});

test.each(COMMANDS)('%s --help shows the usage of the command in 80 columns', async (command) => {
  const { exitCode, stdout, stderr } = await run([command, '--help'], {});
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).toMatch(new RegExp(`^usage: cc-langfuse ${command}\\b`));
  expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
  expect(await run([command, '-h'], {})).toMatchObject({ exitCode: 0, stdout });
  expect(await run(['help', command], {})).toMatchObject({ exitCode: 0, stdout, stderr: '' });
});

test('help shows the help, and refuses to explain what is not a command', async () => {
  expect(await run(['help'], {})).toMatchObject({ exitCode: 0, stdout: HELP, stderr: '' });
  expect(await run(['help', '--help'], {})).toMatchObject({ exitCode: 0, stdout: HELP, stderr: '' });
  expect(await run(['help', 'worker'], {})).toMatchObject({ exitCode: 2, stdout: '' });
});

test.each(['--version', '-v', '-V'])('%s prints the version of the package', async (option) => {
  expect(await run([option], {})).toMatchObject({ exitCode: 0, stdout: `${version}\n`, stderr: '' });
});

test.each([
  ['backfil', 'did you mean cc-langfuse backfill?'],
  ['helo', 'did you mean cc-langfuse help?'],
  ['Sessions', 'did you mean cc-langfuse sessions?'],
  ['foo', 'see cc-langfuse --help'],
  ['toString', 'see cc-langfuse --help'],
  ['--halp', 'did you mean cc-langfuse --help?'],
  ['--verison', 'did you mean cc-langfuse --version?'],
  ['-x', 'see cc-langfuse --help'],
  ['update', 'cc-langfuse upgrade installs the newest version'],
  ['list', 'cc-langfuse sessions lists sessions'],
  ['login', 'cc-langfuse install asks for your keys'],
  ['enable', 'cc-langfuse install turns the export on, cc-langfuse unmute sends a muted session again'],
  ['disable', 'cc-langfuse mute sends nothing more of a session, cc-langfuse uninstall turns the export off'],
  ['search', 'cc-langfuse sessions --search <text> finds text in sessions'],
  ['export', 'cc-langfuse backfill exports sessions that are on disk'],
])('the unknown command %s is refused with the hint: %s', async (command, hint) => {
  expect(await run([command], {})).toMatchObject({
    exitCode: 2,
    stdout: '',
    stderr: `cc-langfuse: unknown command ${command}; ${hint}\n`,
  });
});
