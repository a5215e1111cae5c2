import { type Dirent, readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { attempt } from '../../shared/attempt.js';

/** Where Claude Code keeps its transcripts: one folder for each project, with one file for each session. */
export function projectsFolder(claudeFolder: string): string {
  return join(claudeFolder, 'projects');
}

/** The paths of all main transcripts. Subagents' files are in subfolders, or are named `agent-…`. */
export function* findTranscripts(
  folder: string,
  onUnreadable: (path: string, error: unknown) => void,
): Generator<string, void, undefined> {
  for (const project of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, project.name);
    if (!isProject(project, path)) continue;
    try {
      for (const entry of readdirSync(path, { withFileTypes: true }))
        if (entry.isFile() && entry.name.endsWith('.jsonl') && !entry.name.startsWith('agent-'))
          yield join(path, entry.name);
    } catch (error) {
      // A project that cannot be read must not hide the others.
      onUnreadable(path, error);
    }
  }
}

/** A project's folder may be a link to another disk. A link to another project would show its sessions twice. */
function isProject(entry: Dirent, path: string): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  const target = attempt(() => realpathSync(path));
  if (target === undefined || dirname(target) === realpathSync(dirname(path))) return false;
  return statSync(target).isDirectory();
}
