import { UsageError } from '../../cli/command-line.js';
import { toOneLine } from '../../cli/format.js';
import { canAsk } from '../../cli/questions.js';
import { HOOK_SECONDS, PORTABLE_COMMAND } from '../../config/claude-hooks.js';
import {
  commandEnvironment,
  envBlock,
  readSettingsAt,
  readSettingsFiles,
  settingsPath,
} from '../../config/claude-settings.js';
import { type CollectorConfig, readSettings } from '../../config/settings.js';
import { sessionsPage } from '../../langfuse/project.js';
import { type Credentials, credentialsIn, langfuseOf, variablesFor } from './credentials.js';
import { exposure } from './exposure.js';
import { findings } from './findings.js';
import { readInstallRequest } from './install-request.js';
import { absoluteCommand } from './program-path.js';
import { installedIn } from './settings-change.js';
import { changeOf, type SettingsChange, write } from './settings-writer.js';
import { shownChange } from './shown-change.js';
import { askForCredentials, type TriedCredentials, takeCredentials } from './tried-credentials.js';

/** Registers the hooks; gives the exit code. */
export async function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const request = await readInstallRequest(args);
  const { scope, isDryRun, isForScripts, given } = request;
  const path = settingsPath(scope, env, process.cwd());
  const command = scope === 'project' ? PORTABLE_COMMAND : absoluteCommand(process.argv[1] ?? '', env);
  const block = envBlock(readSettingsAt(path));
  const isTracing = { TRACE_TO_LANGFUSE: block.TRACE_TO_LANGFUSE ?? 'true' };
  const change = (credentials: Partial<Credentials>) =>
    changeOf(path, (text) =>
      installedIn(text, { command, variables: { ...isTracing, ...variablesFor(credentials, block) } }),
    );
  // Whoever is asked for keys is to know that there is a place for them.
  change({});
  const collector = await collectorIn({ ...commandEnvironment(env), ...block });
  if (collector && Object.keys(given).length > 0)
    throw new UsageError(
      'CC_LANGFUSE_OTLP_URL is set, with which keys and server are not used: remove it, or give none',
    );
  const hasNoKeys = scope === 'project' || collector !== undefined;
  if (!isDryRun && !isForScripts && !collector && !canAsk())
    throw new UsageError('there is no terminal to ask in: give --yes, with --public-key and --secret-key-stdin');

  const known = { ...knownCredentials(block, env), ...given };
  if (isDryRun) {
    process.stdout.write(shownChange(change(hasNoKeys ? {} : known)));
    if (!hasNoKeys && known.secretKey === undefined) process.stdout.write('and the keys, which would be asked for\n');
    return warn(findings(readSettingsFiles(env, process.cwd())));
  }
  const tried = hasNoKeys ? undefined : await (isForScripts ? takeCredentials(known) : askForCredentials(known));
  const made = change(tried?.credentials ?? {});
  const backup = write(made);
  process.stdout.write(`${[...done(made, backup), ...next(tried ?? collector, isTracing)].join('\n')}\n`);
  const exposed = tried ? exposure(path).map(({ what, remedy }) => `${what}: ${remedy}`) : [];
  return warn([...findings(readSettingsFiles(env, process.cwd())), ...exposed]);
}

/**
 * Those of the file, all of them or none: in a project someone else may have written it, and the user's own secret key is not
 * to go to a server that they name.
 */
function knownCredentials(block: NodeJS.ProcessEnv, env: NodeJS.ProcessEnv): Partial<Credentials> {
  const own = credentialsIn(block);
  return own.publicKey !== undefined && own.secretKey !== undefined ? own : credentialsIn(commandEnvironment(env));
}

/** The Collector that hooks would send to. */
async function collectorIn(variables: NodeJS.ProcessEnv): Promise<CollectorConfig | undefined> {
  const { destination: receiver } = await readSettings(variables);
  return receiver?.kind === 'collector' ? receiver : undefined;
}

function done({ path, before, after }: SettingsChange, backup: string | undefined): string[] {
  if (before === after) return [`${path} has it all already; nothing was changed`];
  const written = `${path} registers ${Object.keys(HOOK_SECONDS).join(', ')}`;
  return backup === undefined ? [written] : [written, `as it was before: ${backup}`];
}

function next(
  goal: TriedCredentials | CollectorConfig | undefined,
  { TRACE_TO_LANGFUSE }: { TRACE_TO_LANGFUSE: string },
): string[] {
  if (TRACE_TO_LANGFUSE !== 'true')
    return [`TRACE_TO_LANGFUSE is ${TRACE_TO_LANGFUSE} there: nothing is exported until it is true`];
  if (!goal)
    return [
      'It is for all who work on the project, so it has neither keys nor paths. Each of them needs cc-langfuse on the path, and',
      'LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY in the environment or in the env block of their own settings.',
    ];
  if ('url' in goal)
    return [
      `Next: start a new session of Claude Code. Its turns go to the Collector at ${goal.url.host}, by CC_LANGFUSE_OTLP_URL`,
      'To try that: cc-langfuse doctor. What ran before: cc-langfuse backfill.',
    ];
  const page = sessionsPage(langfuseOf(goal.credentials), goal.project);
  return [
    `Next: start a new session of Claude Code. After its first answer it is at ${page}`,
    'If it is not: cc-langfuse doctor. What ran before: cc-langfuse backfill.',
  ];
}

function warn(lines: readonly string[]): number {
  for (const line of lines) process.stderr.write(`cc-langfuse: ${toOneLine(line)}\n`);
  return 0;
}
