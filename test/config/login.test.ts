import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { hasSubscription } from '../../src/config/login.js';
import { removeFolder } from '../support/remove-folder.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-login-'));
});

afterEach(() => removeFolder(folder));

const login = (organizationType: unknown) => ({ oauthAccount: { organizationType, emailAddress: 'a@b.example' } });
const write = (content: unknown) => writeFileSync(join(folder, '.claude.json'), JSON.stringify(content));
const isSubscription = (env: NodeJS.ProcessEnv = {}) => hasSubscription({ CLAUDE_CONFIG_DIR: folder, ...env }, folder);

test.each(['claude_pro', 'claude_max', 'claude_team'])('%s is a subscription', (kind) => {
  write(login(kind));
  expect(isSubscription()).toBe(true);
});

test.each([
  ['an enterprise, which can pay by use', login('claude_enterprise')],
  ['the Console', login('api')],
  ['a login whose kind is not known', login(null)],
  ['no login', { oauthAccount: null }],
  ['a damaged file', 'x'],
])('%s is none', (_, content) => {
  write(content);
  expect(isSubscription()).toBe(false);
});

test('without the file there is none, but for the token of a subscription', () => {
  expect(isSubscription()).toBe(false);
  expect(isSubscription({ CLAUDE_CODE_OAUTH_TOKEN: 'x' })).toBe(true);
  expect(isSubscription({ CLAUDE_CODE_OAUTH_TOKEN: 'x', ANTHROPIC_API_KEY: 'x' })).toBe(false);
});

test.each([
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_AUTH_TOKEN',
  'CLAUDE_CODE_USE_BEDROCK',
  'CLAUDE_CODE_USE_VERTEX',
  'CLAUDE_CODE_USE_FOUNDRY',
])('with %s Claude Code does not use it', (name) => {
  write(login('claude_max'));
  expect(isSubscription({ [name]: '1' })).toBe(false);
  expect(isSubscription({ [name]: '' })).toBe(true);
});

test('with apiKeyHelper in its settings Claude Code does not use it', () => {
  write(login('claude_max'));
  mkdirSync(join(folder, '.claude'));
  writeFileSync(join(folder, '.claude', 'settings.json'), JSON.stringify({ apiKeyHelper: '/bin/key' }));
  expect(isSubscription()).toBe(false);
});
