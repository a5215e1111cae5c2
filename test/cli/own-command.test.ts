import { expect, test } from 'vitest';
import { ownCommand } from '../../src/cli/own-command.js';

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
