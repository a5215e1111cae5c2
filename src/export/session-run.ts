import { findEmail } from '../git/identity.js';
import { readRepositoryConfig, repositoryName } from '../git/repository.js';
import type { Limits } from '../langfuse/destination.js';
import type { BuildOptions } from '../observations/build/trace.js';
import { callerAt } from '../state/callers.js';
import type { EntryWriter } from './entry-writer.js';
import type { ExactRequests } from './exact-requests.lazy.js';
import type { ExportContext, ExportRequest } from './export-request.js';
import type { Start } from './start-position.js';

/** What git knows of a folder. */
type GitFacts = Pick<BuildOptions, 'userId' | 'repository'>;

/** One run through a session. */
export interface SessionRun {
  readonly request: ExportRequest;
  readonly context: ExportContext;
  readonly start: Start;
  readonly writer: EntryWriter;
  readonly budget: ReadingBudget;
  /** Undefined if generations show only what they answer. */
  readonly requests: ExactRequests | undefined;
  /** Read once for each folder. */
  readonly gitFacts: Map<string | undefined, GitFacts>;
}

/** The time there is for reading. Once `check` has found it used up, it stays so, and what is unread is left to the next run. */
export class ReadingBudget {
  readonly #until: number;
  readonly #stop: AbortSignal | undefined;
  isUsedUp = false;

  constructor({ deadline, stop }: Limits) {
    this.#until = (Date.now() + deadline) / 2;
    this.#stop = stop;
  }

  check(): boolean {
    this.isUsedUp ||= this.#stop?.aborted === true || Date.now() >= this.#until;
    return this.isUsedUp;
  }
}

/** Returns the options for a turn: by the folder that it ran in, and by its line, since each line belongs to a run with a caller. */
export function buildOptions(run: SessionRun, folder?: string, line = 0): BuildOptions {
  const { request, context, writer, gitFacts } = run;
  const facts = gitFacts.get(folder) ?? readGitFacts(folder, context.settings);
  gitFacts.set(folder, facts);
  return { ...context.settings, sessionId: request.sessionId, caller: callerAt(writer.callers, line), ...facts };
}

function readGitFacts(folder: string | undefined, settings: ExportContext['settings']): GitFacts {
  const { userId, gitIdentity } = settings;
  const config = folder === undefined ? undefined : readRepositoryConfig(folder);
  const origin = config?.get('remote.origin.url');
  return {
    userId: gitIdentity ? findEmail(gitIdentity, config) : userId,
    repository: origin === undefined ? undefined : repositoryName(origin),
  };
}
