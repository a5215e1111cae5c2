import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { saveRefusal, takeNotice } from '../../../src/commands/hook/credential-notice.js';

let home: string;
let env: NodeJS.ProcessEnv;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'cc-langfuse-notice-'));
  mkdirSync(join(home, 'state'));
  env = { CLAUDE_CONFIG_DIR: home, LANGFUSE_PUBLIC_KEY: 'pk', LANGFUSE_SECRET_KEY: 'sk-secret' };
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

const REFUSAL = 'Langfuse refused the keys (401) at langfuse.test';
const state = () => join(home, 'state');

test('the notice of a refusal is only for the keys and the server that were refused, until the keys are accepted', () => {
  saveRefusal(state(), REFUSAL, env);
  expect(takeNotice({ ...env, LANGFUSE_SECRET_KEY: 'another' }, 'one')).toBeUndefined();
  expect(takeNotice({ ...env, LANGFUSE_BASE_URL: 'https://other.test' }, 'one')).toBeUndefined();
  expect(takeNotice(env, 'one')).toContain('Langfuse refused the keys (401) at langfuse.test');
  expect(readFileSync(join(state(), 'cc-langfuse_refused'), 'utf8')).not.toContain('sk-secret');
  expect(takeNotice(env, 'two')).toContain('Langfuse refused the keys (401) at langfuse.test');
  saveRefusal(state(), undefined, env);
  expect(takeNotice(env, 'three')).toBeUndefined();
});

test('a key of spaces counts as not set', () => {
  expect(takeNotice({ ...env, LANGFUSE_SECRET_KEY: ' ' }, 'one')).toContain('LANGFUSE_SECRET_KEY not set');
});

test('the notice for the plugin says where its keys are entered', () => {
  const plugin = { CLAUDE_CONFIG_DIR: home, CLAUDE_PLUGIN_ROOT: '/plugin' };
  expect(takeNotice(plugin, 'one')).toBe(
    'cc-langfuse: LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY not set. Nothing is exported. Enter them: /plugin, Installed, cc-langfuse, Configure options. Or set them in the env block of your settings',
  );
  expect(takeNotice(plugin, 'one')).toBeUndefined();
  saveRefusal(state(), REFUSAL, { ...env, ...plugin });
  expect(takeNotice({ ...env, ...plugin }, 'two')).toBe(
    `cc-langfuse: ${REFUSAL}. Nothing is exported. Run: cc-langfuse doctor`,
  );
});
