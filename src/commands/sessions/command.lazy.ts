import { parseCommandLine, UsageError } from '../../cli/command-line.js';
import { formatMoment, toOneLine } from '../../cli/format.js';
import { formatSession } from '../../cli/format-session.js';
import { listSessions } from '../../cli/session-selection.js';
import { cutToWidth, printJson, printStderr, printStdout, style, terminalWidth } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { commandEnvironment } from '../../config/claude-settings.js';
import { readSettings } from '../../config/settings.js';
import { fingerprint } from '../../langfuse/endpoint.js';
import { createRedactor, type Redact } from '../../observations/redaction/redact.js';
import { attempt } from '../../shared/attempt.js';
import { type Entry, isForDestination } from '../../state/entry.js';
import { StateStore } from '../../state/store.js';
import { hasMessagesAfter, type SessionOverview } from '../../transcript/sessions/overview.js';
import { readAllTurns } from '../../transcript/turns/read-all-turns.js';
import { type Match, searchToolCalls } from './tool-search.js';

export const HELP = `usage: cc-langfuse sessions [options]

Lists the sessions on disk, newest first, and how much of each is in Langfuse.

  --search <text>   list the tool calls whose input or output contains the text
                    instead; upper and lower case are the same
  --count           also count turns that were not exported; this reads all of
                    those sessions' files
  --json            print one JSON array, and nothing else
  --help
`;

const OPTIONS = {
  search: { type: 'string' },
  count: { type: 'boolean' },
  json: { type: 'boolean' },
} as const;

/** How much of a session is in Langfuse, with the words for it. */
const STATES = { exported: 'exported', partly: 'partly exported', pending: 'pending', not: 'not exported' } as const;
type State = keyof typeof STATES;

export async function run(args: readonly string[], processEnv: NodeJS.ProcessEnv): Promise<number> {
  const { values, positionals } = parseCommandLine(args, OPTIONS);
  if (positionals.length > 0)
    throw new UsageError(`${positionals[0]}: sessions takes no operands; --search finds text`);
  if (values.search === '') throw new UsageError('--search: expected a text');
  if (values.search !== undefined && values.count) throw new UsageError('--search and --count: choose one of them');
  const env = commandEnvironment(processEnv);
  const { redact = createRedactor([]), destination } = await readSettings(env);

  const sessions = listSessions(claudeFolder(env));
  if (sessions.length === 0 && !values.json) printStderr('there are no sessions on disk');
  if (values.search !== undefined) {
    await printMatches(sessions, values.search, redact, values.json);
    return 0;
  }
  const entries = new Map(new StateStore(stateFolder(env), () => {}).all());
  const listed = sessions.map((session) => {
    const entry = entries.get(session.sessionId);
    const state = findExportState(session, entry, destination && fingerprint(destination));
    // Claude Code may have deleted the file since it was listed.
    const turns = values.count && state !== 'exported' ? attempt(() => countTurns(session)) : entry?.turnCount;
    return { session, state, turns };
  });
  if (values.json) await printJson(listed.map(({ session, state, turns }) => toJson(session, state, turns)));
  else for (const { session, state, turns } of listed) await printStdout(formatSession(session, STATES[state], turns));
  return 0;
}

function findExportState({ path, bytes }: SessionOverview, entry?: Entry, destination?: string): State {
  const isElsewhere = entry && destination !== undefined && !isForDestination(entry, destination);
  if (!entry || isElsewhere) return 'not';
  if (entry.pending) return 'pending';
  if (entry.turnCount === 0) return 'not';
  const exportedTo = entry.bytes ?? entry.offset ?? 0;
  return exportedTo >= bytes || !hasMessagesAfter(path, exportedTo) ? 'exported' : 'partly';
}

/** Counts a session's turns, including those copied from another session. */
function countTurns({ path, sessionId }: SessionOverview): number {
  let count = 0;
  for (const { number } of readAllTurns(path, 'main', sessionId)) count = number;
  return count;
}

function toJson(session: SessionOverview, state: State, turns: number | undefined) {
  const { sessionId, path, title, folders, startedAt, lastActivityAt, bytes, model } = session;
  return {
    sessionId,
    title,
    project: folders[0],
    startedAt: startedAt && new Date(startedAt),
    lastActivityAt: new Date(lastActivityAt),
    durationMs: startedAt && lastActivityAt - startedAt,
    turns,
    bytes,
    model,
    state,
    path,
  };
}

async function printMatches(sessions: readonly SessionOverview[], text: string, redact: Redact, isJson = false) {
  const found: Match[] = [];
  let count = 0;
  for (const session of sessions) {
    try {
      for (const match of searchToolCalls(session, text, redact)) {
        count += 1;
        if (isJson) found.push(match);
        else await printStdout(formatMatch(match, text));
      }
    } catch (error) {
      printStderr(`${session.path} cannot be read: ${(error as Error).message}`);
    }
  }
  if (isJson) await printJson(found.map(({ at, ...match }) => ({ ...match, at: new Date(at) })));
  else if (count === 0) printStderr('no tool call contains that text');
}

function formatMatch({ sessionId, at, tool, line }: Match, text: string): string {
  const width = terminalWidth();
  const heading = `${toOneLine(sessionId)}  ${formatMoment(at)}  ${toOneLine(tool)}`;
  const shown = cutToWidth(cutStart(toOneLine(line), text, width - 2), width - 2);
  return `${style('dim', cutToWidth(heading, width))}\n  ${shown}`;
}

/** Cuts the start of a line if the text would not be visible otherwise. */
function cutStart(line: string, text: string, width: number): string {
  const start = line.toLowerCase().indexOf(text.toLowerCase());
  return start + text.length <= width ? line : `…${line.slice(Math.max(0, start - Math.floor(width / 3)))}`;
}
