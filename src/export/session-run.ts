import { readHookSettings } from '../config/folder-settings.js';
import { readSettings, restrict, type Settings, withGivenVariables } from '../config/settings.js';
import type { SettingsReader } from '../config/settings-reader.js';
import { findEmail } from '../git/identity.js';
import { originName, readRepositoryConfig } from '../git/repository.js';
import type { Limits } from '../langfuse/destination.js';
import { memoize } from '../shared/memoize.js';
import type { Entry } from '../state/entry.js';
import type { Lock } from '../state/lock.js';
import { listRuns, type RunIdentity } from '../state/runs.js';
import type { Originals } from '../transcript/sessions/originals.js';
import type { EntryWriter } from './entry-writer.js';
import type { ExactRequests } from './exact-requests.lazy.js';
import type { ExportContext, ExportRequest } from './export-request.js';
import type { RunLookup } from './run-lookup.js';
import type { Start } from './start-position.js';

const BACKFILL_LOCK_WAIT_MS = 60_000;

/** One run through a session. */
export interface SessionRun {
  readonly request: ExportRequest;
  readonly context: ExportContext;
  readonly start: Start;
  readonly writer: EntryWriter;
  readonly lookup: RunLookup;
  readonly settings: RunSettings;
  readonly budget: ReadingBudget;
  /** The transcripts of other sessions that this one's lines, or its agents' files, name. */
  readonly originals: Originals;
  /** Undefined if the generations of all its turns show only what they answer. */
  readonly requests: ExactRequests | undefined;
}

/** Only one run at a time sends a session to a destination. One that waits for another server does not hold it up. */
export function lockSession(
  { sessionId, occasion }: Pick<ExportRequest, 'sessionId' | 'occasion'>,
  { state, destinationId, deadline, stop }: ExportContext,
) {
  const now = Date.now();
  const waits = {
    event: deadline,
    recovery: now,
    live: now,
    backfill: now + BACKFILL_LOCK_WAIT_MS,
  };
  return state.lock(sessionId, destinationId, waits[occasion], stop).catch((error: Error) => {
    // Without a place for the state, every run would send the same again.
    throw new Error(`the state folder cannot be written: ${error.message}`);
  });
}

/**
 * Takes the right to send a session to those of its destinations that seem to be wrong. If another run has it, that destination
 * may answer after all.
 */
export async function lockMistaken(
  sessionId: string,
  known: Entry,
  { state, destinationId }: ExportContext,
): Promise<ReadonlyMap<string, Lock>> {
  const named = listRuns(known).flatMap(({ destination }) => destination ?? []);
  const locks = new Map<string, Lock>();
  for (const destination of new Set(named)) {
    if (destination === destinationId || !state.isMistaken(destination, sessionId)) continue;
    const lock = await state.lock(sessionId, destination, 0);
    if (lock) locks.set(destination, lock);
  }
  return locks;
}

/** Whole requests cost time, and much space in Langfuse: without the setting, their code is not even loaded. */
export async function openRequests({ path }: ExportRequest, lookup: RunLookup) {
  if (!lookup.isGiven('CC_LANGFUSE_INPUT', 'request')) return undefined;
  const { openExactRequests } = await import('./exact-requests.lazy.js');
  return openExactRequests(path);
}

/** What is left of the time after reading is for sending. Reading a single long turn may take more than the usual half. */
const USUAL_SHARE = 0.5;
const LARGEST_SHARE = 0.9;

/**
 * The time there is for reading. It is longer until a new turn has been taken, since without one the next run would read the same
 * lines again. Once `check` has found it used up, it stays so, and what is unread is left to the next run.
 */
export class ReadingBudget {
  readonly #startedAt = Date.now();
  readonly #duration: number;
  readonly #stop: AbortSignal | undefined;
  #share = LARGEST_SHARE;
  isUsedUp = false;

  constructor({ deadline, stop }: Limits) {
    this.#duration = deadline - this.#startedAt;
    this.#stop = stop;
  }

  /** Call once a new turn has been taken: the next run will begin after it. */
  limit(): void {
    this.#share = USUAL_SHARE;
  }

  check(): boolean {
    const until = this.#startedAt + this.#duration * this.#share;
    this.isUsedUp ||= this.#stop?.aborted === true || Date.now() >= until;
    return this.isUsedUp;
  }
}

const RULES = 'CC_LANGFUSE_REDACT_EXTRA';

/** The settings under which turns are sent: those of their own runs, restricted by what their folder says now. */
export class RunSettings {
  readonly #env: NodeJS.ProcessEnv;
  readonly #reader: SettingsReader | undefined;
  readonly #restrictions: readonly NodeJS.ProcessEnv[];
  /** Replace the broken rules for which turns were held. */
  readonly #rules: string | undefined;
  /** Whether an earlier export has held turns because of their redaction rules. */
  readonly #areHeld: boolean;
  readonly #readOnce = memoize(
    (given: NodeJS.ProcessEnv, folder: string | undefined) => this.#read(withGivenVariables(this.#env, given), folder),
    (given, folder) => JSON.stringify([folder, given]),
  );
  readonly #readGitFacts = memoize(readGitFacts, (folder, { userId, gitIdentity }) =>
    JSON.stringify([folder, userId, gitIdentity]),
  );

  constructor(
    { env, settingsReader, restrictions = [] }: Pick<ExportContext, 'env' | 'settingsReader' | 'restrictions'>,
    { run }: Pick<ExportRequest, 'run'>,
    { pending }: Pick<Entry, 'pending'>,
  ) {
    this.#env = env;
    this.#reader = settingsReader;
    this.#restrictions = restrictions;
    this.#rules = run?.given?.[RULES];
    this.#areHeld = pending?.code === 'rules';
  }

  /** Undefined if nothing of the runs may be sent any more. */
  async find(runs: readonly [RunIdentity, ...RunIdentity[]]): Promise<Settings | undefined> {
    const [{ folder, given = {} }, ...others] = runs;
    const all = restrict(given, [...others.map((run) => run.given ?? {}), ...this.#restrictions]);
    const isHeld = this.#areHeld || (await this.#readOnce(all, folder))?.hold !== undefined;
    // If the rules of that time cannot be applied, those of this run replace them.
    const rules = isHeld && this.#rules !== undefined ? { [RULES]: this.#rules } : {};
    return this.#readOnce({ ...all, ...rules }, folder);
  }

  /** What a turn or an agent is built with, by its run and by the folder that it worked in. */
  buildOptions([run]: readonly [RunIdentity, ...RunIdentity[]], settings: Settings, folder?: string) {
    const { parent, seed, metadata, experiment } = run;
    return { ...settings, ...this.#readGitFacts(folder, settings), caller: { parent, seed, metadata, experiment } };
  }

  async #read(env: NodeJS.ProcessEnv, folder: string | undefined): Promise<Settings | undefined> {
    if (folder === undefined) return readSettings(env);
    const there = await readHookSettings(env, folder, this.#reader);
    return there.optOut === undefined ? readSettings(there.env) : undefined;
  }
}

function readGitFacts(folder: string | undefined, { userId, gitIdentity }: Settings) {
  const config = folder === undefined ? undefined : readRepositoryConfig(folder);
  return {
    userId: gitIdentity ? findEmail(gitIdentity, config) : userId,
    repository: originName(config),
  };
}
