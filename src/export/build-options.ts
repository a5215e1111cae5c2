import { findEmail, type GitIdentity } from '../git/identity.js';
import { readRepositoryConfig, repositoryName } from '../git/repository.js';
import type { BuildOptions, TraceSettings } from '../observations/build/trace.js';
import { type Callers, callerAt } from '../state/callers.js';

export interface SessionSettings extends TraceSettings {
  /** Set when the user is identified by git's e-mail address. */
  readonly gitIdentity?: GitIdentity | undefined;
}

/** Returns the options for a turn: by the folder that it ran in, and by its line, which tells the run that it belongs to. */
export type OptionsFor = (folder: string | undefined, line?: number) => BuildOptions;

/** Reads what git knows of a folder only once. */
export function buildOptionsByFolder(
  { sessionId, callers }: { readonly sessionId: string; readonly callers: Callers },
  { gitIdentity, ...settings }: SessionSettings,
): OptionsFor {
  const known = new Map<string | undefined, ReturnType<typeof readGitFacts>>();
  return (folder, line = 0) => {
    const facts = known.get(folder) ?? readGitFacts(folder, settings.userId, gitIdentity);
    known.set(folder, facts);
    return { ...settings, sessionId, caller: callerAt(callers, line), ...facts };
  };
}

function readGitFacts(folder: string | undefined, userId: string | undefined, identity: GitIdentity | undefined) {
  const config = folder === undefined ? undefined : readRepositoryConfig(folder);
  const origin = config?.get('remote.origin.url');
  return {
    userId: identity ? findEmail(identity, config) : userId,
    repository: origin === undefined ? undefined : repositoryName(origin),
  };
}
