import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { assembleMarketplace } from '../../scripts/marketplace.js';
import { type LangfuseServer, PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { removeFolder } from '../support/remove-folder.js';
import { claudeProgram } from './claude-code.js';
import type { ClaudeHome } from './claude-home.js';
import { print } from './headless.js';
import { proveArrival, proveExport } from './proof.js';
import { says, text } from './replies.js';
import { TracedHome } from './traced-home.js';

const marketplace = mkdtempSync(join(tmpdir(), 'cc-langfuse-marketplace-'));

beforeAll(() => assembleMarketplace(marketplace));

afterAll(() => removeFolder(marketplace));

async function installPlugin({ work: cwd, env }: ClaudeHome, { url }: LangfuseServer): Promise<void> {
  const options = [`public_key=${PUBLIC_KEY}`, `secret_key=${SECRET_KEY}`, `base_url=${url}`];
  const args = ['plugin', 'install', 'cc-langfuse', '--marketplace', marketplace, '-y'];
  const config = options.flatMap((option) => ['--config', option]);
  const { status, stdout, stderr } = spawnSync(claudeProgram(), [...args, ...config], { cwd, env, encoding: 'utf8' });
  expect(status, stdout + stderr).toBe(0);
}

test('Langfuse receives everything from claude -p with the plugin and only the options that the user entered', async ({
  task,
}) => {
  const traced = await TracedHome.open({ 'Say hello': [says(text('Hello there.'))] }, {}, installPlugin);
  try {
    const printed = await print(claudeProgram(), traced.claude, 'Say hello');
    expect(printed).toMatchObject({ exitCode: 0, stdout: 'Hello there.\n', stderr: '' });
    await proveArrival(traced, printed.at, task);
    const shows = ['session', '  Turn 1, completed', '    generation "Hello there."'];
    await proveExport(traced, { shows }, task);
  } finally {
    await traced.close();
  }
});
