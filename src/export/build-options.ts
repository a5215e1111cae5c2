import { findEmail } from '../git/identity.js';
import { readRepositoryConfig, repositoryName } from '../git/repository.js';
import type { BuildOptions } from '../observations/build/trace.js';
import { callerAt } from '../state/callers.js';
import type { GitFacts, SessionRun } from './session-run.js';

/** Returns the options for a turn: by the folder that it ran in, and by its line, since each line belongs to a run with a caller. */
export function buildOptions(run: SessionRun, folder?: string, line = 0): BuildOptions {
  const { request, context, writer, gitFacts } = run;
  const facts = gitFacts.get(folder) ?? readGitFacts(folder, context.settings);
  gitFacts.set(folder, facts);
  return { ...context.settings, sessionId: request.sessionId, caller: callerAt(writer.callers, line), ...facts };
}

function readGitFacts(folder: string | undefined, settings: SessionRun['context']['settings']): GitFacts {
  const { userId, gitIdentity } = settings;
  const config = folder === undefined ? undefined : readRepositoryConfig(folder);
  const origin = config?.get('remote.origin.url');
  return {
    userId: gitIdentity ? findEmail(gitIdentity, config) : userId,
    repository: origin === undefined ? undefined : repositoryName(origin),
  };
}
