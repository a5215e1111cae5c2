import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { assembleMarketplace } from '../../scripts/marketplace.js';
import { nameRepository } from '../../scripts/release-steps.js';
import { type LangfuseServer, PROJECT, PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
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

async function installPlugin(home: ClaudeHome, { url }: LangfuseServer): Promise<void> {
  installPluginWith(home, [`public_key=${PUBLIC_KEY}`, `secret_key=${SECRET_KEY}`, `base_url=${url}`]);
}

function installPluginWith({ work: cwd, env }: ClaudeHome, options: readonly string[]): void {
  const args = ['plugin', 'install', 'cc-langfuse', '--marketplace', marketplace, '-y'];
  const config = options.flatMap((option) => ['--config', option]);
  const { status, stdout, stderr } = spawnSync(claudeProgram(), [...args, ...config], { cwd, env, encoding: 'utf8' });
  expect(status, stdout + stderr).toBe(0);
}

/** What `claude plugin validate` reports, as far as it is looked at here. */
interface Validation {
  readonly success: boolean;
  readonly manifest: { readonly errors: readonly object[]; readonly warnings: readonly { readonly path: string }[] };
  readonly contents: readonly object[];
  readonly advice: readonly object[];
  readonly directory: { readonly findings: readonly object[]; readonly undecided: readonly object[] };
}

test('the plugin, as a release publishes it, passes the checks of the plugin directory without a warning', () => {
  const folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-released-'));
  onTestFinished(() => removeFolder(folder));
  const packageJson = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  assembleMarketplace(folder, nameRepository(packageJson, 'acme/cc-langfuse'));
  const args = ['plugin', 'validate', '--profile', 'directory', '--json', join(folder, 'plugin')];
  const env = { PATH: process.env.PATH, HOME: folder };
  const { stdout, stderr } = spawnSync(claudeProgram(), args, { cwd: folder, env, encoding: 'utf8' });
  expect(stderr).toBe('');
  const { success, manifest, contents, advice, directory }: Validation = JSON.parse(stdout);
  // 2.1.326 does not know it yet, and ignores it.
  const warnings = manifest.warnings.filter(({ path }) => path !== 'network');
  const { findings, undecided } = directory;
  const found = [manifest.errors, warnings, contents, advice, findings, undecided].flat();
  expect({ success, found }).toEqual({ success: true, found: [] });
});

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

test("the plugin's commands are answered by their hook, with its keys and without the model", async () => {
  const traced = await TracedHome.open({ 'Say hello': [says(text('Hello there.'))] }, {}, installPlugin);
  const type = (prompt: string) => print(claudeProgram(), traced.claude, prompt, ['--continue']);
  try {
    await print(claudeProgram(), traced.claude, 'Say hello');
    await traced.settled();
    const { length } = traced.claude.api.served;
    const rated = await type('/cc-langfuse:bad it printed $(id) and "quotes"');
    expect(rated.stdout).toContain('turn 1 is rated bad');
    const page = `${traced.server.url}/project/${PROJECT.id}/sessions/${traced.claude.lastSession}`;
    expect((await type('/cc-langfuse:open')).stdout).toContain(page);
    expect([...traced.server.api.scores.values()]).toMatchObject([
      { name: 'user_rating', value: 0, comment: 'it printed $(id) and "quotes"' },
    ]);
    expect(traced.claude.api.served).toHaveLength(length);
    expect(traced.server.roots.map(({ name }) => name)).toEqual(['Turn 1']);
  } finally {
    await traced.close();
  }
});

test('the plugin without keys lets Claude Code work, and sends nothing', async () => {
  const traced = await TracedHome.open({ 'Say hello': [says(text('Hello there.'))] }, {}, async (home) =>
    installPluginWith(home, []),
  );
  try {
    const printed = await print(claudeProgram(), traced.claude, 'Say hello');
    expect(printed).toMatchObject({ exitCode: 0, stdout: 'Hello there.\n', stderr: '' });
    expect(traced.server.requests).toEqual([]);
  } finally {
    await traced.close();
  }
});
