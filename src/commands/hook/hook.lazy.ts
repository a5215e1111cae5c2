import { existsSync, lstatSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasNoTranscripts, NO_TRANSCRIPTS, stateFolder } from '../../config/claude-folder.js';
import { addTelemetryVariables, readHookSettings } from '../../config/folder-settings.js';
import type { OwnVariables } from '../../config/own-variables.lazy.js';
import { type DestinationConfig, describingVariables, readSettings, type Settings } from '../../config/settings.js';
import type { Closing, ExportContext, ExportRequest } from '../../export/export-request.js';
import { IDLE_MS } from '../../export/read-turns.js';
import { exportSession } from '../../export/session.js';
import { isHeldByRules } from '../../export/session-run.js';
import type { Destination } from '../../langfuse/destination.js';
import { describeRefusal, fingerprint } from '../../langfuse/endpoint.js';
import { isRefusal } from '../../langfuse/http/client.js';
import { openDestination } from '../../langfuse/open-destination.js';
import { attempt } from '../../shared/attempt.js';
import { type Log, openLog } from '../../shared/log.js';
import type { RunIdentity } from '../../state/runs.js';
import { StateStore } from '../../state/store.js';
import { findPreviousSession } from '../../transcript/sessions/related-sessions.js';
import { saveRefusal } from './credential-notice.js';
import { markRunClosed, markRunOpen } from './open-runs.js';
import { type HookPayload, parsePayload } from './payload.js';
import { recordEnd, recordOptOut, recordStart } from './record-run.js';
import { findDeleted, findRecoverable } from './recovery.js';
import { readStdin } from './stdin.js';

/** How long to wait for the answer's last line; it is written 7 to 154 ms after Stop hooks start. */
const ANSWER_WAIT_MS = 2_000;
/** How long to wait for the transcript itself: after a quick first answer Stop starts before the file exists. */
const FILE_WAIT_MS = 300;
const FILE_POLL_MS = 10;

/** With `claude -p`, SessionEnd follows Stop at once: if Stop has just failed, SessionEnd must not take as long again. */
const AFTER_FAILURE_MS = 1_500;
const JUST_NOW_MS = 15_000;

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
  readonly folder: string;
  readonly startedAt: number;
  readonly deadline: number;
  readonly worker: Worker | undefined;
  readonly log: Log;
}

/** Exports what Langfuse does not have yet of the session that stdin names. Never fails and prints nothing. */
export async function hook({ env: passed, ignored }: OwnVariables, worker?: Worker): Promise<void> {
  const startedAt = Date.now();
  const env = addTelemetryVariables(passed, passed.CLAUDE_PROJECT_DIR || process.cwd());
  const read = await readSettings(env);
  const settings = { ...read, problems: [...ignored, ...read.problems] };
  const folder = stateFolder(env);
  const log = openLog(folder, settings);
  try {
    const deadline = startedAt + (worker?.forMs ?? settings.timeoutMs);
    const text = await readStdin(deadline);
    // Claude Code has killed the hook before it could pass on its payload.
    if (worker && text === '') return;
    await handleEvent({ payload: parsePayload(text), env, settings, folder, startedAt, deadline, worker, log });
  } catch (error) {
    log.error((error as Error).message);
  } finally {
    await log.flush();
  }
}

async function handleEvent(run: HookRun): Promise<void> {
  const { payload, env, settings, folder, worker, log } = run;
  const { session_id: sessionId, transcript_path: path, hook_event_name: event } = payload;
  for (const problem of settings.problems) log.warn(problem);
  const state = new StateStore(folder, (keptAs) =>
    log.error('the state file was corrupt and has been set aside', { keptAs }),
  );
  const workedIn = env.CLAUDE_PROJECT_DIR || payload.cwd;
  const there = workedIn === undefined ? undefined : await readHookSettings(env, workedIn);
  if (there?.optOut !== undefined) {
    log.debug(`nothing is exported: ${there.optOut}`);
    await recordOptOut(payload, state, worker?.transcriptBytes);
    return markRunClosed(folder, sessionId);
  }
  // If the folder cannot be written, the state cannot be either, and that is reported.
  if (event !== 'SessionEnd') attempt(() => markRunOpen(folder, sessionId));
  const { destination: config, caller } = settings;
  const identity: RunIdentity = {
    destination: config && fingerprint(config),
    given: describingVariables(there?.env ?? env),
    folder: workedIn,
    ...caller,
  };
  if (event === 'SessionStart') return recordStart(payload, identity, state, worker?.transcriptBytes);
  if (!config || identity.destination === undefined) {
    saveProblem(run);
    // Its turns wait for a destination.
    if (!state.read(sessionId)) await recordStart({ ...payload, source: 'startup' }, identity, state);
    if (event === 'SessionEnd') await recordEnd({ sessionId, path }, state, identity);
    return;
  }
  return exportEvent(run, { ...identity, destination: identity.destination }, config, state);
}

/** Exports the event's session, then what other sessions have left. */
async function exportEvent(
  run: HookRun,
  identity: RunIdentity & { readonly destination: string },
  config: DestinationConfig,
  state: StateStore,
): Promise<void> {
  const { payload, env, folder, log } = run;
  const { session_id: sessionId, transcript_path: path, hook_event_name: event } = payload;
  const destination = await openDestination(config, folder);
  const { destination: destinationId } = identity;
  const context: ExportContext = { state, destination, destinationId, env, deadline: findDeadline(run, state), log };
  const end = async () => event === 'SessionEnd' && recordEnd({ sessionId, path }, state, identity);
  try {
    await end();
    const isDone = await exportOwnSession(run, identity, context);
    // The export may have found that the run began without a SessionStart.
    await end();
    if (event === 'SessionEnd') markRunClosed(folder, sessionId);
    // If the server is at fault, the turns of other sessions will not get through either.
    if (isDone || destination.isHealthy) await recoverOthers(run, state, context);
    const entry = attempt(() => state.read(sessionId, destinationId));
    saveRefusalOf(run, config, destination, entry?.pending?.reason);
  } finally {
    await destination.close();
  }
}

/** Lets the next hook say in the terminal why nothing is sent: the rules for redaction, or the keys, or what prints them. */
function saveRefusalOf(run: HookRun, config: DestinationConfig, { lastStatus }: Destination, reason = ''): void {
  const { settings, folder, env } = run;
  const isHeld = isHeldByRules(reason) || reason.startsWith('CC_LANGFUSE_SECRET_KEY_COMMAND');
  const hold = settings.hold ?? (isHeld ? reason : undefined);
  if (hold !== undefined) saveRefusal(folder, hold, env);
  else if (lastStatus !== undefined)
    saveRefusal(folder, isRefusal(lastStatus) ? describeRefusal(config, lastStatus) : undefined, env);
}

function findDeadline({ payload, startedAt, deadline, worker }: HookRun, state: StateStore): number {
  if (payload.hook_event_name !== 'SessionEnd' || worker) return deadline;
  const known = state.read(payload.session_id);
  const hasFailed = known?.pending !== undefined && known.pending.attempts > 0;
  const hasJustFailed = hasFailed && Date.now() - Date.parse(known.updated) < JUST_NOW_MS;
  return hasJustFailed ? Math.min(deadline, startedAt + AFTER_FAILURE_MS) : deadline;
}

/** Exports the session that this one took over from, then the session itself; returns whether nothing is left to be sent. */
async function exportOwnSession(
  { payload, startedAt }: HookRun,
  identity: RunIdentity,
  context: ExportContext,
): Promise<boolean> {
  const { session_id: sessionId, transcript_path: path, hook_event_name: event, prompt_id: promptId } = payload;
  if (!(await hasTranscript(path, isStop(event) ? startedAt + FILE_WAIT_MS : startedAt))) {
    // A session that ended before its first prompt has no transcript.
    if (event !== 'SessionEnd') context.log.warn(explainNoTranscript(path, context.env), { file: path });
    return true;
  }
  await exportPrevious(payload, identity, { ...context, deadline: (startedAt + context.deadline) / 2 });
  const sessionEnded = event === 'SessionEnd';
  const tasks = payload.background_tasks ?? [];
  const running = new Set(tasks.filter(({ status }) => status === 'running').map(({ id }) => id));
  const agents = { running, sessionEnded, includeLegacyFiles: sessionEnded };
  const closing = chooseClosing(payload, startedAt, context.deadline);
  const run = { identity, promptId, claims: 'own turn' } as const;
  const own = { sessionId, path, occasion: 'event', closing, agents, run, adopts: true } as const;
  return (await exportAndLog(own, context)) === 'done';
}

async function hasTranscript(path: string, waitUntil: number): Promise<boolean> {
  for (;;) {
    const file = lstatSync(path, { throwIfNoEntry: false });
    if (file && !(file.isFile() && file.size === 0)) return true;
    if (Date.now() >= waitUntil) return false;
    await sleep(FILE_POLL_MS);
  }
}

function explainNoTranscript(path: string, env: NodeJS.ProcessEnv): string {
  if (existsSync(path)) return 'nothing is sent, because the transcript is empty';
  return hasNoTranscripts(env)
    ? `nothing is sent, because with ${NO_TRANSCRIPTS} Claude Code writes no transcript`
    : 'nothing is sent, because there is no transcript; with --no-session-persistence Claude Code writes none';
}

function isStop(event: string | undefined): boolean {
  return event === 'Stop' || event === 'StopFailure';
}

/**
 * Exports the session that the transcript says it continues, unless this session has been exported before. If no hook has
 * recorded either, its last turn was traced if this session continues it without a pause, since then it was the same process.
 */
async function exportPrevious(
  { session_id: sessionId, transcript_path: path }: HookPayload,
  identity: RunIdentity,
  context: ExportContext,
): Promise<void> {
  const { state } = context;
  // If the transcript or the state cannot be read, the export of the session itself reports why.
  const previous = attempt(() =>
    (state.read(sessionId)?.turnCount ?? 0) > 0 ? undefined : findPreviousSession(path, sessionId),
  );
  if (!previous) return;
  const isKnown = state.read(previous.sessionId) !== undefined;
  if (!isKnown && (state.read(sessionId) || !wasInterrupted(previous.path, path))) return;
  await recordEnd(previous, state);
  const agents = { running: new Set<string>(), sessionEnded: true, includeLegacyFiles: true };
  const whole = { ...previous, occasion: 'event', closing: { kind: 'everything' }, agents, adopts: true } as const;
  // What started this run holds for its own session alone.
  const { parent: _, seed: __, metadata: ___, ...shared } = identity;
  const run = { identity: shared, claims: 'last turn' } as const;
  await exportAndLog(isKnown ? whole : { ...whole, run }, context);
  if (!isKnown) await recordEnd(previous, state);
}

/** Whether a session was being written when the other one began. */
function wasInterrupted(previousPath: string, path: string): boolean {
  const [before, now] = [lstatSync(previousPath), lstatSync(path)];
  return before.mtimeMs >= (now.birthtimeMs || now.mtimeMs) - IDLE_MS;
}

function chooseClosing(payload: HookPayload, startedAt: number, deadline: number): Closing {
  const { hook_event_name: event, last_assistant_message: text, prompt_id: promptId } = payload;
  if (!isStop(event) && event !== 'SessionEnd' && event !== undefined) return { kind: 'nothing' };
  if (!isStop(event) || text === undefined) return { kind: 'everything' };
  const waitUntil = Math.min(startedAt + ANSWER_WAIT_MS, (startedAt + deadline) / 2);
  return { kind: 'answer', text, promptId, isAfterFeedback: payload.stop_hook_active ?? false, waitUntil };
}

/** Exports what other sessions still have to be sent, under the settings of their own runs. */
async function recoverOthers({ payload }: HookRun, state: StateStore, context: ExportContext): Promise<void> {
  const { destination, destinationId, deadline, log } = context;
  const agents = { running: new Set<string>(), sessionEnded: false, includeLegacyFiles: false };
  const own = { sessionId: payload.session_id, path: payload.transcript_path };
  for (const session of findRecoverable(state, own, destinationId, Date.now() - IDLE_MS)) {
    if (Date.now() >= deadline) return;
    log.debug('recovering', { session: session.sessionId });
    const request = { ...session, occasion: 'recovery', closing: { kind: 'nothing' }, agents } as const;
    const result = await exportAndLog(request, context);
    // If the server is at fault, it will not accept the others either.
    if (result === 'unsent' && !destination.isHealthy) return;
  }
  const deleted = findDeleted(state, Date.now());
  if (deleted.length > 0) await state.remove(deleted);
  state.tidy();
}

/** Lets the next hook say in the terminal why nothing is sent. That keys are missing, it sees itself. */
function saveProblem({ settings, folder, env }: HookRun): void {
  const problem = settings.problems.find((each) => /^\w*(?:URL|HOST|HEADERS|COMMAND): /.test(each));
  if (problem !== undefined) saveRefusal(folder, problem, env);
}

/** A failure is logged and never holds up Claude Code. What is `unsent`, the state keeps; what is `broken` is on this machine. */
async function exportAndLog(request: ExportRequest, context: ExportContext): Promise<'done' | 'unsent' | 'broken'> {
  const { sessionId: session, path: file } = request;
  const { log } = context;
  try {
    const { sent, failure } = await exportSession(request, context);
    if (failure !== undefined) log.warn(failure, { session, file });
    log.debug('exported', { session, observations: sent.observations });
    return failure === undefined ? 'done' : 'unsent';
  } catch (error) {
    log.error((error as Error).message, { session, file });
    return 'broken';
  }
}
