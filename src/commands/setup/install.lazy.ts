import { chmodSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { parseOptions, UsageError } from '../../cli/command-line.js';
import { toOneLine } from '../../cli/format.js';
import { ownCommand } from '../../cli/own-command.js';
import { canAsk, confirm, noTerminal } from '../../cli/questions.js';
import { printStderr, printStdout } from '../../cli/terminal.js';
import { stateFolder } from '../../config/claude-folder.js';
import { hookSeconds, portableCommand } from '../../config/claude-hooks.js';
import {
  commandEnvironment,
  envBlock,
  parseClaudeSettings,
  readSettingsAt,
  readSettingsFiles,
} from '../../config/claude-settings.js';
import { saveInstalledDestination } from '../../config/installed-destinations.js';
import { programInForce, programsFolder } from '../../config/installed-program.js';
import { splitList } from '../../config/setting-formats.js';
import { findFirstKey, readSettings } from '../../config/settings.js';
import { type Scope, settingsPath } from '../../config/settings-paths.js';
import { langfuseId } from '../../langfuse/endpoint.js';
import { findTarget, fingerprint } from '../../langfuse/open-destination.js';
import { projectUrl, readProjectPage, saveProject, sessionsPage } from '../../langfuse/project-page.js';
import type { Target } from '../../langfuse/target.js';
import { attempt } from '../../shared/attempt.js';
import { withoutUndefined } from '../../shared/json.js';
import { version } from '../../shared/version.js';
import { saveIngestionOnly } from '../../state/servers.js';
import { checkHookConflicts } from '../doctor/checks/hooks.js';
import { checkBackup, checkExposure, isReadByOthers } from '../doctor/checks/settings.js';
import type { Finding } from '../doctor/finding.js';
import {
  askForCredentials,
  buildLangfuseConfig,
  buildVariables,
  type CheckedCredentials,
  type CredentialName,
  type Credentials,
  checkKnownCredentials,
  DEFAULT_URL,
  findProblem,
  readAddress,
  readCredentials,
  readGatewayHeaders,
} from './credentials.js';
import { installManaged } from './managed.js';
import { parseSetupOptions, SETUP_OPTIONS } from './options.js';
import { describeInstalled, installProgram } from './program-copy.js';
import { buildAbsoluteCommands } from './program-path.js';
import { addToSettings, hasOwnHooks } from './settings-change.js';
import { planChange, type SettingsChange, showChange, writeChange } from './settings-file.js';
import { askForUser, buildUserVariables, parseUser } from './user.js';

export const HELP = `usage: cc-langfuse install [options]

Copies the program to ~/.claude/cc-langfuse, registers the hooks in Claude
Code's settings and writes the keys of a Langfuse project to their env block. In
a terminal it asks for what it needs and tries the keys before it writes them.
If CC_LANGFUSE_OTLP_URL names a Collector, no keys are needed. Nothing else in
the file is changed. A backup from before the first installation is kept next
to it, until you uninstall. If others can read the file, it offers to close it,
and with --yes says how.

  --scope <scope>       user: ~/.claude/settings.json (the default)
                        local: .claude/settings.local.json
                        project: .claude/settings.json, which is committed, so
                        it gets no keys and no paths of this machine; everyone
                        who works on it needs cc-langfuse on the PATH
                        managed: for everyone on this machine, in a file of
                        Claude Code's managed settings; as an administrator
  --user <name>         the user of the traces: a name, git (its e-mail address
                        in each repository) or none. With --scope project or
                        managed, whose files are for everyone, git or none
  --live                send the finished parts of a turn while it runs: one
                        more hook, and CC_LANGFUSE_LIVE=true. If the env block
                        has CC_LANGFUSE_BUDGET, another one after each tool
  --print               with --scope managed: print these settings, for a system
                        that distributes them, and change nothing
  --secret-key-command <command>
                        with --scope managed: a command that prints the secret
                        key, run as each user, instead of the key
  --dry-run             show what would change, and change nothing
  --yes                 ask nothing; take what is not given as an option from
                        the settings or the environment
  --public-key <key>
  --secret-key-stdin    read the secret key from stdin
  --base-url <url>      the server (${DEFAULT_URL}), or any page of
                        your project there
  --help

Exit code: 0; 1 if something failed; 2 for a usage error; 130 if you stopped it.
`;

const OPTIONS = {
  ...SETUP_OPTIONS,
  'public-key': { type: 'string' },
  'secret-key-stdin': { type: 'boolean' },
  'base-url': { type: 'string' },
  print: { type: 'boolean' },
  'secret-key-command': { type: 'string' },
  live: { type: 'boolean' },
  user: { type: 'string' },
} as const;

export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const request = await readRequest(args);
  const { scope, isDryRun, assumeYes, given } = request;
  if (scope === 'managed') return installManaged(request, env);
  const path = settingsPath(scope, env, process.cwd());
  const commandFor = scope === 'project' ? portableCommand : buildAbsoluteCommands(programInForce(env), env);
  const content = readSettingsAt(path);
  if (content.kind === 'settings' && content.problem !== undefined)
    throw new Error(
      `${path} has comments or trailing commas (${content.problem}), so Claude Code ignores it; remove them first`,
    );
  const block = envBlock(content);
  const { TRACE_TO_LANGFUSE = 'true' } = block;
  const isLive = request.isLive || block.CC_LANGFUSE_LIVE === 'true';
  const live = isLive ? { CC_LANGFUSE_LIVE: 'true' } : {};
  const events = hookSeconds({ ...block, ...live });
  const plan = (credentials: Partial<Credentials>, user = request.user, rotation: Rotation = {}) => {
    const own = { ...buildVariables(credentials, block), ...buildUserVariables(user, block), ...rotation };
    return planChange(path, (before) =>
      addToSettings(before, commandFor, { TRACE_TO_LANGFUSE, ...live, ...own }, events),
    );
  };
  // Fails before the user is asked for keys if they could not be written.
  plan({});
  const variables = { ...commandEnvironment(env), ...block };
  const { destination } = await readSettings(variables);
  const target = destination && findTarget(destination);
  const other = target?.langfuse ? undefined : target;
  if (other && Object.keys(given).length > 0)
    throw new UsageError(`${other.settings.url} is set, so keys and server are not used: remove it, or leave them out`);
  const needsKeys = scope !== 'project' && !other;
  if (!isDryRun && !assumeYes && !other && !canAsk())
    throw noTerminal('use --yes, with --public-key and --secret-key-stdin');

  const known = { ...readKnownCredentials(block, env), ...given, headers: await readGatewayHeaders(env) };
  if (isDryRun) {
    const change = plan(needsKeys ? known : {});
    if (scope !== 'project') printStdout(`would install ${version} in ${programsFolder(env)}`);
    printStdout(showChange(change));
    if (needsKeys && known.secretKey === undefined) printStdout('install would also ask for the keys, and add them');
    warn(findConflicts(change, env));
    return 0;
  }
  const checked = needsKeys ? await (assumeYes ? checkKnownCredentials : askForCredentials)(known, given) : undefined;
  const rotation = checked ? planRotation(checked, block, env) : {};
  const projectKeys = splitList({ ...block, ...rotation }.CC_LANGFUSE_PROJECT_KEYS ?? '');
  const checkedConfig = checked && {
    ...buildLangfuseConfig(checked),
    firstPublicKey: findFirstKey(checked.publicKey, projectKeys),
  };
  if (checkedConfig && checked.connection !== undefined)
    saveIngestionOnly(stateFolder(env), fingerprint(checkedConfig), checked.isForIngestion ?? false);
  if (checkedConfig && checked.project) saveProject(checkedConfig, checked.project.id, stateFolder(env));
  const asksForUser = !assumeYes && scope !== 'project' && canAsk();
  const user = request.user ?? (asksForUser ? await askForUser(variables, env) : undefined);
  const change = plan(checked ?? {}, user, rotation);
  if (checked && !assumeYes) await offerToClose(path);
  const installed = scope === 'project' ? undefined : installProgram(env);
  if (assumeYes && checked?.connection !== undefined) printStdout(checked.connection);
  if (installed) printStdout(describeInstalled(installed));
  // A file that already has these hooks is not as it was before the first installation.
  const backup = writeChange(change, { keepsBackup: !hasOwnHooks(content) });
  // In a project's settings nobody else may choose the destination for commands that are run by hand.
  if (checked && scope !== 'user')
    saveInstalledDestination(stateFolder(env), path, envBlock(parseClaudeSettings(change.after)));
  if (change.before === change.after)
    printStdout(`${path} is up to date; nothing was changed${installed ? ' in it' : ''}`);
  else printStdout(`registered ${Object.keys(events).join(', ')} in ${path}`);
  if (backup !== undefined) printStdout(`backup: ${backup}`);
  if (checked) describeRotation(checked, block, rotation);
  printStdout(describeNextSteps(checked ?? other, TRACE_TO_LANGFUSE, scope));
  warn([
    ...findConflicts(change, env),
    ...(checked ? checkExposure(path) : []),
    ...(backup === undefined ? [] : checkBackup(backup)),
  ]);
  printStdout('Installed.');
  return 0;
}

interface Rotation {
  readonly CC_LANGFUSE_PROJECT_KEYS?: string | undefined;
}

/** If the new keys are known to be of the same project as those in the file, that is noted. */
function planRotation(checked: CheckedCredentials, block: NodeJS.ProcessEnv, env: NodeJS.ProcessEnv): Rotation {
  const earlier = readCredentials(block);
  if (earlier.publicKey === undefined || isSameKey(checked, earlier)) return {};
  const keys = listProjectKeys(block, earlier.publicKey, checked);
  const config = { ...buildLangfuseConfig(checked), firstPublicKey: keys[0] };
  const page = readProjectPage(stateFolder(env), langfuseId(config));
  const isSameProject = checked.project !== undefined && page === projectUrl(config, checked.project.id);
  // The keys of another project must not stay.
  return { CC_LANGFUSE_PROJECT_KEYS: isSameProject ? keys.join() : undefined };
}

function listProjectKeys(block: NodeJS.ProcessEnv, earlier: string, { publicKey }: Credentials): string[] {
  return [...new Set([...splitList(block.CC_LANGFUSE_PROJECT_KEYS ?? ''), earlier, publicKey])];
}

function isSameKey({ publicKey, baseUrl }: Credentials, earlier: Partial<Credentials>): boolean {
  return publicKey === earlier.publicKey && baseUrl === (earlier.baseUrl ?? DEFAULT_URL);
}

function describeRotation(checked: CheckedCredentials, block: NodeJS.ProcessEnv, rotation: Rotation): void {
  const { publicKey, baseUrl = DEFAULT_URL } = readCredentials(block);
  if (publicKey === undefined || publicKey === checked.publicKey || baseUrl !== checked.baseUrl) return;
  if (rotation.CC_LANGFUSE_PROJECT_KEYS !== undefined)
    printStdout('The new keys are of the same project: what waits for the old ones is sent with them.');
  else if (checked.project === undefined)
    printStdout(`Turns may wait for the old keys. If the new ones are of the same project, add to the env block of that file:
"CC_LANGFUSE_PROJECT_KEYS": "${listProjectKeys(block, publicKey, checked).join()}"`);
}

/** If the user does not want that, or it cannot be done, a warning says at the end who can read the key. */
async function offerToClose(path: string): Promise<void> {
  if (!canAsk() || !isReadByOthers(path)) return;
  const question = `Others on this machine can read ${path}, which gets the secret key. Let only you read it (chmod 600)?`;
  if (await confirm(question)) attempt(() => chmodSync(path, 0o600));
}

async function readRequest(args: readonly string[]) {
  const values = parseOptions('install', args, OPTIONS);
  const options = parseSetupOptions(values);
  const { 'public-key': publicKey, 'base-url': baseUrl, 'secret-key-stdin': isSecretKeyPiped } = values;
  if (options.scope === 'project' && (publicKey ?? baseUrl ?? isSecretKeyPiped) !== undefined)
    throw new UsageError(
      '--scope project: that file is committed and gets no keys; use --scope user or local for them',
    );
  const { print: isPrinted = false, 'secret-key-command': secretKeyCommand } = values;
  if (options.scope !== 'managed' && (isPrinted || secretKeyCommand !== undefined))
    throw new UsageError(`${isPrinted ? '--print' : '--secret-key-command'} needs --scope managed`);
  if (secretKeyCommand?.trim() === '') throw new UsageError('--secret-key-command: expected a command');
  const address = parseCredential('--base-url', 'baseUrl', baseUrl);
  const given = withoutUndefined({
    publicKey: parseCredential('--public-key', 'publicKey', publicKey),
    ...(address !== undefined && readAddress(address)),
    secretKey: parseCredential('--secret-key-stdin', 'secretKey', isSecretKeyPiped ? await readSecretKey() : undefined),
  });
  const user = parseUser(values.user, options.scope);
  return { ...options, given, isPrinted, secretKeyCommand, isLive: values.live ?? false, user };
}

function parseCredential(option: string, name: CredentialName, value: string | undefined): string | undefined {
  const problem = value === undefined ? undefined : findProblem(name, value.trim());
  if (problem !== undefined) throw new UsageError(`${option}: ${problem}`);
  return value?.trim();
}

/** A secret key on the command line would be in the shell's history and in every list of processes. */
function readSecretKey(): Promise<string> {
  if (process.stdin.isTTY) throw new UsageError('--secret-key-stdin: stdin is the terminal; pipe the key into it');
  return text(process.stdin);
}

/**
 * Takes the credentials from the file only if both keys are there. Someone else may have written a project's file, and the
 * user's own secret key must not be sent to a server that they chose.
 */
function readKnownCredentials(block: NodeJS.ProcessEnv, env: NodeJS.ProcessEnv): Partial<Credentials> {
  const own = readCredentials(block);
  return own.publicKey !== undefined && own.secretKey !== undefined ? own : readCredentials(commandEnvironment(env));
}

function describeNextSteps(goal: CheckedCredentials | Target | undefined, tracing: string, scope: Scope): string {
  if (tracing !== 'true') return `TRACE_TO_LANGFUSE is ${tracing} in that file: nothing is exported until it is true`;
  if (!goal)
    return `The file is shared by everyone who works on the project, so it contains neither keys nor paths. Each of them needs
cc-langfuse on the PATH, and LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY in the environment or in their own settings.`;
  const earlier = `To send ${scope === 'user' ? 'earlier' : "this directory's earlier"} sessions there: ${ownCommand()} backfill.`;
  if ('url' in goal)
    return `Next: start a new Claude Code session. Its turns go to ${goal.name} at ${goal.url.host} (${goal.settings.url}).
To test that: ${ownCommand()} doctor. ${earlier}`;
  const langfuse = buildLangfuseConfig(goal);
  const page = sessionsPage(langfuse, goal.project && projectUrl(langfuse, goal.project.id));
  return `Next: start a new Claude Code session. After its first answer it appears at ${page}
If it does not: ${ownCommand()} doctor. ${earlier}`;
}

/** Finds whatever stops the hooks or sends turns twice once the change is made. */
function findConflicts({ path, after }: SettingsChange, env: NodeJS.ProcessEnv): Finding[] {
  const files = readSettingsFiles(env, process.cwd());
  return checkHookConflicts(
    files.map((file) => (file.path === path ? { ...file, content: parseClaudeSettings(after) } : file)),
  );
}

function warn(findings: readonly Finding[]): void {
  for (const { message, fix } of findings) printStderr(`cc-langfuse: ${toOneLine(`${message}. Fix: ${fix}`)}`);
}
