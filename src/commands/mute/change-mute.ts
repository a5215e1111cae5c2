import { basename } from 'node:path';
import { parseCommandLine } from '../../cli/command-line.js';
import { toOneLine } from '../../cli/format.js';
import { selectSession } from '../../cli/session-selection.js';
import { printStdout } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { determineEnding } from '../../observations/build/ending.js';
import { attempt } from '../../shared/attempt.js';
import { BEGINNING } from '../../shared/place.js';
import { endOfSent, newSession } from '../../state/entry.js';
import type { Fact } from '../../state/facts.js';
import { isMutedNow } from '../../state/runs.js';
import { saveStatusLine } from '../../state/status-line.js';
import { StateStore } from '../../state/store.js';
import { Places } from '../../transcript/file/place.js';
import { findTranscripts, projectsFolder } from '../../transcript/sessions/find-transcripts.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { SESSION_ID } from '../../transcript/sessions/related-sessions.js';
import { readAllTurns } from '../../transcript/turns/read-all-turns.js';

/** Mutes a session from its end on, or ends that there. */
export async function changeMute(
  command: 'mute' | 'unmute',
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const { positionals } = parseCommandLine(args, {});
  const { sessionId, path, folders = [], title = '' } = findSession(command, positionals, env);
  const { mayOptOut } = await readCommandSettings(env, folders[0] ?? process.cwd());
  if (command === 'mute' && !mayOptOut) throw new Error('managed settings do not allow it (CC_LANGFUSE_ALLOW_OPT_OUT)');

  const state = new StateStore(stateFolder(env));
  const known = state.readSession(sessionId) ?? newSession(sessionId);
  const { mutes } = known;
  const isMuted = isMutedNow(mutes);
  const shown = `${toOneLine(title) || '(no prompt)'} (${toOneLine(sessionId)})`;
  if (isMuted === (command === 'mute')) {
    printStdout(`${shown} is ${isMuted ? 'already' : 'not'} muted`);
    return 0;
  }
  const { bytes: stoppedAt = 0 } = known.stops.at(-1) ?? {};
  const sentTo = endOfSent(state.readProgress(sessionId).values());
  const underWay =
    path === undefined || isMuted ? undefined : findUnfinishedTurn(path, sessionId, { sentTo, stoppedAt });
  const after = path === undefined ? BEGINNING : new Places(path).at(underWay);
  const fact: Fact = { kind: isMuted ? 'unmute' : 'mute', at: Date.now(), after };
  await state.update(sessionId, { ...(path !== undefined && { path }), facts: [fact] });
  saveStatusLine(stateFolder(env), sessionId, () => state.readNewest(sessionId));
  printStdout(
    isMuted
      ? `unmuted: ${shown}. What was said while it was muted is not sent.`
      : `muted: ${shown}. Nothing more of the session is sent, including the turn under way.`,
  );
  return 0;
}

/**
 * The first byte of the last turn if it waits for a tool, and no hook has said that it is over: nothing more may be written of
 * it, and it would be sent unfinished.
 */
function findUnfinishedTurn(
  path: string,
  sessionId: string,
  { sentTo, stoppedAt }: { readonly sentTo: number; readonly stoppedAt: number },
): number | undefined {
  const last = [...readAllTurns(path, 'main', sessionId)].at(-1);
  if (!last || determineEnding(last).outcome !== 'unfinished') return undefined;
  const isOver = stoppedAt > last.start.offset || last.end <= sentTo;
  return isOver ? undefined : last.prompts[0].offset;
}

/** A session can be muted before there is a transcript, if its whole id is known. */
function findSession(
  command: string,
  positionals: readonly string[],
  env: NodeJS.ProcessEnv,
): Pick<SessionOverview, 'sessionId'> & Partial<SessionOverview> {
  const sessionId = positionals[0] ?? env.CLAUDE_CODE_SESSION_ID ?? '';
  const isNew = SESSION_ID.test(sessionId) && !hasTranscript(sessionId, claudeFolder(env));
  return isNew ? { sessionId } : selectSession(command, positionals, claudeFolder(env), env);
}

function hasTranscript(sessionId: string, folder: string): boolean {
  const paths = attempt(() => [...findTranscripts(projectsFolder(folder), () => {})]) ?? [];
  return paths.some((path) => basename(path) === `${sessionId}.jsonl`);
}
