import { readdirSync } from 'node:fs';
import { join } from 'node:path';

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
    if (!project.isDirectory()) continue;
    const path = join(folder, project.name);
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
