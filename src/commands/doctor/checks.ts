import { stateFolder as findStateFolder } from '../../config/claude-folder.js';
import { commandEnvironment, readSettingsFiles } from '../../config/claude-settings.js';
import { StateStore } from '../../state/store.js';
import { FILE_CHECKS, type StateFiles } from './checks/files.js';
import { HOOK_CHECKS, type HookSetup, readHookSetup } from './checks/hooks.js';
import { MODEL_CHECKS } from './checks/models.js';
import { PROGRAM_CHECKS } from './checks/program.js';
import { SERVER_CHECKS } from './checks/server.js';
import { SESSION_CHECKS } from './checks/sessions.js';
import { readSettingsInForce, SETTING_CHECKS, type SettingsInForce } from './checks/settings.js';
import type { Finding, Part } from './finding.js';
import { createMask } from './masking.js';

/** A check looks at one thing and says what it found. It changes no file, and the server stores nothing because of it. */
type Check = (context: HookSetup & SettingsInForce & StateFiles) => Finding | Iterable<Finding> | Promise<Finding[]>;

/** Every check, in the order of the report. To add one, write a function in `checks/` and list it at the top of its file. */
const CHECKS: { readonly [part: string]: readonly Check[] } = {
  Program: PROGRAM_CHECKS,
  Hooks: HOOK_CHECKS,
  Settings: SETTING_CHECKS,
  Files: FILE_CHECKS,
  Server: [...SERVER_CHECKS, ...MODEL_CHECKS],
  Sessions: SESSION_CHECKS,
};

/** Runs every check for Claude Code as it would be started in a directory. No finding contains a key. */
export async function runChecks(env: NodeJS.ProcessEnv, cwd: string): Promise<readonly Part[]> {
  const files = readSettingsFiles(env, cwd);
  const settings = await readSettingsInForce(env, files, cwd);
  const stateFolder = findStateFolder(settings.hookEnv);
  const store = new StateStore(stateFolder);
  const context = { ...readHookSetup(files), ...settings, stateFolder, store, now: Date.now() };
  const mask = createMask([settings.hookEnv, commandEnvironment(env)]);
  const parts = Object.entries(CHECKS).map(async ([title, checks]) => {
    const found = await Promise.all(checks.map((check) => check(context)));
    return { title, findings: mask(found.flatMap((each) => (Symbol.iterator in each ? [...each] : each))) };
  });
  return Promise.all(parts);
}
