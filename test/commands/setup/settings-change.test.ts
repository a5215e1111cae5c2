import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addToSettings, undoInstallation } from '../../../src/commands/setup/settings-change.js';
import { findOwnHooks, HOOK_SECONDS } from '../../../src/config/claude-hooks.js';

const commandFor = (event: string) => ({
  command: `exec "/opt/cc-langfuse/dist/hook.sh" ${event} "/opt/node/bin/node"`,
});
const withArgs = () => ({ command: 'C:\\node.exe', args: ['C:\\cc-langfuse\\dist\\cli.cjs', 'hook'] });
const variables = { TRACE_TO_LANGFUSE: 'true', LANGFUSE_PUBLIC_KEY: 'pk', LANGFUSE_SECRET_KEY: 'sk' };
const installed = (text: string) => addToSettings(text, commandFor, variables);
const removed = (text: string) => undoInstallation(text, Object.keys(variables), undefined);
const group = (hook: object) => [{ hooks: [{ type: 'command', ...hook }] }];

const SETTINGS = `{
  "model": "opus",
  "permissions": { "allow": ["Bash(git *)", "Read"] },
  "hooks": {
    "Stop": [
      { "hooks": [{ "type": "command", "command": "say done" }] }
    ],
    "PreToolUse": []
  },
  "env": { "EDITOR": "vi" }
}
`;

describe('addToSettings', () => {
  test('adds its hooks next to those of others, and the variables', () => {
    const settings = JSON.parse(installed(SETTINGS));
    expect(settings).toEqual({
      model: 'opus',
      permissions: { allow: ['Bash(git *)', 'Read'] },
      hooks: {
        Stop: [...group({ command: 'say done' }), ...group({ ...commandFor('Stop'), timeout: 15 })],
        PreToolUse: [],
        SessionStart: group({ ...commandFor('SessionStart'), timeout: 5 }),
        StopFailure: group({ ...commandFor('StopFailure'), timeout: 15 }),
        SessionEnd: group({ ...commandFor('SessionEnd'), timeout: 15 }),
      },
      env: { EDITOR: 'vi', ...variables },
    });
  });

  test('keeps every byte of the file and inserts between them', () => {
    const own = (name: string, seconds: number, indent: string) =>
      JSON.stringify(group({ ...commandFor(name), timeout: seconds })[0], null, 2).replaceAll('\n', `\n${indent}`);
    const event = (name: string, seconds: number) =>
      `,\n    "${name}": [\n      ${own(name, seconds, '      ')}\n    ]`;
    expect(installed(SETTINGS)).toBe(
      SETTINGS.replace('done" }] }', `done" }] },\n      ${own('Stop', 15, '      ')}`)
        .replace(
          '"PreToolUse": []',
          (line) => line + event('SessionStart', 5) + event('StopFailure', 15) + event('SessionEnd', 15),
        )
        .replace('"vi"', '"vi", "TRACE_TO_LANGFUSE": "true", "LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk"'),
    );
  });

  test('changes nothing the second time', () => {
    for (const text of ['', '{}', SETTINGS, JSON.stringify({ hooks: { Stop: [] } })])
      expect(installed(installed(text))).toBe(installed(text));
  });

  test('replaces a command by one with arguments, and that one by a command', () => {
    const install = (text: string, form: typeof commandFor) => addToSettings(text, form, {});
    const once = install(install(SETTINGS, commandFor), withArgs);
    expect(JSON.parse(once).hooks.SessionEnd).toEqual(group({ ...withArgs(), timeout: 15 }));
    expect(install(once, withArgs)).toBe(once);
    expect(JSON.parse(install(once, commandFor)).hooks).toEqual(JSON.parse(install(SETTINGS, commandFor)).hooks);
    expect(undoInstallation(once, [], undefined)).toBe(SETTINGS);
  });

  test('replaces an older form of a hook in its place, and removes repetitions', () => {
    const old = {
      hooks: {
        Stop: [
          { matcher: '', hooks: [{ type: 'command', command: 'cc-langfuse hook', async: true, statusMessage: 'x' }] },
          ...group({ command: 'say done' }),
          ...group({ command: 'node', args: ['/old/cc-langfuse/dist/cli.cjs', 'hook'] }),
        ],
        SessionEnd: group({ command: 'npx cc-langfuse hook', timeout: 60 }),
      },
    };
    const { hooks } = JSON.parse(installed(JSON.stringify(old)));
    expect(hooks.Stop).toEqual([
      { matcher: '', hooks: [{ type: 'command', ...commandFor('Stop'), statusMessage: 'x', timeout: 15 }] },
      ...group({ command: 'say done' }),
    ]);
    // Someone allowed more time on purpose.
    expect(hooks.SessionEnd).toEqual(group({ ...commandFor('SessionEnd'), timeout: 60 }));
  });

  test.each([
    [{ hooks: [] }, 'hooks'],
    [{ hooks: { Stop: {} } }, 'hooks.Stop'],
    [{ env: 'x' }, 'env'],
  ])('rejects %j', (settings, path) => {
    expect(() => installed(JSON.stringify(settings))).toThrow(`${path} is not what Claude Code expects`);
  });
});

describe('undoInstallation of a file whose earlier text is unknown', () => {
  test.each(['{}', SETTINGS, '{"model":"opus"}', '{\r\n\t"env": {\r\n\t\t"A": "b"\r\n\t}\r\n}'])(
    'restores %j after an installation',
    (text) => expect(removed(installed(text))).toBe(text),
  );

  test('keeps the comments that were added since an installation', () => {
    const comment = (text: string) => text.replace('{\n', '{\n  // mine\n').replace('"vi"', '"vi" /* what else */');
    expect(removed(comment(installed(SETTINGS)))).toBe(comment(SETTINGS));
  });

  test('removes every hook of its own, and what becomes empty by that', () => {
    const text = JSON.stringify({
      hooks: {
        Stop: [{ hooks: [{ command: 'cc-langfuse hook' }, { command: 'say done' }, commandFor('Stop'), withArgs()] }],
        StopFailure: group({ command: 'exec cc-langfuse-hook StopFailure' }),
        PreCompact: group({ command: 'cc-langfuse hook' }),
        PreToolUse: [],
      },
      env: { LANGFUSE_SECRET_KEY: 'sk' },
    });
    expect(JSON.parse(removed(text))).toEqual({
      hooks: { Stop: [{ hooks: [{ command: 'say done' }] }], PreToolUse: [] },
    });
  });

  test('keeps a block that was empty before', () => {
    const text = '{\n  "env": {},\n  "hooks": {}\n}\n';
    expect(undoInstallation(text, [], undefined)).toBe(text);
  });
});

describe('undoInstallation', () => {
  const undone = (text: string, before: string) => undoInstallation(text, Object.keys(variables), before);
  const LAYOUTS = [
    '{}',
    '{ }\n',
    '{\n}',
    '{\r\n}\r\n',
    '{\n  "hooks": {},\n  "env": {}\n}\n',
    '{"hooks":{ "Stop" : [ ] },"env":{ }}',
    '{\n\t"env": {\n\t},\n\t"hooks": {\n\t\t"Stop": [\n\t\t]\n\t}\n}',
    '{\r\n    "model": "opus",\r\n    "hooks": {\r\n\r\n    }\r\n}',
    '{"hooks": {"SessionEnd": [{"hooks": []}]}, "model": "opus"}\n\n',
    SETTINGS,
  ];

  test.each(LAYOUTS)('restores %j byte for byte', (before) => {
    expect(undone(installed(before), before)).toBe(before);
  });

  test.each(LAYOUTS)('restores %j after it was installed twice, with other commands and keys', (before) => {
    const first = addToSettings(before, withArgs, { ...variables, LANGFUSE_PUBLIC_KEY: 'pk-before' });
    expect(undone(installed(first), before)).toBe(before);
  });

  test.each(LAYOUTS)('keeps what was added to %j since, and the blocks that were empty', (before) => {
    const changed = addToSettings(installed(before), commandFor, { EDITOR: 'vi' });
    const settings = JSON.parse(before);
    expect(JSON.parse(undone(changed, before))).toEqual({ ...settings, env: { ...settings.env, EDITOR: 'vi' } });
  });

  test('keeps a comment that was added since', () => {
    const before = '{\n  "env": {}\n}\n';
    expect(undone(installed(before).replace('{\n', '{\n  // mine\n'), before)).toBe('{\n  // mine\n  "env": {}\n}\n');
  });

  test('brings back no hooks and no keys of an earlier installation', () => {
    const before = JSON.stringify({
      hooks: { Stop: group({ command: 'cc-langfuse hook' }) },
      env: { LANGFUSE_SECRET_KEY: 'sk-before', EDITOR: 'vi' },
    });
    expect(undone(installed(before), before)).toBe('{"env":{"EDITOR":"vi"}}');
  });
});

test('whatever hooks there are, each own hook is added once, the others are unchanged, and removing restores the file', () => {
  const hook = fc.record({ type: fc.constant('command'), command: fc.string() }, { noNullPrototype: true });
  const groups = fc.array(
    fc.record({ hooks: fc.array(hook, { minLength: 1, maxLength: 3 }) }, { noNullPrototype: true }),
    { minLength: 1, maxLength: 3 },
  );
  const events = fc.constantFrom('Stop', 'SessionEnd', 'PreToolUse');
  const settings = fc.record({ hooks: fc.dictionary(events, groups, { minKeys: 1, noNullPrototype: true }) });
  fc.assert(
    fc.property(settings, fc.constantFrom(undefined, 2, '\t'), (before, indent) => {
      const text = JSON.stringify(before, null, indent);
      const after = JSON.parse(installed(text));
      expect(
        findOwnHooks(after)
          .map(({ event }) => event)
          .toSorted(),
      ).toEqual(Object.keys(HOOK_SECONDS).toSorted());
      expect(removed(installed(text))).toBe(text);
    }),
  );
});
