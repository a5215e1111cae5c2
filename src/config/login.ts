import { homedir } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod/mini';
import { readJsonFile } from '../shared/read-file.js';
import { acceptedSettings, readSettingsFiles } from './claude-settings.js';

/** What `/login` with a subscription writes. An enterprise can pay by use, too. */
const Login = z.object({
  oauthAccount: z.object({ organizationType: z.enum(['claude_pro', 'claude_max', 'claude_team']) }),
});

/** With any of these Claude Code does not use the login. Their values are of no interest. */
const OTHER_ACCESS = [
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_AUTH_TOKEN',
  'CLAUDE_CODE_USE_BEDROCK',
  'CLAUDE_CODE_USE_VERTEX',
  'CLAUDE_CODE_USE_FOUNDRY',
];

/** Whether Claude Code would use a subscription if it was started in this folder now. Of the login, only its kind is looked at. */
export function hasSubscription(env: NodeJS.ProcessEnv, folder: string): boolean {
  if (OTHER_ACCESS.some((name) => env[name])) return false;
  if (acceptedSettings(readSettingsFiles(env, folder)).some(({ settings }) => settings.apiKeyHelper)) return false;
  // `claude setup-token` makes one for a subscription.
  if (env.CLAUDE_CODE_OAUTH_TOKEN) return true;
  return Login.safeParse(readJsonFile(join(env.CLAUDE_CONFIG_DIR || homedir(), '.claude.json'))).success;
}
