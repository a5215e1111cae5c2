import { emailOf, type GitIdentity } from '../git/identity.js';
import { repositoryName } from '../git/remote.js';
import { repositoryConfig } from '../git/repository.js';
import type { BuildOptions, TraceSettings } from '../observations/build/trace.js';
import type { Callers } from '../state/caller.js';

export interface SessionSettings extends TraceSettings {
  /** Where the user is known by the e-mail address that git has. */
  readonly gitIdentity?: GitIdentity | undefined;
}

/** What the turns of a session are built with that ran in a folder: what git knows there is read once. */
export type OptionsIn = (folder: string | undefined) => BuildOptions;

export function optionsByFolder(
  session: { readonly sessionId: string; readonly callers: Callers },
  { gitIdentity, ...settings }: SessionSettings,
): OptionsIn {
  const known = new Map<string | undefined, BuildOptions>();
  return (folder) => {
    const options = known.get(folder) ?? {
      ...settings,
      ...session,
      ...gitFactsOf(folder, settings.userId, gitIdentity),
    };
    known.set(folder, options);
    return options;
  };
}

function gitFactsOf(folder: string | undefined, userId: string | undefined, identity: GitIdentity | undefined) {
  const config = folder === undefined ? undefined : repositoryConfig(folder);
  const origin = config?.get('remote.origin.url');
  return {
    userId: identity ? emailOf(identity, config) : userId,
    repository: origin === undefined ? undefined : repositoryName(origin),
  };
}
