import { lstatSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { stateFolder } from '../../config/claude-folder.js';
import { describingVariables, readSessionSettings, readSettings, type Settings } from '../../config/settings.js';
import { Courier } from '../../export/delivery.js';
import { type Closing, IDLE_MS } from '../../export/read-turns.js';
import { type ExportTools, exportSession, type SessionExport } from '../../export/session.js';
import { describeRefusal, fingerprint } from '../../langfuse/endpoint.js';
import { openDestination } from '../../langfuse/open-destination.js';
import type { Caller } from '../../observations/model.js';
import { type Log, openLog } from '../../shared/log.js';
import { withStart } from '../../state/caller.js';
import { type Entry, mayBeFor } from '../../state/entry.js';
import { StateStore } from '../../state/store.js';
import { countLines } from '../../transcript/file/lines.js';
import { findPreviousSession } from '../../transcript/sessions/related-sessions.js';
import { keepRefusal } from './credential-notice.js';
import { type HookInput, parseHookInput } from './payload.js';
import { forgettable, recoverable } from './recovery.js';
import { readStdin } from './stdin.js';

/** How long the answer's last line is waited for; it comes 7 to 154 ms after Stop hooks start. */
const ANSWER_WAIT_MS = 2_000;
/** The file itself comes with a session's first lines: a quick first answer is there before it. */
const FILE_WAIT_MS = 300;
const FILE_POLL_MS = 10;

/** With `claude -p` SessionEnd comes right behind Stop: where that run has just failed, this one must not take as long again. */
const AFTER_A_FAILURE_MS = 1_500;
const JUST_NOW_MS = 15_000;

/** Exports what a session has that Langfuse has not. Whatever happens, it ends well and prints nothing. */
export async function hook(env: NodeJS.ProcessEnv, workerMs?: number): Promise<void> {
  const startedAt = Date.now();
  const settings = await readSettings(env);
  const folder = stateFolder(env);
  const log = openLog(folder, settings);
  try {
    const deadline = startedAt + (workerMs ?? settings.timeoutMs);
    const isWorker = workerMs !== undefined;
    const payload = await readStdin(deadline);
    // Claude Code has killed the hook before it could hand over.
    if (isWorker && payload === '') return;
    await exportTurns(parseHookInput(payload), settings, { env, folder, startedAt, deadline, isWorker, log });
  } catch (error) {
    log.error(String(error instanceof Error ? error.message : error));
  } finally {
    await log.flush();
  }
}

interface Run {
  readonly env: NodeJS.ProcessEnv;
  readonly folder: string;
  readonly startedAt: number;
  readonly deadline: number;
  readonly isWorker: boolean;
  readonly log: Log;
}

async function exportTurns(input: HookInput, settings: Settings, run: Run) {
  const { env, folder, startedAt, log } = run;
  for (const problem of settings.problems) log.warn(problem);
  const { destination: receiver } = settings;
  if (!receiver) return;
  const { session_id: sessionId, hook_event_name: event } = input;
  const store = new StateStore(folder, (keptAs) =>
    log.error('the state file was corrupt, it is set aside', { keptAs }),
  );
  const destination = fingerprint(receiver);
  if (event === 'SessionStart') return beginSession(input, store, { destination, caller: settings.caller, env });
  const isRepeated = event === 'SessionEnd' && !run.isWorker && hasJustFailed(store.read(sessionId));
  const deadline = isRepeated ? Math.min(run.deadline, startedAt + AFTER_A_FAILURE_MS) : run.deadline;
  const sender = await openDestination(receiver, folder);
  const courier = new Courier(sender);
  const toolsUntil: ToolsUntil = (end, described = { options: settings, given: describingVariables(env) }) => ({
    store,
    ...courier.delivery(() => end),
    waitUntil: end,
    // Half of the time is for reading.
    readUntil: (Date.now() + end) / 2,
    ...described,
    destination,
    log,
  });
  try {
    const { caller } = settings;
    const isDone = await exportOwn(input, store, toolsUntil, { startedAt, deadline, destination, caller, log });
    // Where the server is at fault, no other session's turns will go through.
    if (isDone || sender.isHealthy) await recover(input, store, toolsUntil, { env, deadline, destination, log });
    keepRefusal(folder, sender.lastStatus, (status) => describeRefusal(receiver, status), env);
  } finally {
    await courier.close();
  }
}

/** Makes a session known, and what has started the run that begins. */
async function beginSession(
  input: HookInput,
  store: StateStore,
  { destination, caller, env }: Pick<OwnRun, 'destination' | 'caller'> & Pick<Run, 'env'>,
) {
  const { session_id: sessionId, transcript_path: path } = input;
  const known = store.read(sessionId);
  const { callers: callersBefore = [] } = known ?? {};
  const callers = withStart(callersBefore, caller, () => linesBefore(input));
  const news = callers === callersBefore ? {} : { callers };
  const isNews = !known || known.ended || known.backfilled || known.destination !== destination || known.path !== path;
  const begun = { path, destination, given: describingVariables(env), ended: false, backfilled: undefined };
  if (isNews || news.callers) await store.update(sessionId, { ...begun, ...news });
}

interface OwnRun extends Pick<Run, 'startedAt' | 'deadline' | 'log'> {
  readonly destination: string;
  readonly caller: Caller;
}

/** How a session begins in which no run was before. */
const BEGINNINGS = ['startup', 'clear', 'fork'];

/** What the runs before a SessionStart have written. */
function linesBefore({ source = '', transcript_path: path }: HookInput): number {
  const isResumed = !BEGINNINGS.includes(source) && lstatSync(path, { throwIfNoEntry: false })?.isFile();
  return isResumed ? countLines(path) : 0;
}

/** What the session has that was not sent, and before it, what the one has that it took over from. Whether all went well. */
async function exportOwn(
  input: HookInput,
  store: StateStore,
  toolsUntil: ToolsUntil,
  { startedAt, deadline, destination, caller, log }: OwnRun,
): Promise<boolean> {
  const { session_id: sessionId, transcript_path: path, hook_event_name: event } = input;
  if (!(await hasLines(path, isAnswer(event) ? startedAt + FILE_WAIT_MS : startedAt))) {
    // A session that ended before its first prompt has none.
    if (event !== 'SessionEnd') log.warn('the transcript is missing or empty', { file: path });
    return true;
  }
  const previous = previousSession(path, sessionId, store);
  if (previous && wasTraced(previous.path, path, store.read(previous.sessionId), destination)) {
    const halfTime = startedAt + (deadline - startedAt) / 2;
    const over = { running: new Set<string>(), areOver: true, mayBeBeside: true };
    const whole = { ...previous, occasion: 'event', closing: { kind: 'everything' }, agents: over } as const;
    await exportAndLog(whole, toolsUntil(halfTime));
  }
  const closing = closingOf(input, startedAt, deadline);
  const areOver = event === 'SessionEnd';
  const agents = { running: runningOf(input), areOver, mayBeBeside: areOver };
  return exportAndLog({ sessionId, path, occasion: 'event', closing, agents, caller }, toolsUntil(deadline));
}

async function hasLines(path: string, waitUntil: number): Promise<boolean> {
  for (;;) {
    const file = lstatSync(path, { throwIfNoEntry: false });
    if (file && !(file.isFile() && file.size === 0)) return true;
    if (Date.now() >= waitUntil) return false;
    await sleep(FILE_POLL_MS);
  }
}

function isAnswer(event: string | undefined): boolean {
  return event === 'Stop' || event === 'StopFailure';
}

function hasJustFailed(entry: Entry | undefined): boolean {
  return entry?.pending !== undefined && Date.now() - Date.parse(entry.updated) < JUST_NOW_MS;
}

/** What an export needs that is to end at a moment; of a session that another run left, with the settings that it had. */
type ToolsUntil = (end: number, described?: Pick<ExportTools, 'options' | 'given'>) => ExportTools;

/** Brings what other sessions still have to be sent. None of them stands in the way of another. */
async function recover(
  { session_id: own }: HookInput,
  store: StateStore,
  toolsUntil: ToolsUntil,
  { env, deadline, destination, log }: Pick<Run, 'env' | 'deadline' | 'log'> & { destination: string },
) {
  const scope = { sessionId: own, destination, idleBefore: Date.now() - IDLE_MS };
  for (const { sessionId, path, given } of recoverable(store, scope)) {
    if (Date.now() >= deadline) return;
    log.debug('recovering', { session: sessionId });
    const described = given && (await readSessionSettings(given, env));
    const agents = { running: new Set<string>(), areOver: false, mayBeBeside: false };
    const what = { sessionId, path, occasion: 'recovery', closing: { kind: 'nothing' }, agents } as const;
    await exportAndLog(what, { ...toolsUntil(deadline, described), waitUntil: Date.now() });
  }
  const gone = forgettable(store, Date.now());
  if (gone.length > 0) await store.remove(gone);
  store.tidy();
}

/** Where the transcript, or the state, cannot be read there is none; the export of the session itself says why. */
function previousSession(path: string, sessionId: string, store: StateStore) {
  try {
    // Once a turn of its own has been exported, the one before has been seen to.
    const isBegun = (store.read(sessionId)?.turn_count ?? 0) > 0;
    return isBegun ? undefined : findPreviousSession(path, sessionId);
  } catch {
    return undefined;
  }
}

/**
 * Whether the session before ran with tracing on, and for this destination. One that the state does not know did so where
 * it went over into this one without a pause: it was the same process.
 */
function wasTraced(previousPath: string, path: string, known: Entry | undefined, destination: string): boolean {
  if (known) return mayBeFor(known, destination) && (!known.ended || known.pending !== undefined);
  const [before, now] = [lstatSync(previousPath), lstatSync(path)];
  return before.mtimeMs >= (now.birthtimeMs || now.mtimeMs) - IDLE_MS;
}

function closingOf(
  { hook_event_name: event, last_assistant_message: text, prompt_id: promptId }: HookInput,
  startedAt: number,
  deadline: number,
): Closing {
  const isStop = isAnswer(event);
  if (!isStop && event !== 'SessionEnd' && event !== undefined) return { kind: 'nothing' };
  if (!isStop || text === undefined) return { kind: 'everything' };
  return {
    kind: 'answer',
    text,
    promptId,
    waitUntil: Math.min(startedAt + ANSWER_WAIT_MS, (startedAt + deadline) / 2),
  };
}

function runningOf({ background_tasks: tasks = [] }: HookInput): Set<string> {
  return new Set(tasks.flatMap(({ id, status }) => (status === 'running' ? [id] : [])));
}

/** What fails is logged and stays to be sent: it never stands in the way of another session, or of Claude Code. */
async function exportAndLog(what: SessionExport, tools: ExportTools): Promise<boolean> {
  const { sessionId: session, path: file } = what;
  try {
    const { sent, failure } = await exportSession(what, tools);
    if (failure !== undefined) tools.log.warn(failure, { session, file });
    tools.log.debug('exported', { session, observations: sent.observations });
    return failure === undefined;
  } catch (error) {
    tools.log.error(error instanceof Error ? error.message : String(error), { session, file });
    return false;
  }
}
