import { realpathSync, statSync } from 'node:fs';
import { claudeFolder } from '../../../config/claude-folder.js';
import { version } from '../../../shared/version.js';
import { findTranscripts, projectsFolder } from '../../../transcript/sessions/find-transcripts.js';
import { readOverview } from '../../../transcript/sessions/overview.js';

export interface ProgramFacts {
  readonly node: { readonly version: string; readonly path: string };
  readonly program: { readonly version: string; readonly path: string };
  /** Of the session that was written to last. */
  readonly claudeCode: { readonly version: string | undefined; readonly sessionId: string } | undefined;
}

export function programFacts(env: NodeJS.ProcessEnv): ProgramFacts {
  return {
    node: { version: process.version, path: realpathSync(process.execPath) },
    program: { version, path: realpathSync(process.argv[1] ?? '') },
    claudeCode: lastSession(claudeFolder(env)),
  };
}

/** The newest may have no prompt yet. */
const LOOKED_AT = 5;

/**
 * Claude Code is not started to be asked: what the name stands for on the path may be anything, and the version that wrote
 * the transcripts is the one that counts, also in desktop apps, which have one of their own.
 */
function lastSession(folder: string): ProgramFacts['claudeCode'] {
  try {
    return [...findTranscripts(projectsFolder(folder), () => {})]
      .map((path) => ({ path, changedAt: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
      .toSorted((a, b) => b.changedAt - a.changedAt)
      .slice(0, LOOKED_AT)
      .map(({ path }) => readOverview(path))
      .find((session) => session?.version !== undefined);
  } catch {
    // no project yet, or none that can be read
    return undefined;
  }
}
