import { afterEach, expect, test } from 'vitest';
import { ownCommand } from '../../src/cli/own-command.js';
import { run as dashboard } from '../../src/commands/dashboard/command.lazy.js';
import { run as prices } from '../../src/commands/prices/command.lazy.js';
import { formatStatus } from '../../src/commands/status/report.js';

const [, PROGRAM = ''] = process.argv;

afterEach(() => {
  process.argv[1] = PROGRAM;
});

test.each([
  ['/home/me/.npm/_npx/0123abc/node_modules/.bin/cc-langfuse', 'npx cc-langfuse'],
  [
    'C:\\Users\\me\\AppData\\Local\\npm-cache\\_npx\\0123abc\\node_modules\\cc-langfuse\\dist\\cli.cjs',
    'npx cc-langfuse',
  ],
  ['/home/me/.cache/pnpm/dlx/abc/node_modules/cc-langfuse/dist/cli.cjs', 'pnpm dlx cc-langfuse'],
  ['/tmp/xfs-1/dlx-123/node_modules/cc-langfuse/dist/cli.cjs', 'yarn dlx cc-langfuse'],
  ['/tmp/bunx-0-cc-langfuse@latest/node_modules/cc-langfuse/dist/cli.cjs', 'bunx cc-langfuse'],
  ['/home/me/.claude/cc-langfuse/current/cli.cjs', '/home/me/.claude/cc-langfuse/current/cli.cjs'],
  ['/home/my self/.claude/cc-langfuse/current/cli.cjs', "'/home/my self/.claude/cc-langfuse/current/cli.cjs'"],
  ['/usr/local/bin/cc-langfuse', 'cc-langfuse'],
  ['/src/cc-langfuse/dist/cli.cjs', 'cc-langfuse'],
])('messages of %s name the command %s', (program, command) => {
  expect(ownCommand(program)).toBe(command);
});

test('what dashboard, prices and status say to run is what npx can start', async () => {
  process.argv[1] = '/home/me/.npm/_npx/0123abc/node_modules/.bin/cc-langfuse';
  for (const command of [dashboard, prices])
    await expect(command([], { CLAUDE_CONFIG_DIR: '/nowhere' })).rejects.toThrow('run npx cc-langfuse install');
  const pending = Array.from({ length: 6 }, () => ({ sessionId: 'a', attempts: 1, reason: 'down', since: 0 }));
  const tracing = { isOn: true, message: 'on', problems: ['keys: missing'] };
  const status = {
    version: '0',
    tracing,
    destination: undefined,
    sendsTo: 'nowhere',
    here: undefined,
    newest: undefined,
    unsent: undefined,
    spent: undefined,
    isSubscription: false,
    pending,
  };
  const text = formatStatus(status, '/home/me', 0).join('\n');
  expect(text).toContain('npx cc-langfuse doctor says how to fix it');
  expect(text).toContain('and 1 more: npx cc-langfuse sessions --limit all');
});
