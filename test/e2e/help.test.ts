import { describe, expect, test } from 'vitest';
import { version } from '../../src/shared/version.js';
import { run } from '../support/program.js';

const { stdout: HELP } = await run(['--help'], {});
const COMMANDS = [...HELP.matchAll(/^ {2}(\w+) {2,}\S/gm)].map(([, name = '']) => name);

describe('help', () => {
  test('names the commands', async () => {
    expect(COMMANDS).toEqual(['hook', 'install', 'uninstall', 'doctor', 'preview', 'backfill', 'sessions']);
    expect(await run(['-h'], {})).toMatchObject({ exitCode: 0, stdout: HELP, stderr: '' });
  });

  test('stands on stderr where no command was given', async () => {
    expect(await run([], {})).toMatchObject({ exitCode: 2, stdout: '', stderr: HELP });
  });

  test.each(COMMANDS)('of %s tells how it is used, in 80 columns', async (command) => {
    const { exitCode, stdout, stderr } = await run([command, '--help'], {});
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(new RegExp(`^usage: cc-langfuse ${command}\\b`));
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
    expect(await run([command, '-h'], {})).toMatchObject({ exitCode: 0, stdout });
  });

  test('of the program keeps to 80 columns, too', () => {
    expect(HELP.split('\n').filter((line) => line.length > 80)).toEqual([]);
  });
});

test('the version is the package’s', async () => {
  expect(await run(['--version'], {})).toMatchObject({ exitCode: 0, stdout: `${version}\n`, stderr: '' });
});

describe('an unknown command', () => {
  test.each([
    ['backfil', 'did you mean cc-langfuse backfill?'],
    ['Sessions', 'did you mean cc-langfuse sessions?'],
    ['foo', 'see cc-langfuse --help'],
    ['toString', 'see cc-langfuse --help'],
    ['--halp', 'see cc-langfuse --help'],
  ])('%s', async (command, hint) => {
    expect(await run([command], {})).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: `cc-langfuse: unknown command ${command}; ${hint}\n`,
    });
  });
});
