import { stateFolder as findStateFolder } from '../../config/claude-folder.js';
import { commandEnvironment, readSettingsFiles } from '../../config/claude-settings.js';
import { StateStore } from '../../state/store.js';
import {
  checkFileModes,
  checkLocks,
  checkLog,
  checkSetAside,
  checkState,
  checkStateFolder,
  type StateFiles,
} from './checks/files.js';
import {
  checkHookPrograms,
  checkHooksOff,
  checkOtherExporters,
  checkRegistered,
  checkRepeated,
  checkSettingsFiles,
  checkTimeouts,
  type HookSetup,
  readHookSetup,
} from './checks/hooks.js';
import { checkCertificates, checkNetworkVariables, checkProxy } from './checks/network.js';
import { checkClaudeCode, checkNode, checkProgram } from './checks/program.js';
import { checkServer } from './checks/server.js';
import { checkLastExport, checkPending } from './checks/sessions.js';
import {
  checkBadSettings,
  checkDestination,
  checkExposedKeys,
  checkGoodSettings,
  checkTracing,
  readSettingsInForce,
  type SettingsInForce,
} from './checks/settings.js';
import type { Finding, Part } from './finding.js';
import { createMask } from './masking.js';

/** A check looks at one thing and says what it found. It changes no file, and the server stores nothing because of it. */
type Check = (context: Context) => Finding | readonly Finding[] | Promise<readonly Finding[]>;
type Context = HookSetup & SettingsInForce & StateFiles;

/** Every check, in the order of the report. To add one, write a function in `checks/` and list it here. */
const CHECKS: { readonly [part: string]: readonly Check[] } = {
  Program: [checkNode, checkProgram, checkClaudeCode],
  Hooks: [
    checkSettingsFiles,
    checkHooksOff,
    checkRegistered,
    checkHookPrograms,
    checkTimeouts,
    checkRepeated,
    checkOtherExporters,
  ],
  Settings: [checkTracing, checkBadSettings, checkGoodSettings, checkDestination, checkExposedKeys],
  Files: [checkStateFolder, checkState, checkSetAside, checkLocks, checkLog, checkFileModes],
  Server: [checkServer, checkProxy, checkCertificates, checkNetworkVariables],
  Sessions: [checkLastExport, checkPending],
};

/** Runs every check for Claude Code as it would be started in a directory. No finding contains a key. */
export async function runChecks(env: NodeJS.ProcessEnv, cwd: string): Promise<readonly Part[]> {
  const files = readSettingsFiles(env, cwd);
  const settings = await readSettingsInForce(env, files);
  const stateFolder = findStateFolder(settings.hookEnv);
  const store = new StateStore(stateFolder, () => {});
  const context = { ...readHookSetup(files), ...settings, stateFolder, store, now: Date.now() };
  const mask = createMask([settings.hookEnv, commandEnvironment(env)]);
  const parts = Object.entries(CHECKS).map(async ([title, checks]) => {
    const findings = await Promise.all(checks.map((check) => check(context)));
    return { title, findings: mask(findings.flat()) };
  });
  return Promise.all(parts);
}
