import { parseCommandLine, parsePositiveNumber, UsageError } from '../../cli/command-line.js';
import { openUrl } from '../../cli/open-url.js';
import { ownCommand } from '../../cli/own-command.js';
import { selectSession } from '../../cli/session-selection.js';
import { printStdout } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { adviseOnKeys } from '../../config/missing-keys.js';
import * as formats from '../../config/setting-formats.js';
import { type DestinationConfig, readSettings } from '../../config/settings.js';
import { findTurn } from '../../export/find-turn.js';
import { findTarget, fingerprint } from '../../langfuse/open-destination.js';
import {
  askForProjectPage,
  findKnownPage,
  readProjectPage,
  saveProject,
  sessionUrl,
  turnUrl,
} from '../../langfuse/project-page.js';
import { StateStore } from '../../state/store.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';

export const HELP = `usage: cc-langfuse open [options] [session id or .jsonl path]

Prints the address of a session in Langfuse and, in a terminal on a desktop,
opens it in the browser. Without a session, it takes the one that Claude Code
runs the command in, or else the newest one of the current directory. The first
characters of an id are enough.

  --turn <n>          the trace of this turn
  --project-id <id>   the project, if the keys may not read: the id in the
                      address of its page. It is asked for once
  --help
`;

const OPTIONS = { turn: { type: 'string' }, 'project-id': { type: 'string' } } as const;

export async function run(args: readonly string[], shell: NodeJS.ProcessEnv): Promise<number> {
  const { values, positionals } = parseCommandLine(args, OPTIONS);
  const { 'project-id': projectId } = values;
  const isBad = projectId !== undefined && !formats.projectId.safeParse(projectId).success;
  if (isBad) throw new UsageError('--project-id: expected the id in the address of a page, …/project/<id>');
  const number = parsePositiveNumber('turn', values.turn);
  const session = selectSession('open', positionals, claudeFolder(shell), shell);
  const { env } = await readCommandSettings(shell, session.folders[0] ?? process.cwd());
  const { destination: config } = await readSettings(env);
  const folder = stateFolder(env);
  const state = new StateStore(folder);
  const findPage = (destination: string) => findPageOf(destination, config, projectId, folder, shell);
  const url = await (number === undefined
    ? findSessionUrl(session, state, config, findPage)
    : findTurnUrl(session, number, state, { env, restrictions: [shell] }, findPage));
  await printStdout(url);
  openUrl(url, shell);
  return 0;
}

type FindPage = (destination: string) => Promise<string>;

const NOTHING_SENT = 'nothing of the session is in Langfuse yet; cc-langfuse sessions says why';

async function findSessionUrl(
  { sessionId }: SessionOverview,
  state: StateStore,
  config: DestinationConfig | undefined,
  findPage: FindPage,
): Promise<string> {
  const current = config && fingerprint(config);
  const progress = state.readProgress(sessionId);
  const all = [current ?? '', ...progress.keys()];
  const sentTo = all.find((each) => each !== '' && progress.get(each)?.acknowledged);
  if (sentTo === undefined) throw new Error(NOTHING_SENT);
  return sessionUrl(await findPage(sentTo), sessionId);
}

async function findTurnUrl(
  session: SessionOverview,
  number: number,
  state: StateStore,
  settings: Parameters<typeof findTurn>[3],
  findPage: FindPage,
): Promise<string> {
  const known = state.readSession(session.sessionId);
  if (!known) throw new Error(NOTHING_SENT);
  const { turn, root, destination } = await findTurn(session, (each) => each.number === number, known, settings);
  const { lastLine = 0, sentLine = 0 } = state.read(session.sessionId, destination) ?? {};
  if (turn.prompts[0].line > Math.max(lastLine, sentLine))
    throw new Error(`turn ${number} is still to be sent; the next hook sends it, or ${ownCommand()} backfill`);
  const { id, parentId } = root.trace;
  return turnUrl(await findPage(destination), id, parentId && root.id);
}

/** The project is found with the session's own keys, or the user has named it, or it was found before. */
async function findPageOf(
  destination: string,
  config: DestinationConfig | undefined,
  projectId: string | undefined,
  folder: string,
  shell: NodeJS.ProcessEnv,
) {
  const target = config && findTarget(config);
  const isOwn = target?.id === destination;
  const known = isOwn ? findKnownPage(target, folder) : readProjectPage(folder, destination);
  if (known !== undefined && projectId === undefined) return known;
  if (target === undefined)
    throw new UsageError(`open needs the session's keys once: ${adviseOnKeys(shell, 'set them in the shell')}`);
  if (!isOwn) throw new Error('the session is in another project; set the keys of that project, then open it');
  const { langfuse, name } = target;
  if (!langfuse) throw new Error(`the session was sent to ${name}, which has no pages`);
  return projectId === undefined ? askForProjectPage(langfuse, folder) : saveProject(langfuse, projectId, folder);
}
