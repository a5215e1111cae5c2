import { parseCommandLine, parsePositiveNumber, UsageError } from '../../cli/command-line.js';
import { toOneLine } from '../../cli/format.js';
import { ownCommand } from '../../cli/own-command.js';
import { selectSession } from '../../cli/session-selection.js';
import { printStdout } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { type DestinationConfig, readSettings } from '../../config/settings.js';
import { type FoundTurn, findTurn } from '../../export/find-turn.js';
import { findTarget, fingerprint, openDestination } from '../../langfuse/open-destination.js';
import { determineEnding } from '../../observations/build/ending.js';
import { buildRating, type Rating } from '../../observations/build/rating.js';
import { RATING, type TurnScores } from '../../observations/build/scores.js';
import type { Entry } from '../../state/entry.js';
import { isMutedNow } from '../../state/runs.js';
import { StateStore } from '../../state/store.js';
import type { Turn } from '../../transcript/turns/turn.js';

export const HELP = `usage: cc-langfuse rate good|bad [options] [session id or .jsonl path]

Rates the last turn of a session, as the score "${RATING}" in Langfuse. A
second rating replaces the first. If Langfuse cannot be reached, the next hook
sends the rating. Without a session, it takes the one that Claude Code runs the
command in, or else the newest one of the current directory.

  --comment <text>   why; it is redacted, and never sent under
                     CC_LANGFUSE_CAPTURE=metadata
  --turn <n>         another turn than the last one
  --help
`;

const OPTIONS = { comment: { type: 'string' }, turn: { type: 'string' } } as const;
const TIMEOUT_MS = 5_000;
const LOCK_WAIT_MS = 2 * TIMEOUT_MS;

export async function run(args: readonly string[], shell: NodeJS.ProcessEnv): Promise<number> {
  const { values, positionals } = parseCommandLine(args, OPTIONS);
  const [verdict, ...names] = positionals;
  if (verdict !== 'good' && verdict !== 'bad') throw new UsageError('rate: say whether the turn was good or bad');
  const number = parsePositiveNumber('turn', values.turn);
  const comment = values.comment?.trim() || undefined;
  const session = selectSession('rate', names, claudeFolder(shell), shell);
  const { sessionId } = session;
  const { env, optOut } = await readCommandSettings(shell, session.folders[0] ?? process.cwd());
  const { destination: config } = await readSettings(env);
  const folder = stateFolder(env);
  const state = new StateStore(folder);
  const known = state.readSession(sessionId);
  if (!known || optOut !== undefined)
    throw new Error(`the session is not in Langfuse${optOut === undefined ? '' : `: ${optOut}`}`);
  if (isMutedNow(known.mutes)) throw new Error(`the session is muted; ${ownCommand()} unmute ends that`);
  const isRunningHere = shell.CLAUDE_CODE_SESSION_ID === sessionId;
  const isWanted = (turn: Turn) => (number === undefined ? isRateable(turn, isRunningHere) : turn.number === number);
  const found = await findTurn(session, isWanted, known, { env, restrictions: [shell] });
  const { settings, turn } = found;
  if (settings.hold !== undefined) throw new Error(settings.hold.text);
  const lock = await state.lock(sessionId, `${found.destination}.rating`, Date.now() + LOCK_WAIT_MS);
  if (!lock) throw new Error('another rating of the session is being sent; try again');
  const given = { isGood: verdict === 'good', comment, at: Date.now() };
  const { rating, failure } = await giveRating(given, found, config, { state, folder, sessionId }).finally(() =>
    lock.release(),
  );
  const notes = [
    comment !== undefined && rating.comment === undefined ? 'without the comment, because no content is sent' : '',
    failure === undefined ? '' : `it waits for the next hook (${toOneLine(failure)})`,
  ].filter((note) => note !== '');
  await printStdout([`turn ${turn.number} is rated ${verdict}`, ...notes].join('; '));
  return 0;
}

/** Whether a turn is not itself about a rating. The turn in which Claude Code runs the command has not ended. */
function isRateable(turn: Turn, isRunningHere: boolean): boolean {
  const [{ content }] = turn.prompts;
  if (/^(?:\/cc-langfuse:|!\s*cc-langfuse\b)/.test(content)) return false;
  return !(isRunningHere && determineEnding(turn).outcome === 'unfinished');
}

/** Sends a rating whose time is later than that of any earlier one, or keeps it for the next hook. */
async function giveRating(
  given: Rating,
  found: FoundTurn,
  config: DestinationConfig | undefined,
  { state, folder, sessionId }: { readonly state: StateStore; readonly folder: string; readonly sessionId: string },
) {
  const { root, settings, destination } = found;
  const rating = buildRating(root, { ...given, after: state.read(sessionId, destination)?.rated?.[root.id] }, settings);
  if (rating.endTime !== undefined)
    await state.update(sessionId, { rated: { [root.id]: rating.endTime } }, destination);
  const failure = await send(rating, found, config, folder);
  await keep(rating, found, failure, sessionId, state);
  return { rating, failure };
}

/** Returns why the rating could not be sent. */
async function send(
  rating: TurnScores,
  { destination: id }: FoundTurn,
  config: DestinationConfig | undefined,
  folder: string,
): Promise<string | undefined> {
  if (config === undefined || fingerprint(config) !== id) return 'your keys are for another project';
  const destination = openDestination(config, folder);
  try {
    if (!destination.sendScores)
      throw new Error(`the session was sent to ${findTarget(config).name}, which takes no scores`);
    const { refused, failure } = await destination.sendScores([rating], { deadline: Date.now() + TIMEOUT_MS });
    if (refused.length > 0) throw new Error('the server refuses the rating');
    return failure?.text;
  } finally {
    await destination.close();
  }
}

/** Keeps in the state what could not be sent, and forgets what waits from earlier ratings of the turn. */
async function keep(
  rating: TurnScores,
  { destination, root }: FoundTurn,
  failure: string | undefined,
  sessionId: string,
  state: StateStore,
): Promise<void> {
  const { scores = {}, pending } = state.read(sessionId, destination) ?? {};
  const prefix = `${root.id} ${RATING}`;
  const replaced = Object.keys(scores).filter((key) => key.startsWith(prefix));
  if (failure === undefined && replaced.length === 0) return;
  const change: Partial<Entry> = { scores: Object.fromEntries(replaced.map((key) => [key, undefined])) };
  if (failure === undefined) {
    await state.update(sessionId, change, destination);
    return;
  }
  // A name of its own, so that a worker that has just sent an earlier rating does not remove this one.
  const key = `${prefix} ${Date.now()}`;
  await state.update(
    sessionId,
    {
      scores: { ...change.scores, [key]: rating },
      pending: { since: new Date().toISOString(), attempts: 0, reason: 'a rating waits to be sent', ...pending },
      file: undefined,
    },
    destination,
  );
}
