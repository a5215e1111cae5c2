import { existsSync, lstatSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasNoTranscripts, NO_TRANSCRIPTS, stateFolder } from '../../config/claude-folder.js';
import { addTelemetryVariables, readHookSettings } from '../../config/folder-settings.js';
import type { OwnVariables } from '../../config/own-variables.lazy.js';
import type { ProblemKind } from '../../config/problem.js';
import {
  type DestinationConfig,
  describingVariables,
  isMuteSet,
  isOfServer,
  readSettings,
  type Settings,
} from '../../config/settings.js';
import { SettingsReader } from '../../config/settings-reader.js';
import type { ExportContext } from '../../export/export-request.js';
import { IDLE_MS } from '../../export/read-turns.js';
import { fingerprint, openDestination } from '../../langfuse/open-destination.js';
import { attempt } from '../../shared/attempt.js';
import type { FailureCode } from '../../shared/failure.js';
import { type Log, openLog } from '../../shared/log.js';
import type { Entry } from '../../state/entry.js';
import type { Stop } from '../../state/facts.js';
import { type Lock, nameProcess } from '../../state/lock.js';
import { listRuns, type RunIdentity } from '../../state/runs.js';
import { saveStatusLine } from '../../state/status-line.js';
import { StateStore } from '../../state/store.js';
import { findPreviousSession } from '../../transcript/sessions/related-sessions.js';
import { saveRefusal } from './credential-notice.js';
import { exportAndLog } from './export-and-log.js';
import { describeStop, hasTranscript, isStop } from './hook-event.js';
import { markRunClosed, markRunOpen } from './open-runs.js';
import { type HookPayload, PROMPT_EVENT, parsePayload } from './payload.js';
import { recordEnd, recordMute, recordOptOut, recordStart } from './record-run.js';
import { findRecoverable, removeDeleted } from './recovery.js';
import { isWrongUrl, ServerHealth } from './server-health.js';
import { readStdin } from './stdin.js';
import { exportUrgent, takeWorkerLocks } from './workers.js';

const RUN_WAIT_MS = 1_000;
const RUN_POLL_MS = 10;

/** What a run in the background knows, besides the payload. */
export interface Worker {
  readonly forMs: number;
  /** How long the transcript was when the event came. It may have grown since. */
  readonly transcriptBytes: number | undefined;
}

interface HookRun {
  readonly payload: HookPayload;
  readonly env: NodeJS.ProcessEnv;
  readonly settings: Settings;
  readonly settingsReader: SettingsReader;
  readonly folder: string;
  readonly startedAt: number;
  readonly deadline: number;
  readonly worker: Worker | undefined;
  readonly log: Log;
}

/** Exports the session that stdin names, as far as Langfuse does not have it yet. Never fails and prints nothing. */
export async function hook({ env: passed, ignored, reader }: OwnVariables, worker?: Worker): Promise<void> {
  const startedAt = Date.now();
  const settingsReader = reader ?? new SettingsReader();
  const env = addTelemetryVariables(passed, passed.CLAUDE_PROJECT_DIR || process.cwd(), settingsReader);
  const read = await readSettings(env);
  const settings = { ...read, problems: [...ignored, ...read.problems] };
  const folder = stateFolder(env);
  const log = openLog(folder, settings);
  try {
    const deadline = startedAt + (worker?.forMs ?? settings.timeoutMs);
    const text = await readStdin(deadline);
    // Claude Code has killed the hook before it could pass on its payload.
    if (worker && text === '') return;
    const payload = parsePayload(text);
    if (payload.hook_event_name === PROMPT_EVENT) return await startFollower(text, env, settings);
    await handleEvent({ payload, env, settings, settingsReader, folder, startedAt, deadline, worker, log });
  } catch (error) {
    log.error((error as Error).message);
  } finally {
    await log.flush();
  }
}

/** A follower always runs in the background, even if Claude Code waits for this process. */
async function startFollower(payload: string, env: NodeJS.ProcessEnv, { live }: Settings): Promise<void> {
  if (!live) return;
  const { startInBackground } = await import('./detach.lazy.js');
  await startInBackground('follow', process.argv[1] ?? '', payload, env);
}

async function handleEvent(run: HookRun): Promise<void> {
  const { payload, env, settings, folder, worker, log } = run;
  const { session_id: sessionId, hook_event_name: event } = payload;
  for (const { text } of settings.problems) log.warn(text);
  const state = new StateStore(folder, (keptAs) =>
    log.error('the progress of a session could not be read, so it is sent again', { keptAs }),
  );
  const workedIn = env.CLAUDE_PROJECT_DIR || payload.cwd;
  const there = workedIn === undefined ? undefined : await readHookSettings(env, workedIn, run.settingsReader);
  for (const { text } of there?.problems ?? []) log.warn(text);
  if (there?.optOut !== undefined) {
    log.debug(`nothing is exported: ${there.optOut}`);
    await recordOptOut(payload, state, worker?.transcriptBytes);
    return markRunClosed(folder, sessionId);
  }
  // If the folder cannot be written, the state cannot be either, and that is reported.
  if (event !== 'SessionEnd') attempt(() => markRunOpen(folder, sessionId));
  const { destination: config } = settings;
  const identity = identifyRun(run, workedIn, there?.env ?? env);
  // Where opting out is not allowed, `there` has the mute of managed settings alone.
  if (isMuteSet(identity.given)) await recordMute(payload, identity, state, worker?.transcriptBytes);
  if (event === 'SessionStart') return recordStart(payload, identity, state, worker?.transcriptBytes);
  if (!config || identity.destination === undefined) {
    saveProblem(run);
    if (event === 'SessionEnd') await recordEnd(payload, state, identity);
    return;
  }
  return exportEvent(run, { ...identity, destination: identity.destination }, config, state);
}

/** The run of Claude Code that the event comes from; `given` has the variables that describe and restrict it. */
function identifyRun({ env, settings }: HookRun, folder: string | undefined, given: NodeJS.ProcessEnv): RunIdentity {
  const { destination, caller } = settings;
  return {
    destination: destination && fingerprint(destination),
    given: describingVariables(given),
    folder,
    process: Number(env.CLAUDE_PID) > 0 ? nameProcess(Number(env.CLAUDE_PID)) : undefined,
    ...caller,
  };
}

/** Exports the event's session, then what other sessions have left. A worker leaves it to another process that is at work already. */
async function exportEvent(
  run: HookRun,
  identity: RunIdentity & { readonly destination: string },
  config: DestinationConfig,
  state: StateStore,
): Promise<void> {
  const { payload, folder, log, worker } = run;
  const { session_id: sessionId } = payload;
  const { destination: destinationId } = identity;
  const recorded = await recordEvent(run, identity, state);
  const locks = worker ? await takeWorkerLocks(folder, { destination: destinationId, sessionId }, state) : undefined;
  if (worker && !locks) {
    await watchBudget(run);
    log.debug('left to a worker that is at work', { session: sessionId });
    return;
  }
  const destination = openDestination(config, folder);
  const health = new ServerHealth(run, destination, destinationId);
  const { env, settingsReader } = run;
  const context = { state, destination, destinationId, env, settingsReader, deadline: health.deadline, log };
  try {
    const isDone = await exportOwnSession(run, identity, recorded, context, locks?.session);
    await watchBudget(run);
    saveStatusLine(folder, sessionId, () => state.read(sessionId, destinationId));
    health.save();
    // If the server is at fault, the turns of other sessions will not get through either.
    const isUseful = isDone || destination.health.isHealthy;
    if (isUseful) await recoverOthers(run, state, context);
    locks?.slot.release();
    if (locks && isUseful) await exportUrgent(folder, context);
    health.save();
    const entry = isDone ? undefined : attempt(() => state.read(sessionId, destinationId));
    saveNotice(run, context, entry?.pending);
  } finally {
    locks?.session.release();
    locks?.slot.release();
    health.close();
    await destination.close();
  }
}

/** Nobody waits for a worker. When the session has been exported, its transcript has the whole answer, and maybe the next turn. */
async function watchBudget({ payload, env, folder, settings: { budget }, worker }: HookRun): Promise<void> {
  const { session_id: sessionId, transcript_path: path, hook_event_name: event, prompt_id: promptId } = payload;
  if (!budget || !worker || !isStop(event)) return;
  const { BudgetWatch } = await import('./budget.lazy.js');
  new BudgetWatch({ sessionId, budget, env, folder }).look(path, true, promptId);
}

/** What the event says. */
interface Recorded {
  readonly stop?: Stop | undefined;
  /** How long the transcript was. */
  readonly bytes: number;
  /** Whether an earlier turn of the session has been exported, if that is known. */
  readonly wasExported?: boolean;
}

/** Writes down what the event says before anything else is done: this process may be killed. */
async function recordEvent(
  { payload, folder, startedAt, worker }: HookRun,
  identity: RunIdentity,
  state: StateStore,
): Promise<Recorded> {
  const { session_id: sessionId, transcript_path: path, hook_event_name: name } = payload;
  const bytes = worker?.transcriptBytes ?? lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const stop = describeStop(payload, identity, startedAt, bytes);
  const session = stop && (await state.update(sessionId, { path, facts: [stop] }, identity.destination));
  if (name !== 'SessionEnd') return { stop, bytes, wasExported: session?.first !== undefined };
  if (!worker && bytes > 0) await waitForRun(sessionId, state, startedAt);
  if (await recordEnd(payload, state, identity)) markRunClosed(folder, sessionId);
  return { bytes };
}

/** In a quick headless session, the worker of SessionStart can be slower than SessionEnd in front. */
async function waitForRun(sessionId: string, state: StateStore, startedAt: number): Promise<void> {
  const isKnown = () => {
    const known = attempt(() => state.readSession(sessionId));
    return known !== undefined && listRuns(known).length > 0;
  };
  while (!isKnown() && Date.now() < startedAt + RUN_WAIT_MS) await sleep(RUN_POLL_MS);
}

/** Whether only the user can do something about it. */
const IS_FOR_USER: { readonly [code in FailureCode]: boolean } = { rules: true, 'key command': true, other: false };

/** Lets the next hook say in the terminal why nothing is sent: the rules for redaction, the keys or what prints them, or the URL. */
function saveNotice(
  { settings, folder, env }: HookRun,
  { destination, destinationId }: ExportContext,
  pending: Entry['pending'],
): void {
  const { trouble, hasAnswered } = destination.health;
  const isForUser = pending?.code !== undefined && IS_FOR_USER[pending.code];
  const hold = settings.hold?.text ?? (isForUser ? pending.reason : undefined);
  if (hold !== undefined) saveRefusal(folder, hold, env);
  else if (trouble && (trouble.kind === 'refusal' || isWrongUrl(folder, destinationId)))
    saveRefusal(folder, trouble.text, env);
  else if (hasAnswered) saveRefusal(folder, undefined, env);
}

/** Exports the session that this one took over from, then the session itself; returns whether nothing is left to be sent. */
async function exportOwnSession(
  { payload, startedAt }: HookRun,
  identity: RunIdentity,
  { stop, bytes, wasExported = false }: Recorded,
  context: ExportContext,
  lock: Lock | undefined,
): Promise<boolean> {
  const { session_id: sessionId, transcript_path: path, hook_event_name: name } = payload;
  if (bytes === 0 && !(await hasTranscript(path, isStop(name) ? startedAt : undefined))) {
    // A session that ended before its first prompt has no transcript.
    if (name !== 'SessionEnd') context.log.warn(explainNoTranscript(path, context.env), { file: path });
    if (stop) await context.state.update(sessionId, { doneStops: [stop] }, context.destinationId);
    return true;
  }
  if (!wasExported) await exportPrevious(payload, { ...context, deadline: (startedAt + context.deadline) / 2 });
  const own = { run: identity, replacesFailedDestination: true, includeLegacyFiles: name === 'SessionEnd' };
  return (await exportAndLog({ sessionId, path, occasion: 'event', ...own }, context, lock)) === 'done';
}

function explainNoTranscript(path: string, env: NodeJS.ProcessEnv): string {
  if (existsSync(path)) return 'nothing is sent, because the transcript is empty';
  return hasNoTranscripts(env)
    ? `nothing is sent, because with ${NO_TRANSCRIPTS} Claude Code writes no transcript`
    : 'nothing is sent, because there is no transcript; with --no-session-persistence Claude Code writes none';
}

/** Exports the session that the transcript says it continues, unless this session has been exported before. */
async function exportPrevious(
  { session_id: sessionId, transcript_path: path }: HookPayload,
  context: ExportContext,
): Promise<void> {
  const { state } = context;
  // If the transcript or the state cannot be read, the export of the session itself reports why.
  const previous = attempt(() =>
    [...state.readProgress(sessionId).values()].some(({ turnCount }) => turnCount > 0)
      ? undefined
      : findPreviousSession(path, sessionId),
  );
  // If no hook has seen that session, nothing says that it was traced.
  if (!previous || state.readSession(previous.sessionId) === undefined) return;
  await recordEnd({ session_id: previous.sessionId, transcript_path: previous.path }, state);
  await exportAndLog(
    { ...previous, occasion: 'event', includesOpen: true, replacesFailedDestination: true, includeLegacyFiles: true },
    context,
  );
}

/** Exports what other sessions still have to be sent, under the settings of their own runs. */
async function recoverOthers({ payload, folder }: HookRun, state: StateStore, context: ExportContext): Promise<void> {
  const { destination, destinationId, deadline, log } = context;
  const own = { sessionId: payload.session_id, path: payload.transcript_path };
  for (const session of findRecoverable(folder, state, own, destinationId, Date.now() - IDLE_MS)) {
    if (Date.now() >= deadline) return;
    log.debug('recovering', { session: session.sessionId });
    const result = await exportAndLog({ ...session, occasion: 'recovery' }, context);
    // If the server is at fault, it will not accept the others either.
    if (result === 'unsent' && !destination.health.isHealthy) return;
  }
  removeDeleted(folder, state, Date.now());
}

/** The next hook sees by itself that keys are missing. */
const IS_TOLD: { readonly [kind in ProblemKind]: boolean } = {
  missing: false,
  'bad value': true,
  'bad rule': true,
  'no effect': true,
  ignored: true,
  hidden: false,
};

/** Lets the next hook say in the terminal why nothing is sent. */
function saveProblem({ settings, folder, env }: HookRun): void {
  const problem = settings.problems.find(({ kind, variable }) => IS_TOLD[kind] && isOfServer(variable));
  if (problem) saveRefusal(folder, problem.text, env);
}
