import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Where Claude Code keeps its transcripts: a folder for each project, a file for each session. */
export function projectsFolder(claudeFolder: string): string {
  return join(claudeFolder, 'projects');
}

/** The paths of all main transcripts. Subagents' files lie in folders below, or beside them under names of their own. */
export function* findTranscripts(
  folder: string,
  onUnreadable: (path: string, error: unknown) => void,
): Generator<string, void, undefined> {
  for (const project of readdirSync(folder, { withFileTypes: true })) {
    if (!project.isDirectory()) continue;
    const path = join(folder, project.name);
    for (const entry of entriesOf(path, onUnreadable)) {
      if (entry.isFile() && entry.name.endsWith('.jsonl') && !entry.name.startsWith('agent-'))
        yield join(path, entry.name);
    }
  }
}

function entriesOf(folder: string, onUnreadable: (path: string, error: unknown) => void) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    // One project that cannot be read does not hide the others.
    onUnreadable(folder, error);
    return [];
  }
}
