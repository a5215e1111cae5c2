import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { UsageError } from '../../../src/cli/command-line.js';
import { run as install } from '../../../src/commands/setup/install.lazy.js';
import { run as uninstall } from '../../../src/commands/setup/uninstall.lazy.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-'));
});

afterEach(() => {
  expect(readdirSync(folder)).toEqual([]);
  rmSync(folder, { recursive: true });
});

test.each<[string, string[], string]>([
  [
    'without keys',
    ['--yes'],
    '--yes needs keys: use --public-key and --secret-key-stdin, or set them in the environment',
  ],
  [
    'a key with a space',
    ['--yes', '--public-key', 'pk lf'],
    '--public-key: expected a key as Langfuse shows it, without spaces or quotes',
  ],
  [
    'a key with quotes',
    ['--yes', '--public-key', '"pk-lf-1"'],
    '--public-key: expected a key as Langfuse shows it, without spaces or quotes',
  ],
  [
    'a secret key as the public one',
    ['--yes', '--public-key', 'sk-lf-1'],
    '--public-key: this is a secret key; a public key begins with pk-',
  ],
  [
    'a server that is not a URL',
    ['--yes', '--base-url', 'cloud.langfuse.com'],
    '--base-url: expected an http or https URL, such as https://cloud.langfuse.com',
  ],
  ['an unknown scope', ['--scope', 'all'], '--scope all: expected user, project, local, managed'],
  ['to print what is not managed', ['--print', '--yes'], '--print needs --scope managed'],
  [
    'a command for keys that are not managed',
    ['--yes', '--secret-key-command', 'pass x'],
    '--secret-key-command needs --scope managed',
  ],
  ['a user without a name', ['--yes', '--user', ' '], '--user: expected a name of at most 200 characters, git or none'],
  [
    'a name that is too long',
    ['--yes', '--user', 'x'.repeat(201)],
    '--user: expected a name of at most 200 characters, git or none',
  ],
  ...['project', 'managed'].map((scope): [string, string[], string] => [
    `one person's name for everyone (${scope})`,
    ['--yes', '--scope', scope, '--user', 'dev-7'],
    "--user: that file is for everyone, so it takes only git (each one's address) or none",
  ]),
  ['an empty command', ['--scope', 'managed', '--secret-key-command', ' '], '--secret-key-command: expected a command'],
  [
    'one key for everyone',
    ['--scope', 'managed', '--public-key', 'pk-lf-1'],
    '--scope managed takes both keys or none: --public-key, and --secret-key-command or --secret-key-stdin',
  ],
  [
    'keys for a file that is committed',
    ['--scope', 'project', '--public-key', 'pk-lf-1'],
    '--scope project: that file is committed and gets no keys; use --scope user or local for them',
  ],
  ['an operand', ['now'], 'now: install takes no operands; see install --help'],
])('install rejects %s', async (_, args, message) => {
  await expect(install(args, { CLAUDE_CONFIG_DIR: folder })).rejects.toThrow(new UsageError(message));
});

test('uninstall rejects an unknown option', async () => {
  await expect(uninstall(['--force'], { CLAUDE_CONFIG_DIR: folder })).rejects.toThrow(
    new UsageError("Unknown option '--force'; --help lists the options"),
  );
});
