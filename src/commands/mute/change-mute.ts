import { parseCommandLine } from '../../cli/command-line.js';
import { toOneLine } from '../../cli/format.js';
import { selectSession } from '../../cli/session-selection.js';
import { printStdout } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { isMutedNow } from '../../state/runs.js';
import { saveStatusLine } from '../../state/status-line.js';
import { StateStore } from '../../state/store.js';
import { countLines } from '../../transcript/file/lines.js';

/** Mutes a session from its next line on, or ends that at its last line. */
export async function changeMute(
  command: 'mute' | 'unmute',
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const { positionals } = parseCommandLine(args, {});
  const { sessionId, path, folders, title = '' } = selectSession(command, positionals, claudeFolder(env), env);
  const { mayOptOut } = await readCommandSettings(env, folders[0] ?? process.cwd());
  if (command === 'mute' && !mayOptOut) throw new Error('managed settings do not allow it (CC_LANGFUSE_ALLOW_OPT_OUT)');

  const state = new StateStore(stateFolder(env), () => {});
  const mutes = state.read(sessionId)?.mutes;
  const open = isMutedNow(mutes) ? mutes?.at(-1) : undefined;
  const isMuted = open !== undefined;
  const shown = `${toOneLine(title) || '(no prompt)'} (${toOneLine(sessionId)})`;
  if (isMuted === (command === 'mute')) {
    printStdout(`${shown} is ${isMuted ? 'already' : 'not'} muted`);
    return 0;
  }
  const lines = countLines(path);
  await state.update(sessionId, {
    path,
    mutes: [open ? { ...open, toLine: Math.max(lines, open.fromLine) } : { fromLine: lines + 1 }],
  });
  saveStatusLine(stateFolder(env), sessionId, () => state.read(sessionId));
  printStdout(
    open
      ? `unmuted: ${shown}. What was said while it was muted is not sent.`
      : `muted: ${shown}. Nothing is sent of what follows, nor of a turn that is under way.`,
  );
  return 0;
}
