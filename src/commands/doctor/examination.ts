import { stateFolder } from '../../config/claude-folder.js';
import { commandEnvironment, readSettingsFiles, type SettingsFile } from '../../config/claude-settings.js';
import type { DestinationConfig } from '../../config/settings.js';
import { fingerprint } from '../../langfuse/endpoint.js';
import { isRecord, mapValues } from '../../shared/json.js';
import { StateStore } from '../../state/store.js';
import { checkCollector } from './checks/collector.js';
import { checkFiles } from './checks/files.js';
import { checkHooks } from './checks/hooks.js';
import { checkClaudeCode, checkNode, checkProgram } from './checks/program.js';
import { checkNetwork, checkServer } from './checks/server.js';
import { checkSessions } from './checks/sessions.js';
import { checkSettings } from './checks/settings.js';
import { fileFacts } from './facts/files.js';
import { hookFacts } from './facts/hooks.js';
import { programFacts } from './facts/program.js';
import { collectorFacts, type NetworkFacts, networkFacts, serverFacts } from './facts/server.js';
import { sessionFacts } from './facts/sessions.js';
import { type SettingsFacts, settingsFacts } from './facts/settings.js';
import { type Finding, none, type Part } from './finding.js';
import { maskingOf } from './masking.js';

/** Looks at each part of the way from Claude Code, started in a folder, to Langfuse, and changes nothing. */
export async function examine(env: NodeJS.ProcessEnv, cwd: string): Promise<readonly Part[]> {
  const files = eachOnce(readSettingsFiles(env, cwd));
  const settings = await settingsFacts(env, files);
  const { hookEnv, settings: own, trusted } = settings;
  const program = programFacts(env);
  const running = { programPath: program.program.path, nodePath: program.node.path };
  const folder = stateFolder(hookEnv);
  const store = new StateStore(folder, () => {});
  const network = networkFacts(trusted.destination, env, hookEnv);
  const receiver = trusted.destination ? await checkReceiver(trusted.destination, network) : [notAsked(settings)];
  const now = Date.now();
  const parts: Part[] = [
    { title: 'Program', findings: [checkNode(program), checkProgram(program), checkClaudeCode(program)] },
    { title: 'Hooks', findings: checkHooks(hookFacts(files, env), running, own.timeoutMs) },
    { title: 'Settings', findings: checkSettings(settings) },
    { title: 'Files', findings: checkFiles(fileFacts(folder, store), now) },
    { title: 'Server', findings: [...receiver, ...checkNetwork(network)] },
    {
      title: 'Sessions',
      findings: checkSessions(sessionFacts(store), own.destination && fingerprint(own.destination), now),
    },
  ];
  const mask = maskingOf([hookEnv, commandEnvironment(env)]);
  return parts.map(({ title, findings }) => ({ title, findings: findings.map((finding) => masked(finding, mask)) }));
}

/** In the home itself, what is the user's is the project's, too. */
function eachOnce(files: readonly SettingsFile[]): SettingsFile[] {
  return files.filter(({ path }, place) => files.findIndex((file) => file.path === path) === place);
}

async function checkReceiver(receiver: DestinationConfig, network: NetworkFacts): Promise<Finding[]> {
  return receiver.kind === 'collector'
    ? checkCollector(await collectorFacts(receiver), network)
    : checkServer(await serverFacts(receiver), network);
}

/** What a project's settings name is not asked: its author could have named a server that gathers keys. */
function notAsked({ settings, plugin }: SettingsFacts): Finding {
  if (settings.destination)
    return none('endpoint', "not asked: its address or its keys are a project's; in the shell they would be tried");
  return plugin === undefined
    ? none('endpoint', 'not asked: without keys and a server there is nothing to ask')
    : none('endpoint', 'not asked: the secret key is not at hand; with the keys in the shell it would be');
}

function masked<T>(value: T, mask: (text: string) => string): T;
function masked(value: unknown, mask: (text: string) => string): unknown {
  if (typeof value === 'string') return mask(value);
  if (Array.isArray(value)) return value.map((item) => masked(item, mask));
  return isRecord(value) ? mapValues(value, (item) => masked(item, mask)) : value;
}
