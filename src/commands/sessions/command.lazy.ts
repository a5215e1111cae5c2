import { parseCommandLine, UsageError } from '../../cli/command-line.js';
import { formatMoment, toOneLine } from '../../cli/format.js';
import { formatSession } from '../../cli/format-session.js';
import { listSessions } from '../../cli/session-selection.js';
import { fitColumn, printStderr, printStdout, style, terminalWidth } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { commandEnvironment } from '../../config/claude-settings.js';
import { readSettings } from '../../config/settings.js';
import { fingerprint } from '../../langfuse/receiver.js';
import { createSanitizer } from '../../observations/content/sanitize.js';
import { createRedactor } from '../../observations/redaction/redact.js';
import { type Entry, mayBeFor } from '../../state/entry.js';
import { StateStore } from '../../state/store.js';
import { hasMessagesAfter, type SessionOverview } from '../../transcript/sessions/overview.js';
import { countTurns, type Found, findInTools } from './tool-search.js';

const HELP = `usage: cc-langfuse sessions [options]

Lists the sessions on disk, of all projects, the newest first, and how much of
each is in Langfuse.

  --search <text>   instead, the tool calls whose input or output has the text,
                    in any case
  --count           count the turns of those, too, that were never exported; it
                    reads every file
  --json            one JSON array on stdout, and nothing else
  --help
`;

const OPTIONS = {
  search: { type: 'string' },
  count: { type: 'boolean' },
  json: { type: 'boolean' },
} as const;

/** How much of a session is in Langfuse. */
type ExportState = 'exported' | 'partly' | 'pending' | 'not';

/** Tells which sessions there are; gives the exit code. */
export async function run(args: readonly string[], processEnv: NodeJS.ProcessEnv): Promise<number> {
  const { values, positionals } = parseCommandLine(args, OPTIONS, HELP);
  if (positionals.length > 0)
    throw new UsageError(`${positionals[0]}: sessions takes no operands; --search finds text`);
  if (values.search === '') throw new UsageError('--search: expected a text');
  if (values.search !== undefined && values.count) throw new UsageError('--search and --count: choose one of them');
  const env = commandEnvironment(processEnv);
  const sessions = listSessions(claudeFolder(env), (path, reason) => printStderr(`${path} cannot be read (${reason})`));
  if (sessions.length === 0 && !values.json) printStderr('there is no session on disk');
  if (values.search !== undefined) return search(sessions, values.search, env, values.json ?? false);
  const { destination: receiver } = await readSettings(env);
  const destination = receiver && fingerprint(receiver);
  const known = new Map(new StateStore(stateFolder(env), () => {}).entries(() => true));
  const listed = sessions.map((session) => {
    const entry = known.get(session.sessionId);
    const state = stateOf(session, entry, destination);
    const isToBeCounted = values.count && state !== 'exported';
    return { session, turns: isToBeCounted ? turnsIn(session) : entry?.turn_count, state };
  });
  if (values.json) await printStdout(`${JSON.stringify(listed.map(documentOf), null, 2)}\n`);
  else
    await printStdout(
      listed.map((each) => `${formatSession({ ...each, state: WORDS[each.state] }).join('\n')}\n`).join(''),
    );
  return 0;
}

function turnsIn(session: SessionOverview): number | undefined {
  try {
    return countTurns(session);
  } catch {
    // gone by now
    return undefined;
  }
}

const WORDS: { readonly [state in ExportState]: string } = {
  exported: 'exported',
  partly: 'partly exported',
  pending: 'pending',
  not: 'not exported',
};

function stateOf(
  { path, bytes }: SessionOverview,
  entry: Entry | undefined,
  destination: string | undefined,
): ExportState {
  const isElsewhere = entry && destination !== undefined && !mayBeFor(entry, destination);
  if (!entry || isElsewhere) return 'not';
  if (entry.pending) return 'pending';
  if (entry.turn_count === 0) return 'not';
  const upTo = entry.bytes ?? entry.offset ?? 0;
  return upTo >= bytes || !hasMessagesAfter(path, upTo) ? 'exported' : 'partly';
}

function documentOf({
  session,
  turns,
  state,
}: {
  session: SessionOverview;
  turns: number | undefined;
  state: ExportState;
}) {
  const { sessionId, path, title, folders, startedAt, bytes, model } = session;
  const last = session.lastActivityAt;
  return {
    sessionId,
    title,
    project: folders[0],
    startedAt: isoTime(startedAt),
    lastActivityAt: isoTime(last),
    durationMs: startedAt === undefined ? undefined : last - startedAt,
    turns,
    bytes,
    model,
    state,
    path,
  };
}

async function search(
  sessions: readonly SessionOverview[],
  text: string,
  env: NodeJS.ProcessEnv,
  isJson: boolean,
): Promise<number> {
  const { redact = createRedactor([]) } = await readSettings(env);
  const sanitizer = createSanitizer(redact);
  const all: Found[] = [];
  let count = 0;
  for (const session of sessions) {
    for (const found of findIn(session, text, sanitizer)) {
      count += 1;
      if (isJson) all.push(found);
      else await printStdout(`${wordsOf(found, text)}\n`);
    }
  }
  if (count === 0 && !isJson) printStderr('no tool call has that text');
  if (isJson)
    await printStdout(
      `${JSON.stringify(
        all.map(({ at, ...found }) => ({ ...found, at: isoTime(at) })),
        null,
        2,
      )}\n`,
    );
  return 0;
}

function* findIn(...[session, text, sanitizer]: Parameters<typeof findInTools>): Generator<Found, void, undefined> {
  try {
    yield* findInTools(session, text, sanitizer);
  } catch (error) {
    printStderr(`${session.path} cannot be read: ${(error as Error).message}`);
  }
}

function wordsOf({ sessionId, at, tool, line }: Found, text: string): string {
  const width = terminalWidth();
  const head = `${toOneLine(sessionId)}  ${formatMoment(at)}  ${toOneLine(tool)}`;
  return `${style('dim', fitColumn(head, width).trimEnd())}\n  ${fitColumn(around(text, toOneLine(line), width - 2), width - 2).trimEnd()}`;
}

/** A line from as far before the text as leaves the text in sight. */
function around(text: string, line: string, width: number): string {
  const place = line.toLowerCase().indexOf(text.toLowerCase());
  return place + text.length <= width ? line : `…${line.slice(Math.max(0, place - Math.floor(width / 3)))}`;
}

function isoTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}
