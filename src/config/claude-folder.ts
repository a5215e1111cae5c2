import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isRecord, parseJson } from '../shared/json.js';

/** Where Claude Code keeps its files. */
export function claudeFolder(env: NodeJS.ProcessEnv): string {
  return env.CLAUDE_CONFIG_DIR || join(homedir(), '.claude');
}

/**
 * The environment that Claude Code gives a hook, for a command that is run by hand: the shell's, and beneath it the `env`
 * block of the user's settings. A project's settings are left out: whoever wrote that project could name a server of
 * their own in them.
 */
export function commandEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...userSettings(env), ...Object.fromEntries(Object.entries(env).filter(([, value]) => value !== '')) };
}

function userSettings(env: NodeJS.ProcessEnv): { [name: string]: string } {
  const settings = parseJson(read(join(claudeFolder(env), 'settings.json')));
  const block = isRecord(settings) && isRecord(settings.env) ? Object.entries(settings.env) : [];
  return Object.fromEntries(block.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
