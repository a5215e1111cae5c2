import { parseOptions, parsePointInTime, parsePositiveNumber, UsageError } from '../../cli/command-line.js';
import {
  describeStrays,
  describeUnsent,
  describeUntraced,
  formatBytes,
  formatMoment,
  toOneLine,
} from '../../cli/format.js';
import { describeCosts, toCostRecord } from '../../cli/format-cost.js';
import { formatSession } from '../../cli/format-session.js';
import { ownCommand } from '../../cli/own-command.js';
import { ProgressLine } from '../../cli/progress-line.js';
import { saveMemory } from '../../cli/save-memory.js';
import { selectSessions } from '../../cli/session-selection.js';
import { cutToWidth, printJson, printStderr, printStdout, style, terminalWidth } from '../../cli/terminal.js';
import { claudeFolder, stateFolder } from '../../config/claude-folder.js';
import { readCleanupDays, readSettingsFiles } from '../../config/claude-settings.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { readSettings } from '../../config/settings.js';
import { type Costs, findSessionCosts } from '../../costs/cost-book.js';
import { readAllUsage } from '../../costs/read-usage.js';
import { deletedAfter, EXPIRING, findUnsent, goesSoon, isUnsent } from '../../export/deletion.js';
import { type SessionState, SessionStates } from '../../export/session-state.js';
import { fingerprint } from '../../langfuse/open-destination.js';
import { createRedactor, type Redact } from '../../observations/redaction/redact.js';
import { attempt } from '../../shared/attempt.js';
import { StateStore } from '../../state/store.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { SessionIndex } from '../../transcript/sessions/session-index.js';
import { readAllTurns } from '../../transcript/turns/read-all-turns.js';
import { choosePrices } from '../cost/price-source.js';
import { ranInRepository } from './here.js';
import { type Match, TextSearch } from './text-search.js';

export const HELP = `usage: cc-langfuse sessions [options]

Lists the newest sessions on disk, and how much of each is in Langfuse. For what
no account of Claude Code includes, it asks Langfuse for its prices at most once
a day, as cost does; nothing but that request leaves.

  --limit <n>       only the n newest, or all (20; all for a search)
  --since <when>    only those last active at or after: 7d, 12h, 2026-11-01
  --here            only those of this directory and of its repository
  --search <text>   instead, list the prompts, answers and tool calls that
                    contain the text; upper and lower case are the same
  --count           also count turns that were not exported; this reads every
                    file of those sessions
  --json            print one JSON array, and nothing else, of {sessionId,
                    title, project, startedAt, lastActivityAt, durationMs,
                    turns, bytes, model, cost: {dollars, listPriceDollars,
                    tokensWithoutPrice}, state, reason, deletedAfter, path};
                    for a search of {sessionId, at, kind, tool?, line}. What is
                    not known is left out. state is exported, partly, pending,
                    excluded, muted, elsewhere (for another project) or not
  --help
`;

const OPTIONS = {
  limit: { type: 'string' },
  since: { type: 'string' },
  here: { type: 'boolean' },
  search: { type: 'string' },
  count: { type: 'boolean' },
  json: { type: 'boolean' },
} as const;

const USUAL_LIMIT = 20;
const ROWS_AT_ONCE = 50;

/** How much of a session is in Langfuse, with the words for it. */
const STATES: { readonly [kind in SessionState['kind']]: string } = {
  exported: 'exported',
  partly: 'partly exported',
  pending: 'pending',
  excluded: 'excluded',
  muted: 'muted',
  elsewhere: 'for another project',
  not: 'not exported',
};

export async function run(args: readonly string[], processEnv: NodeJS.ProcessEnv): Promise<number> {
  const values = parseOptions('sessions', args, OPTIONS, '--search finds text');
  if (values.search === '') throw new UsageError('--search: expected a text');
  if (values.search !== undefined && values.count) throw new UsageError('--search and --count: choose one of them');
  const now = Date.now();
  const limit = parseLimit(values.limit) ?? (values.search === undefined ? USUAL_LIMIT : Number.POSITIVE_INFINITY);
  const since = parsePointInTime('since', values.since, now);
  const { env } = await readCommandSettings(processEnv, process.cwd());
  const settings = await readSettings(env);

  saveMemory();
  const index = new SessionIndex(stateFolder(env));
  const selection = { named: [], project: undefined, since, exclude: [] };
  const found = selectSessions(selection, claudeFolder(env), undefined, index);
  const selected = values.here ? found.filter(ranInRepository(process.cwd())) : found;
  const sessions = selected.slice(0, limit);
  const isAny = since === undefined && !values.here;
  if (sessions.length === 0 && !values.json)
    printStderr(isAny ? 'there are no sessions on disk' : 'no session on disk matches');
  if (values.search !== undefined) {
    index.save();
    await printMatches(sessions, values.search, settings.redact ?? createRedactor([]), values.json);
    return 0;
  }
  const target = settings.destination && fingerprint(settings.destination);
  const finder = new SessionStates(new StateStore(stateFolder(env)), processEnv, target, index);
  const cleanupDays = readCleanupDays(readSettingsFiles(processEnv, process.cwd()));
  const costs = await findCosts(sessions, index, env);
  const listed: Listed[] = [];
  for (const session of sessions) {
    const state = await finder.find(session);
    const turns = values.count && state.kind !== 'exported' ? countTurns(session) : state.turns;
    const goes = isUnsent(state) ? deletedAfter(session, cleanupDays) : undefined;
    const isEndangered = goes !== undefined && goesSoon(session, cleanupDays, now);
    listed.push({ session, state, turns, cost: costs.get(session.sessionId), goes, isEndangered });
  }
  if (values.json) await printJson(listed.map(toJson));
  else
    for (let at = 0; at < listed.length; at += ROWS_AT_ONCE)
      await printStdout(
        listed
          .slice(at, at + ROWS_AT_ONCE)
          .map((each) => formatSession(each.session, describeState(each), each.turns, describeCost(each)))
          .join('\n'),
      );
  const more = selected.length - sessions.length;
  if (more > 0 && values.limit === undefined) printStderr(`and ${more} more; --limit all lists them, too`);
  const unsent = values.json ? undefined : await findUnsent(found, finder, cleanupDays, now);
  index.save();
  if (unsent) printStderr(`${describeUnsent(unsent, cleanupDays, now)}; ${ownCommand()} ${EXPIRING}`);
  return 0;
}

function parseLimit(text: string | undefined): number | undefined {
  return text === 'all' ? Number.POSITIVE_INFINITY : parsePositiveNumber('limit', text);
}

interface Listed {
  readonly session: SessionOverview;
  readonly state: SessionState;
  readonly turns: number | undefined;
  readonly cost: Costs | undefined;
  /** When Claude Code may delete what a backfill would send; undefined if it would send nothing. */
  readonly goes: number | undefined;
  readonly isEndangered: boolean;
}

async function findCosts(
  sessions: readonly SessionOverview[],
  index: SessionIndex,
  env: NodeJS.ProcessEnv,
): Promise<Map<string, Costs>> {
  const wanted = sessions.map(({ path }) => path);
  const progress = new ProgressLine();
  const usage = readAllUsage(claudeFolder(env), stateFolder(env), { wanted, index, onRead: progress.showRead });
  progress.clear();
  return findSessionCosts(usage, (await choosePrices(usage, env)).findPrices);
}

function describeCost({ cost }: Listed): string {
  const text = cost ? describeCosts(cost) : '';
  // That nothing is known needs no mark.
  return text === '?' ? '' : text;
}

function describeState({ state, goes, isEndangered }: Listed): string {
  const reason = explainState(state);
  const why = reason === undefined ? '' : ` (${toOneLine(reason)})`;
  const when = isEndangered && goes !== undefined ? `, deleted after ${formatMoment(goes)}` : '';
  return `${STATES[state.kind]}${why}${when}`;
}

/** What is to be said of a session's state. */
function explainState({ kind, reason, untraced, strays }: SessionState): string | undefined {
  if (kind === 'exported') return strays === 0 ? undefined : describeStrays(strays);
  return reason ?? (untraced === 0 ? undefined : `${describeUntraced(untraced)}; backfill sends them`);
}

/**
 * Counts a session's turns, including those copied from another session. Undefined if the file has no end, or has been deleted since
 * it was listed.
 */
function countTurns({ path, sessionId }: SessionOverview): number | undefined {
  return attempt(() => {
    let count = 0;
    for (const { number } of readAllTurns(path, 'main', sessionId)) count = number;
    return count;
  });
}

function toJson({ session, turns, cost, state, goes }: Listed) {
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
    cost: cost && toCostRecord(cost),
    state: state.kind,
    reason: explainState(state),
    deletedAfter: goes && new Date(goes),
    path,
  };
}

async function printMatches(sessions: readonly SessionOverview[], text: string, redact: Redact, isJson = false) {
  const found: Match[] = [];
  const search = new TextSearch(text, redact);
  const progress = new ProgressLine();
  const total = formatBytes(sessions.reduce((sum, { bytes }) => sum + bytes, 0));
  let read = 0;
  let count = 0;
  for (const session of sessions) {
    try {
      for (const match of search.search(session)) {
        count += 1;
        progress.clear();
        if (isJson) found.push(match);
        else await printStdout(formatMatch(match, text));
      }
    } catch (error) {
      progress.clear();
      printStderr(`${session.path} cannot be read: ${(error as Error).message}`);
    }
    read += session.bytes;
    progress.show(() => `searched ${formatBytes(read)} of ${total}`);
  }
  progress.clear();
  if (isJson) await printJson(found.map(({ at, ...match }) => ({ ...match, at: new Date(at) })));
  else if (count === 0) printStderr('nothing contains that text');
}

function formatMatch({ sessionId, at, kind, tool = kind, line }: Match, text: string): string {
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
