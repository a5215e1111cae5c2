import { mkdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { COMMAND, hooksOf, Patient, SETTINGS, TIMEOUTS } from '../../support/doctor.js';
import { SECRET_KEY } from '../../support/langfuse-server.js';
import { PROGRAM, run } from '../../support/program.js';

const INSTALL = 'cc-langfuse install';
let patient: Patient;

beforeEach(async () => {
  patient = await Patient.open();
});

afterEach(() => patient.close());

describe('hooks', () => {
  const REGISTERED = { status: 'ok', message: 'registered in user settings (~/.claude/settings.json)' };

  test('that are nowhere', async () => {
    expect(await patient.told('hooks')).toEqual([
      { status: 'broken', message: 'not registered in any settings', fix: INSTALL },
    ]);
  });

  test('that miss Stop, or another', async () => {
    const { Stop: _, ...withoutStop } = TIMEOUTS;
    patient.writeSettings(hooksOf(COMMAND, withoutStop));
    expect(await patient.told('hooks')).toEqual([
      {
        status: 'broken',
        message: `${REGISTERED.message}, but not for Stop: no turn is sent when it ends`,
        fix: INSTALL,
      },
    ]);
    patient.writeSettings(hooksOf(COMMAND, { Stop: 15, StopFailure: 15 }));
    expect(await patient.told('hooks')).toEqual([
      {
        status: 'warning',
        message: `${REGISTERED.message}, but not for SessionStart, SessionEnd: what they would send comes later, or not`,
        fix: INSTALL,
      },
    ]);
  });

  test('in a file that Claude Code refuses', async () => {
    const refused = 'Claude Code then takes nothing from it';
    const file = '~/.claude/settings.json';
    patient.writeSettings('{"hooks": {');
    expect(await patient.told('settings-file')).toEqual([
      {
        status: 'broken',
        message: `${file} is no JSON (line 1, column 12: close brace expected); ${refused}`,
        fix: `mend ${file}`,
      },
    ]);
    patient.writeSettings(`// mine\n${JSON.stringify(hooksOf())}`);
    expect(await patient.told('settings-file')).toEqual([
      {
        status: 'broken',
        message: `${file} has comments or trailing commas; ${refused}`,
        fix: `take them out of ${file}`,
      },
    ]);
    expect(await patient.told('hooks')).toMatchObject([{ status: 'broken' }]);
    rmSync(join(patient.workplace.home, '.claude/settings.json'));
    mkdirSync(join(patient.workplace.home, '.claude/settings.json'));
    expect(await patient.told('settings-file')).toEqual([
      {
        status: 'broken',
        message: `${file} cannot be read (not a regular file); ${refused}`,
        fix: `mv ${file} ${file}.old`,
      },
    ]);
  });

  test('that are switched off', async () => {
    patient.writeSettings(hooksOf());
    patient.writeSettings({ disableAllHooks: true }, 'local');
    expect(await patient.told('hooks-off')).toEqual([
      {
        status: 'broken',
        message: '"disableAllHooks" in ~/project/.claude/settings.local.json: Claude Code does not start our hooks',
        fix: 'take "disableAllHooks" out of ~/project/.claude/settings.local.json',
      },
    ]);
  });

  test('that a project has switched on again', async () => {
    patient.writeSettings({ ...hooksOf(), disableAllHooks: true });
    expect(await patient.told('hooks-off')).toMatchObject([{ status: 'broken' }]);
    patient.writeSettings({ disableAllHooks: false }, 'project');
    expect(await patient.told('hooks-off')).toEqual([]);
  });

  test.each([
    ['a program that is gone', `exec "${process.execPath}" "/gone/cli.cjs" hook # cc-langfuse`, '/gone/cli.cjs'],
    ['a node that is gone', `exec "/gone/node" "${PROGRAM}" hook # cc-langfuse`, '/gone/node'],
    ['a name that is not on the path', 'exec cc-langfuse hook', 'cc-langfuse'],
    ['a place of the home that is not there', 'node ~/cc-langfuse/dist/cli.cjs hook', '~/cc-langfuse/dist/cli.cjs'],
  ])('that start %s', async (_, command, named) => {
    patient.writeSettings(hooksOf(command));
    expect(await patient.told('hook-program')).toEqual([
      { status: 'broken', message: `${named}, which ~/.claude/settings.json starts, is not there`, fix: INSTALL },
    ]);
  });

  test('of all who work on a project, who have to have the program on the path', async () => {
    patient.writeSettings(hooksOf('exec cc-langfuse hook'), 'project');
    expect(await patient.told('hook-program')).toEqual([
      {
        status: 'broken',
        message: 'cc-langfuse, which ~/project/.claude/settings.json starts, is not there',
        fix: `npm install --global ${realpathSync(join(dirname(PROGRAM), '..'))}`,
      },
    ]);
  });

  test("in the home itself, whose settings are the project's, too", async () => {
    patient.writeSettings(hooksOf());
    const { stdout } = await run(['doctor', '--json'], patient.workplace.env, '', { cwd: patient.workplace.home });
    const { checks } = JSON.parse(stdout);
    expect(checks.filter(({ name }: { name: string }) => name === 'hook-program')).toHaveLength(1);
  });

  test('that start this program by its name, by a link, or another program', async () => {
    const bin = join(patient.workplace.home, 'bin');
    mkdirSync(bin);
    symlinkSync(PROGRAM, join(bin, 'cc-langfuse'));
    patient.writeSettings(hooksOf('exec cc-langfuse hook'), 'project');
    const well = { status: 'ok', message: '~/project/.claude/settings.json starts this program' };
    expect(await patient.told('hook-program', { PATH: `${bin}:${process.env.PATH}` })).toEqual([well]);
    symlinkSync('/bin/sh', join(bin, 'node'));
    patient.writeSettings(hooksOf(`exec "${join(bin, 'node')}" "${PROGRAM}" hook # cc-langfuse`), 'project');
    expect(await patient.told('hook-program')).toEqual([
      { status: 'ok', message: `${well.message}, with ${realpathSync('/bin/sh')}` },
    ]);
    const other = join(bin, 'cli.cjs');
    writeFileSync(other, '');
    patient.writeSettings(hooksOf(`exec node "${other}" hook # cc-langfuse`), 'project');
    expect(await patient.told('hook-program')).toEqual([
      {
        status: 'warning',
        message: '~/project/.claude/settings.json starts another one, ~/bin/cli.cjs',
        fix: 'cc-langfuse install --scope project',
      },
    ]);
  });

  test('of which only the shell, or npx, knows what they start', async () => {
    for (const command of ['npx --yes cc-langfuse@1 hook', 'node "$TOOLS/cc-langfuse/dist/cli.cjs" hook']) {
      patient.writeSettings(hooksOf(command));
      expect(await patient.told('hook-program')).toMatchObject([
        { status: 'none', message: expect.stringContaining(command) },
      ]);
    }
  });

  test('that are given too little time', async () => {
    patient.setUp({ CC_LANGFUSE_TIMEOUT: '30000' });
    const { env } = JSON.parse(readFileSync(join(patient.workplace.home, SETTINGS.user), 'utf8'));
    patient.writeSettings({
      ...hooksOf(COMMAND, { SessionStart: 1, Stop: 15, StopFailure: undefined, SessionEnd: undefined }),
      env,
    });
    const warnings = [
      ['SessionStart', '1 s, a run may take 5 s', 10],
      ['Stop', '15 s, a run may take 30 s', 35],
      ['SessionEnd', '1.5 s, a run may take 30 s', 35],
    ].map(([event, times, seconds]) => ({
      status: 'warning',
      message: `Claude Code ends ${event} after ${times}`,
      fix: `write "timeout": ${seconds} beside its command in ~/.claude/settings.json`,
    }));
    expect(await patient.told('hook-timeout')).toEqual(warnings);
  });

  test('that are registered in two ways', async () => {
    patient.writeSettings(hooksOf());
    patient.writeSettings(hooksOf('exec cc-langfuse hook'), 'project');
    expect(await patient.told('hooks-repeated')).toEqual([
      {
        status: 'warning',
        message:
          'registered in 2 ways (~/.claude/settings.json, ~/project/.claude/settings.json): each turn is sent once all the same, by one of 2 processes',
        fix: 'cc-langfuse uninstall --scope project',
      },
    ]);
    patient.writeSettings({ ...hooksOf(), enabledPlugins: { 'cc-langfuse@cc-langfuse': true } });
    patient.writeSettings({}, 'project');
    expect(await patient.told('hooks-repeated')).toMatchObject([
      { fix: 'claude plugin disable cc-langfuse@cc-langfuse' },
    ]);
  });

  test('that are written in two ways, each for other events', async () => {
    const { Stop, ...others } = TIMEOUTS;
    const hooks = { ...hooksOf(COMMAND, { Stop }).hooks, ...hooksOf('exec cc-langfuse hook', others).hooks };
    patient.writeSettings({ hooks });
    expect(await patient.told('hooks-repeated')).toEqual([]);
  });

  test('whose command holds a key', async () => {
    patient.writeSettings(hooksOf(`LANGFUSE_SECRET_KEY=${SECRET_KEY}9 npx cc-langfuse hook`));
    expect(await patient.told('hook-program', { LANGFUSE_SECRET_KEY: 'another' })).toMatchObject([
      { message: expect.stringContaining('"LANGFUSE_SECRET_KEY=[redacted] npx cc-langfuse hook"') },
    ]);
  });

  test('of a plugin alone', async () => {
    patient.writeSettings({ enabledPlugins: { 'cc-langfuse@cc-langfuse': true } });
    expect(await patient.told('hooks')).toEqual([
      { status: 'ok', message: 'registered in plugin cc-langfuse@cc-langfuse (~/.claude/settings.json)' },
    ]);
  });

  test('of others, which send the same turns', async () => {
    patient.writeSettings({ ...hooksOf('pnpm dlx github:elct9620/cc-langfuse hook', { Stop: 5, SessionEnd: 5 }) });
    expect(await patient.told('other-exporters')).toEqual([
      {
        status: 'warning',
        message: 'the original cc-langfuse (~/.claude/settings.json) sends the same turns: each is in Langfuse twice',
        fix: 'remove its command from hooks.Stop; remove its command from hooks.SessionEnd',
      },
    ]);
  });
});
