import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { assembleMarketplace } from '../../scripts/marketplace.js';
import { nameRepository, OWNER } from '../../scripts/release-steps.js';
import { REGIONS } from '../../src/commands/setup/credentials.js';
import { HOOK_SECONDS, LIVE_HOOK_SECONDS } from '../../src/config/claude-hooks.js';
import { readSettings } from '../../src/config/settings.js';
import { version } from '../../src/shared/version.js';
import { LangfuseServer, PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { Workplace } from '../support/program.js';
import { play, recording } from '../support/recording.js';
import { removeFolder } from '../support/remove-folder.js';
import { startHook } from '../support/start-hook.js';
import { describeTraces } from '../support/traces.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const marketplace = mkdtempSync(join(tmpdir(), 'cc-langfuse-marketplace-'));
const plugin = join(marketplace, 'plugin');
const document = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
const hooksIn = (path: string): { [event: string]: [{ hooks: [{ command: string; timeout: number }] }] } =>
  document(path).hooks;
const pluginHooks = () => hooksIn(join(plugin, 'hooks', 'hooks.json'));
const manifest = () => document(join(plugin, '.claude-plugin', 'plugin.json'));

beforeAll(() => assembleMarketplace(marketplace));

afterAll(() => removeFolder(marketplace));

describe('the plugin', () => {
  test('contains the built program, which can be started', () => {
    const files = (folder: string) =>
      Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
    const [shipped, built] = [files(join(plugin, 'dist')), files(join(ROOT, 'dist'))];
    expect(Object.keys(built)).not.toEqual([]);
    expect(shipped).toEqual(built);
    // Claude Code starts it.
    expect(statSync(join(plugin, 'dist', 'hook.sh')).mode & 0o777).toBe(0o755);
  });

  test('has the version of the package, and is the plugin that the marketplace offers', () => {
    const { name, version: itsVersion } = manifest();
    expect(itsVersion).toBe(version);
    const offered = document(join(marketplace, '.claude-plugin', 'marketplace.json')).plugins;
    expect(offered).toMatchObject([{ name, source: './plugin' }]);
  });

  test('has links as soon as a release names the owner, and no link that leads nowhere before', () => {
    const links = ({ homepage, repository }: { homepage?: string; repository?: string }) => [homepage, repository];
    expect(links(manifest())).toEqual([undefined, undefined]);
    const released = mkdtempSync(join(tmpdir(), 'cc-langfuse-released-'));
    onTestFinished(() => removeFolder(released));
    const packageJson = readFileSync(join(ROOT, 'package.json'), 'utf8');
    assembleMarketplace(released, nameRepository(packageJson, 'acme/exporter'));
    expect(links(document(join(released, 'plugin', '.claude-plugin', 'plugin.json')))).toEqual([
      'https://github.com/acme/exporter#readme',
      'https://github.com/acme/exporter',
    ]);
    const readme = readFileSync(join(released, 'plugin', 'README.md'), 'utf8');
    expect(readme).toContain('/plugin install cc-langfuse --marketplace acme/exporter#plugin\n');
    expect(readme).not.toContain(OWNER);
  });

  test('has a README that names every option and command', () => {
    const readme = readFileSync(join(plugin, 'README.md'), 'utf8').toLowerCase();
    const titles = Object.values<{ title: string }>(manifest().userConfig).map(({ title }) => title.toLowerCase());
    const commands = readdirSync(join(plugin, 'commands')).map((file) => `:${file.replace('.md', '`')}`);
    const unnamed = [...titles, ...commands].filter(
      (name) => !readme.includes(name.replace('langfuse secret', 'secret')),
    );
    expect(unnamed).toEqual([]);
  });

  // The directory takes a PNG of 512 to 2048 pixels on each side.
  test('has a square picture for the directory', () => {
    const icon = readFileSync(join(plugin, '.claude-plugin', 'icon.png'));
    expect(icon.subarray(0, 8).toString('latin1')).toBe('\x89PNG\r\n\x1a\n');
    expect([icon.readUInt32BE(16), icon.readUInt32BE(20)]).toEqual([512, 512]);
  });

  test('declares the regions of Langfuse that install offers as the hosts that it reaches', () => {
    const hosts = REGIONS.map(({ url }) => new URL(url).host);
    expect(manifest().network).toEqual({ hosts });
  });

  test('registers the hooks of every installation, and that of turns that are followed, with the same timeouts', () => {
    const timeouts = Object.entries(pluginHooks()).map(([event, [{ hooks }]]) => [
      event,
      hooks.map((hook) => hook.timeout),
    ]);
    const seconds = Object.entries({ ...HOOK_SECONDS, ...LIVE_HOOK_SECONDS }).map(([event, each]) => [event, [each]]);
    expect(Object.fromEntries(timeouts)).toEqual(Object.fromEntries(seconds));
  });

  // With an unknown key, such as `options`, the plugin does not load (2.1.90 to 2.1.197).
  test('asks for nothing that is required, in a form that older versions of Claude Code know', () => {
    const { userConfig } = manifest();
    const keys = Object.values(userConfig).flatMap((option) => Object.keys(option as object));
    expect(new Set(keys)).toEqual(new Set(['type', 'title', 'description', 'sensitive', 'default']));
  });

  test('asks the user only for values that are settings of cc-langfuse', async () => {
    const { userConfig } = manifest();
    expect(Object.keys(userConfig)).not.toEqual([]);
    for (const key of Object.keys(userConfig)) {
      const variable = `CC_LANGFUSE_${key.toUpperCase()}`;
      const {
        problems,
        destination: receiver,
        ...read
      } = await readSettings({ [variable]: key === 'live' ? 'true' : ' full ' });
      const { problems: without, destination: _, ...unset } = await readSettings({});
      const isTaken =
        JSON.stringify(problems) !== JSON.stringify(without) ||
        JSON.stringify(read) !== JSON.stringify(unset) ||
        userConfig[key].default === read[key as keyof typeof read];
      expect(isTaken, key).toBe(true);
    }
  });
});

describe('the hooks of the plugin, started as Claude Code starts them', () => {
  let workplace: Workplace;

  beforeEach(async () => {
    workplace = await Workplace.open();
  });

  afterEach(() => workplace.close());

  const options = () => ({
    HOME: workplace.home,
    PATH: process.env.PATH,
    CLAUDE_CODE_ENTRYPOINT: 'sdk-cli',
    CLAUDE_PLUGIN_ROOT: plugin,
    CLAUDE_PLUGIN_OPTION_PUBLIC_KEY: PUBLIC_KEY,
    CLAUDE_PLUGIN_OPTION_SECRET_KEY: SECRET_KEY,
    CLAUDE_PLUGIN_OPTION_BASE_URL: workplace.server.url,
  });

  const start = (event: string, payload: object, env: NodeJS.ProcessEnv) =>
    startHook(['sh', '-c', pluginHooks()[event]?.[0].hooks[0].command ?? 'false'], payload, { env });

  test('export a session when only the options that the user entered are set', async () => {
    const played = recording('p-simple');
    await play(played, workplace.home, async ({ event, payload }) => {
      expect(await start(event, payload, options())).toEqual({ exitCode: 0, signal: null, output: '' });
    });
    const expected = readFileSync(join(played.folder, 'expected.json'), 'utf8');
    expect(describeTraces(workplace.server.observations)).toBe(expected);
  });

  test('export to the destination of the environment if Claude Code passes empty options, or none', async () => {
    const empty = { PUBLIC_KEY: '', SECRET_KEY: '', BASE_URL: '', USER_ID: '', TAGS: '', CAPTURE: '' };
    for (const given of [empty, {}, { BASE_URL: 'https://cloud.langfuse.com', CAPTURE: 'full' }]) {
      const { PATH, HOME, CLAUDE_CODE_ENTRYPOINT, CLAUDE_PLUGIN_ROOT } = options();
      const form = Object.entries(given).map(([name, value]) => [`CLAUDE_PLUGIN_OPTION_${name}`, value]);
      const env = {
        ...{ PATH, HOME, CLAUDE_CODE_ENTRYPOINT, CLAUDE_PLUGIN_ROOT, ...Object.fromEntries(form) },
        ...{ LANGFUSE_PUBLIC_KEY: PUBLIC_KEY, LANGFUSE_SECRET_KEY: SECRET_KEY },
        LANGFUSE_BASE_URL: workplace.server.url,
      };
      await play(recording('p-simple'), workplace.home, async ({ event, payload }) => {
        expect(await start(event, payload, env)).toEqual({ exitCode: 0, signal: null, output: '' });
      });
      expect(workplace.server.observations.length).toBeGreaterThan(0);
      await workplace.close();
      workplace = await Workplace.open();
    }
  });

  test('export nothing without keys, and the terminal says once what to do', async () => {
    const { PATH, HOME, CLAUDE_PLUGIN_ROOT } = options();
    const env = { PATH, HOME, CLAUDE_PLUGIN_ROOT, CLAUDE_CODE_ENTRYPOINT: 'cli' };
    const outputs: string[] = [];
    await play(recording('p-simple'), workplace.home, async ({ event, payload }) => {
      outputs.push((await start(event, payload, env)).output);
    });
    const [first = '', ...others] = outputs;
    expect(JSON.parse(first).systemMessage).toContain('not set. Nothing is exported. Enter them: /plugin, ');
    expect(others.join('')).toBe('');
    expect(workplace.server.requests).toEqual([]);
  });

  test('export nothing if a project turns tracing off', async () => {
    await play(recording('p-simple'), workplace.home, async ({ event, payload }) => {
      const env = { ...options(), TRACE_TO_LANGFUSE: 'false' };
      expect(await start(event, payload, env)).toEqual({ exitCode: 0, signal: null, output: '' });
    });
    expect(workplace.server.observations).toEqual([]);
  });

  /** Plays a session with a second server that the environment names. Returns how many observations each got. */
  async function playBetweenServers(env: (url: string) => NodeJS.ProcessEnv) {
    const other = await LangfuseServer.start();
    onTestFinished(() => other.stop());
    await play(recording('p-simple'), workplace.home, async ({ event, payload }) => {
      expect(await start(event, payload, { ...options(), ...env(other.url) })).toEqual({
        exitCode: 0,
        signal: null,
        output: '',
      });
    });
    return { ofForm: workplace.server.observations.length, other: other.observations.length, requests: other.requests };
  }

  test('export to the keys and the server of the environment if it has both keys', async () => {
    const { ofForm, other } = await playBetweenServers((url) => ({
      LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
      LANGFUSE_SECRET_KEY: SECRET_KEY,
      LANGFUSE_HOST: url,
    }));
    expect(ofForm).toBe(0);
    expect(other).toBeGreaterThan(0);
  });

  test('do not send the keys that the user entered to a server that only the environment names', async () => {
    const { ofForm, requests } = await playBetweenServers((url) => ({
      CC_LANGFUSE_BASE_URL: url,
      LANGFUSE_HOST: url,
      LANGFUSE_PUBLIC_KEY: 'pk-lf-other',
    }));
    expect(ofForm).toBeGreaterThan(0);
    expect(requests).toEqual([]);
  });
});
