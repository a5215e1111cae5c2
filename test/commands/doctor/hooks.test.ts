import { chmodSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkHookConflicts } from '../../../src/commands/doctor/checks/hooks.js';
import { parseClaudeSettings } from '../../../src/config/claude-settings.js';
import type { Scope } from '../../../src/config/settings-paths.js';
import { COMMAND, DoctorHome, hooksOf, SETTINGS, TIMEOUTS } from '../../support/doctor.js';
import { SECRET_KEY } from '../../support/langfuse-server.js';

const INSTALL = 'cc-langfuse install';
const FILE = '~/.claude/settings.json';
const PROJECT_FILE = '~/project/.claude/settings.json';
let home: DoctorHome;

beforeEach(async () => {
  home = await DoctorHome.open();
});

afterEach(() => home.close());

const hooksFound = async () => (await home.check()).of('hooks');

describe('the check of turns that are seen while they run', () => {
  const found = async () => (await home.check()).of('live');
  const LIVE = { env: { CC_LANGFUSE_LIVE: 'true' } };

  test('says nothing if neither the setting nor its hook is there', async () => {
    home.writeSettings(hooksOf());
    expect(await found()).toEqual([]);
  });

  test('is ok if both are there', async () => {
    home.writeSettings({ ...hooksOf(COMMAND, { ...TIMEOUTS, UserPromptSubmit: 5 }), ...LIVE });
    expect(await found()).toEqual([{ status: 'ok', message: 'turns are sent while they run' }]);
  });

  test('is a warning if the hook is missing', async () => {
    home.writeSettings({ ...hooksOf(), ...LIVE });
    expect(await found()).toEqual([
      {
        status: 'warning',
        message: 'CC_LANGFUSE_LIVE is true, but its hook is not registered: turns are sent when they end',
        fix: 'cc-langfuse install --live',
      },
    ]);
  });
});

describe('the check of limits', () => {
  const found = async () => (await home.check()).of('budget');
  const BUDGET = { CC_LANGFUSE_BUDGET: 'turn=5' };
  const LIVE = { ...BUDGET, CC_LANGFUSE_LIVE: 'true' };
  const AFTER_TOOLS = hooksOf(COMMAND, { ...TIMEOUTS, PostToolUse: 5 });

  test.each<[string, object, object, string | undefined]>([
    ['nothing without one', hooksOf(), {}, undefined],
    [
      'that the hook does nothing without one',
      AFTER_TOOLS,
      {},
      'a hook after each tool is registered, but CC_LANGFUSE_BUDGET is not set',
    ],
    [
      'when it is said',
      hooksOf(),
      BUDGET,
      'if a limit of CC_LANGFUSE_BUDGET is passed, the next event after the turn says so',
    ],
    [
      'how it is said earlier',
      hooksOf(),
      LIVE,
      'if a limit of CC_LANGFUSE_BUDGET is passed, the end of the turn says so; to say so while it runs: cc-langfuse install --live',
    ],
    [
      'that it is said at once',
      AFTER_TOOLS,
      LIVE,
      'if a limit of CC_LANGFUSE_BUDGET is passed, the turn says so while it runs',
    ],
  ])('says %s', async (_, hooks, env, message) => {
    home.writeSettings({ ...hooks, env });
    const status = message?.startsWith('a hook') ? 'none' : 'ok';
    expect(await found()).toEqual(message === undefined ? [] : [{ status, message }]);
  });
});

describe('the check of the registered hooks', () => {
  const REGISTERED = `registered in user settings (${FILE})`;

  test('is broken if no hooks are registered', async () => {
    expect(await hooksFound()).toEqual([
      { status: 'broken', message: 'not registered in any settings file', fix: INSTALL },
    ]);
  });

  test('is broken if Stop is not registered', async () => {
    const { Stop: _, ...withoutStop } = TIMEOUTS;
    home.writeSettings(hooksOf(COMMAND, withoutStop));
    expect(await hooksFound()).toEqual([
      {
        status: 'broken',
        message: `${REGISTERED}, but not for Stop: turns are not sent when they end`,
        fix: INSTALL,
      },
    ]);
  });

  test('is a warning if another event is not registered', async () => {
    home.writeSettings(hooksOf(COMMAND, { Stop: 15, StopFailure: 15 }));
    expect(await hooksFound()).toEqual([
      {
        status: 'warning',
        message: `${REGISTERED}, but not for SessionStart, SessionEnd: some turns are sent later or not at all`,
        fix: INSTALL,
      },
    ]);
  });

  test('is ok if only the plugin registers them', async () => {
    home.writeSettings({ enabledPlugins: { 'cc-langfuse@cc-langfuse': true } });
    expect(await hooksFound()).toEqual([
      { status: 'ok', message: `registered in plugin cc-langfuse@cc-langfuse (${FILE})` },
    ]);
  });
});

describe('a settings file that Claude Code ignores is broken', () => {
  const IGNORED = 'so Claude Code ignores it';

  test('if it is not JSON', async () => {
    home.writeSettings('{"hooks": {');
    expect((await home.check()).of('settings-file')).toEqual([
      {
        status: 'broken',
        message: `${FILE} is not JSON (line 1, column 12: close brace expected), ${IGNORED}`,
        fix: `fix ${FILE}`,
      },
    ]);
  });

  test('if it has a comment; its hooks do not count', async () => {
    home.writeSettings(`// mine\n${JSON.stringify(hooksOf())}`);
    const found = await home.check();
    expect(found.of('settings-file')).toEqual([
      {
        status: 'broken',
        message: `${FILE} has comments or trailing commas (line 1, column 1: invalid comment token), ${IGNORED}`,
        fix: `remove them from ${FILE}`,
      },
    ]);
    expect(found.of('hooks')).toMatchObject([{ status: 'broken' }]);
  });

  test('if a folder is in its place', async () => {
    mkdirSync(join(home.home, SETTINGS.user), { recursive: true });
    expect((await home.check()).of('settings-file')).toEqual([
      {
        status: 'broken',
        message: `${FILE} cannot be read (not a regular file), ${IGNORED}`,
        fix: `mv ${FILE} ${FILE}.old`,
      },
    ]);
  });
});

describe('disableAllHooks', () => {
  test('in local settings is broken', async () => {
    home.writeSettings(hooksOf());
    home.writeSettings({ disableAllHooks: true }, 'local');
    const local = '~/project/.claude/settings.local.json';
    expect((await home.check()).of('hooks-off')).toEqual([
      {
        status: 'broken',
        message: `"disableAllHooks" in ${local} stops Claude Code from starting the hooks`,
        fix: `remove "disableAllHooks" from ${local}`,
      },
    ]);
  });

  test('of the user may be overridden by a project', async () => {
    home.writeSettings({ ...hooksOf(), disableAllHooks: true });
    expect((await home.check()).of('hooks-off')).toMatchObject([{ status: 'broken' }]);
    home.writeSettings({ disableAllHooks: false }, 'project');
    expect((await home.check()).of('hooks-off')).toEqual([]);
  });
});

/** Managed settings are outside of the home, so the check is called directly. */
describe('in managed settings', () => {
  const hooksOff = (files: { [scope in Scope]?: object }) => {
    const read = Object.entries(files).map(([scope, settings]) => ({
      scope: scope as Scope,
      path: scope,
      content: parseClaudeSettings(JSON.stringify(settings)),
    }));
    return checkHookConflicts(read).filter(({ name }) => name === 'hooks-off');
  };

  test.each<[string, { [scope in Scope]?: object }, string[]]>([
    ['the user cannot turn off hooks', { user: { disableAllHooks: true }, managed: hooksOf() }, []],
    [
      'disableAllHooks turns off hooks of the user',
      { user: hooksOf(), managed: { disableAllHooks: true } },
      ['disableAllHooks in managed'],
    ],
    [
      'disableAllHooks turns off hooks there',
      { managed: { ...hooksOf(), disableAllHooks: true } },
      ['disableAllHooks in managed'],
    ],
    [
      'allowManagedHooksOnly turns off hooks of the user',
      { user: hooksOf(), managed: { allowManagedHooksOnly: true } },
      ['allowManagedHooksOnly in managed'],
    ],
    [
      'allowManagedHooksOnly does not turn off hooks there',
      { managed: { ...hooksOf(), allowManagedHooksOnly: true } },
      [],
    ],
    ['allowManagedHooksOnly is ignored elsewhere', { user: { ...hooksOf(), allowManagedHooksOnly: true } }, []],
  ])('%s', (_, files, settings) => {
    expect(hooksOff(files).map(({ details }) => `${details.setting} in ${details.path}`)).toEqual(settings);
  });

  test('allowManagedHooksOnly is for an administrator to fix', () => {
    expect(hooksOff({ managed: { allowManagedHooksOnly: true } })).toMatchObject([
      { fix: 'ask whoever manages this machine to add the hooks to managed, or to remove that setting' },
    ]);
  });
});

describe('the program that a hook starts', () => {
  test.each([
    ['a launcher', `exec "/gone/hook.sh" Stop "${process.execPath}" # cc-langfuse`, '/gone/hook.sh'],
    ['a launcher on the PATH', 'exec cc-langfuse-hook Stop', 'cc-langfuse-hook'],
    ['a program', `exec "${process.execPath}" "/gone/cli.cjs" hook # cc-langfuse`, '/gone/cli.cjs'],
    ['a node', 'exec "/gone/node" "/gone/cli.cjs" hook # cc-langfuse', '/gone/node'],
    ['a name', 'exec cc-langfuse hook', 'cc-langfuse'],
    ['a path in the home', 'node ~/tools/cc-langfuse/dist/cli.cjs hook', '~/tools/cc-langfuse/dist/cli.cjs'],
  ])('is broken if it is %s that does not exist', async (_, command, named) => {
    home.writeSettings(hooksOf(command));
    expect((await home.check()).of('hook-program')).toEqual([
      { status: 'broken', message: `${FILE} starts ${named}, which does not exist`, fix: INSTALL },
    ]);
  });

  test('has to be on the PATH if a project’s settings name it, which are for everyone', async () => {
    home.writeSettings(hooksOf('exec cc-langfuse-hook Stop'), 'project');
    expect((await home.check()).of('hook-program')).toEqual([
      {
        status: 'broken',
        message: `${PROJECT_FILE} starts cc-langfuse-hook, which does not exist`,
        fix: 'npm install --global ~/cc-langfuse',
      },
    ]);
  });

  test('is checked once in the home, since the settings of the user are those of the project there', async () => {
    home.writeSettings(hooksOf());
    expect((await home.check({}, home.home)).of('hook-program')).toHaveLength(1);
  });

  test('may be found by its name, be another copy, or have another node', async () => {
    const bin = join(home.home, 'bin');
    mkdirSync(bin);
    symlinkSync(home.launcher, join(bin, 'cc-langfuse-hook'));
    symlinkSync('/bin/sh', join(bin, 'node'));
    const copy = join(bin, 'hook.sh');
    writeFileSync(copy, 'cc-langfuse_sessions', { mode: 0o755 });
    const register = (command: string, event: string) => hooksOf(command, { [event]: 15 }).hooks;
    const hooks = {
      ...register(`exec cc-langfuse-hook SessionStart "${process.execPath}"`, 'SessionStart'),
      ...register(`exec "${home.launcher}" Stop "${join(bin, 'node')}"`, 'Stop'),
      ...register(`exec "${copy}" SessionEnd # cc-langfuse`, 'SessionEnd'),
    };
    home.writeSettings({ hooks }, 'project');
    expect((await home.check({ PATH: `${bin}:${process.env.PATH}` })).of('hook-program')).toEqual([
      { status: 'ok', message: `${PROJECT_FILE} starts this program` },
      { status: 'ok', message: `${PROJECT_FILE} starts this program, with ${realpathSync('/bin/sh')}` },
      {
        status: 'warning',
        message: `${PROJECT_FILE} starts another copy, ~/bin/hook.sh`,
        fix: 'cc-langfuse install --scope project',
      },
    ]);
  });

  test.each([
    ['by its name', () => 'exec cc-langfuse hook'],
    ['by its path', () => `exec "${process.execPath}" "${home.program}" hook`],
  ])('is a warning if Node is in front of it, as before there was a launcher: %s', async (_, command) => {
    const bin = join(home.home, 'bin');
    mkdirSync(bin);
    symlinkSync(home.program, join(bin, 'cc-langfuse'));
    home.writeSettings(hooksOf(command()));
    expect((await home.check({ PATH: `${bin}:${process.env.PATH}` })).of('hook-program')).toEqual([
      {
        status: 'warning',
        message: `${FILE} starts Node at every event, and Claude Code waits for it`,
        fix: `${INSTALL} (replaces it with the launcher)`,
      },
    ]);
  });

  test.each([
    ['on the PATH', 'bin/node', '/gone/node'],
    ['next to it, of nvm', '.nvm/versions/node/v22.1.0/bin/node', '.nvm/versions/node/v20.19.0/bin/node'],
    ['next to it, of fnm', 'fnm/v22.1.0/installation/bin/node', 'fnm/v20.19.0/installation/bin/node'],
  ])('may have a Node that is gone, which is a warning, if another one is %s', async (_, there, gone) => {
    const named = gone.startsWith('/') ? gone : join(home.home, gone);
    home.writeSettings(hooksOf(`exec "${home.launcher}" Stop "${named}"`));
    const node = join(home.home, there);
    mkdirSync(dirname(node), { recursive: true });
    symlinkSync(process.execPath, node);
    expect((await home.check({ PATH: join(home.home, 'bin') })).of('hook-program')).toEqual([
      {
        status: 'warning',
        message: `${FILE} names ${named.replace(home.home, '~')}, which is gone; the launcher starts ${realpathSync(node)} instead`,
        fix: INSTALL,
      },
    ]);
  });

  test('is broken if nobody may execute the launcher', async () => {
    chmodSync(home.launcher, 0o644);
    home.writeSettings(hooksOf(`exec "${home.launcher}" Stop "${process.execPath}"`));
    expect((await home.check()).of('hook-program')).toEqual([
      {
        status: 'broken',
        message: `${FILE} starts ~/cc-langfuse/dist/hook.sh, which cannot be executed`,
        fix: 'chmod +x ~/cc-langfuse/dist/hook.sh',
      },
    ]);
  });

  test.each(['npx --yes cc-langfuse@1 hook', 'node "$TOOLS/cc-langfuse/dist/cli.cjs" hook'])(
    'is unknown if the command is %s',
    async (command) => {
      home.writeSettings(hooksOf(command));
      expect((await home.check()).of('hook-program')).toEqual([
        { status: 'none', message: `${FILE} starts "${command}", which finds the program itself` },
      ]);
    },
  );

  test('is shown without a key that is in the command', async () => {
    home.writeSettings(hooksOf(`LANGFUSE_SECRET_KEY=${SECRET_KEY}9 npx cc-langfuse hook`));
    expect((await home.check({ LANGFUSE_SECRET_KEY: 'another' })).of('hook-program')).toMatchObject([
      { message: expect.stringContaining('"LANGFUSE_SECRET_KEY=[redacted] npx cc-langfuse hook"') },
    ]);
  });
});

test('a hook whose timeout is shorter than a run is a warning', async () => {
  home.setUp({ CC_LANGFUSE_TIMEOUT: '30000' });
  const { env } = JSON.parse(readFileSync(join(home.home, SETTINGS.user), 'utf8'));
  const timeouts = { SessionStart: 1, Stop: 15, StopFailure: undefined, SessionEnd: undefined };
  home.writeSettings({ ...hooksOf(COMMAND, timeouts), env });
  const warnings = [
    ['SessionStart', 'after 1 s, but a run may take 5 s', 10],
    ['Stop', 'after 15 s, but a run may take 30 s', 35],
    ['SessionEnd', 'after 1.5 s, but a run may take 30 s', 35],
  ].map(([event, times, seconds]) => ({
    status: 'warning',
    message: `Claude Code stops ${event} ${times}`,
    fix: `set "timeout": ${seconds} next to its command in ${FILE}`,
  }));
  expect((await home.check()).of('hook-timeout')).toEqual(warnings);
});

describe('hooks that are registered more than once', () => {
  test('with different commands are a warning', async () => {
    home.writeSettings(hooksOf());
    home.writeSettings(hooksOf('exec cc-langfuse hook'), 'project');
    expect((await home.check()).of('hooks-repeated')).toEqual([
      {
        status: 'warning',
        message: `registered in 2 ways (${FILE}, ${PROJECT_FILE}): each turn is still sent once, but 2 processes run`,
        fix: 'cc-langfuse uninstall --scope project',
      },
    ]);
  });

  test('by the plugin, too, are a warning', async () => {
    home.writeSettings({ ...hooksOf(), enabledPlugins: { 'cc-langfuse@cc-langfuse': true } });
    expect((await home.check()).of('hooks-repeated')).toMatchObject([
      { status: 'warning', fix: 'claude plugin disable cc-langfuse@cc-langfuse' },
    ]);
  });

  test('for different events are fine', async () => {
    const { Stop, ...others } = TIMEOUTS;
    home.writeSettings({
      hooks: { ...hooksOf(COMMAND, { Stop }).hooks, ...hooksOf('exec cc-langfuse hook', others).hooks },
    });
    const found = await home.check();
    expect(found.of('hooks')).toMatchObject([{ status: 'ok' }]);
    expect(found.of('hooks-repeated')).toEqual([]);
  });
});

test('another exporter is one warning, with every place where it is registered', async () => {
  home.writeSettings({ ...hooksOf('pnpm dlx github:elct9620/cc-langfuse hook', { Stop: 5, SessionEnd: 5 }) });
  expect((await home.check()).of('other-exporters')).toEqual([
    {
      status: 'warning',
      message: `the original cc-langfuse (${FILE}) sends the same turns, so each appears twice in Langfuse`,
      fix: 'remove its command from hooks.Stop; remove its command from hooks.SessionEnd',
    },
  ]);
});
