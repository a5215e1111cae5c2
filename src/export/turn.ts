import { isDeepStrictEqual } from 'node:util';
import { computeScores } from '../observations/build/scores.js';
import { buildTrace } from '../observations/build/trace.js';
import { buildTurn } from '../observations/build/turn.js';
import type { Entry } from '../state/entry.js';
import { NO_SESSION_FACTS, type Turn } from '../transcript/turns/turn.js';
import type { OptionsFor } from './build-options.js';
import { withMarks } from './marks.js';
import type { Outbox } from './outbox.js';
import type { Reading } from './read-turns.js';
import { type Start, takenOverAt } from './start-position.js';
import type { AgentItem, Subagents } from './subagents.js';

/** What a turn is exported with. */
export interface TurnExport {
  readonly start: Start;
  readonly entry: Entry;
  /** Turns that other sessions have exported. */
  readonly family: ReadonlySet<string>;
  readonly subagents: Subagents;
  readonly optionsFor: OptionsFor;
  readonly outbox: Outbox;
  readonly reading: Reading;
}

/**
 * What is to be sent of a turn: the observations that rest on a new line, then what its subagents have, and last, if the
 * turn itself got any line, its root.
 */
export async function addTurn(
  turn: Turn,
  { start, entry, family, subagents, optionsFor, outbox, reading }: TurnExport,
): Promise<void> {
  const last = turn.lineNumbers.at(-1) ?? 0;
  const isNew = last > start.lastLine;
  const isOfFamily = family.has(turn.key);
  const done: Partial<Entry> = {
    last_line: last,
    turn_count: turn.number,
    turn_line: turn.start.line,
    offset: turn.start.offset,
    prompt: turn.key,
    time: turn.inheritedTime,
    session: isDeepStrictEqual(turn.sessionBefore, NO_SESSION_FACTS) ? undefined : turn.sessionBefore,
    sent_line: last,
    agents_since: takenOverAt(entry),
    ...(turn.number === 1 && !turn.copied && { first: turn.key }),
    ...(isOfFamily && { copied_line: last }),
  };
  if (turn.copied || isOfFamily) {
    if (isNew) await outbox.add([{ change: done }]);
    return;
  }
  const options = optionsFor(turn.context.cwd, turn.prompts[0].line);
  const trace = buildTrace(turn, options);
  const started = subagents.see(turn, trace);
  // The last exported turn is read again by every run, and seldom has anything new to be built of.
  const built = isNew ? buildTurn(turn, options, trace) : undefined;
  const news = withMarks(built?.children.filter(({ line }) => line > start.sentLine) ?? [], (line) => ({
    sent_line: line,
  }));
  await outbox.add(news.map(({ observation, mark = {} }) => ({ observation, change: mark })));
  await addAgents(subagents.due(), outbox, reading);
  if (reading.isCutShort) return;
  if (!built) {
    // An agent whose file, or whose call's result, came after its turn had been exported.
    if (started.length > 0) await outbox.add([{ change: subagents.kept(started) }]);
    return;
  }
  const scores = options.scores ? { scores: { [built.root.id]: computeScores(turn, built.root) } } : {};
  await outbox.add([{ observation: built.root, change: { ...done, ...subagents.kept(started), ...scores } }]);
}

/** One agent after the other, as long as there is time to read them. */
export async function addAgents(
  agents: Iterable<readonly AgentItem[]>,
  outbox: Outbox,
  reading: Reading,
): Promise<void> {
  for (const items of agents) {
    await outbox.add(items);
    if (outbox.failure !== undefined) return;
    reading.isCutShort = reading.isOver();
    if (reading.isCutShort) return;
  }
}
