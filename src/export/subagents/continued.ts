import { dirname, join } from 'node:path';
import { type Failure, otherFailure } from '../../shared/failure.js';
import { Places } from '../../transcript/file/place.js';
import { Originals } from '../../transcript/sessions/originals.js';
import { EntryWriter } from '../entry-writer.js';
import type { ExportRequest } from '../export-request.js';
import { Outbox } from '../outbox.js';
import { RunLookup } from '../run-lookup.js';
import { lockSession, openRequests, RunSettings } from '../session-run.js';
import { startFromTop } from '../start-position.js';
import { NOTHING, sumTallies, type Tally } from '../tally.js';
import { addAgents, type ExportRun } from '../turn.js';
import { Subagents } from './subagents.js';

/** What was sent of agents that another session started, and why something of them is still to be sent. */
export interface Continued {
  readonly sent: Tally;
  readonly failure: Failure | undefined;
}

/** A session that is still exported itself, as after `/clear`, is left to the next event. */
const LOCK_WAIT_MS = 2_000;

export const NOTHING_CONTINUED: Continued = { sent: NOTHING, failure: undefined };

/**
 * Sends what agents of other sessions did in this one: `/clear` and `/branch` begin a session, but do not end agents. Each is sent
 * as a part of the session that started it, under the settings of the run there.
 */
export async function sendContinued(run: ExportRun): Promise<Continued> {
  const { subagents, outbox, budget } = run;
  let all = NOTHING_CONTINUED;
  if (outbox.failure !== undefined || budget.check()) return all;
  const starters = subagents.findStarters();
  // What the session itself has to send never waits for another session.
  if (starters.size > 0) await outbox.flush();
  for (const starter of starters) {
    if (outbox.failure !== undefined || all.failure !== undefined || budget.check()) break;
    const { sent, failure } = await sendAsPartOf(starter, run);
    all = { sent: sumTallies([all.sent, sent]), failure };
  }
  return all;
}

async function sendAsPartOf(sessionId: string, run: ExportRun): Promise<Continued> {
  const { request, context, budget, subagents } = run;
  const { stops, endedAt } = run.writer.known;
  const { running = [], at = 0 } = stops.at(-1) ?? {};
  const deadline = Math.min(context.deadline, Date.now() + LOCK_WAIT_MS);
  const lock = await lockSession({ sessionId, occasion: request.occasion }, { ...context, deadline });
  if (!lock)
    return { sent: NOTHING, failure: otherFailure(`another run was working all the time on session ${sessionId}`) };
  try {
    const entry = context.state.read(sessionId, context.destinationId);
    if (!entry) return NOTHING_CONTINUED;
    const starter: ExportRequest = {
      sessionId,
      path: entry.path ?? join(dirname(request.path), `${sessionId}.jsonl`),
      occasion: request.occasion,
      takesAll: request.takesAll,
      continued: { in: request.path, ended: subagents.ended, running, at, endedAt },
    };
    const lookup = new RunLookup(entry, context.destinationId, new Places(starter.path));
    const session = {
      request: starter,
      context,
      writer: new EntryWriter(entry, starter, context, lookup, lock),
      lookup,
      settings: new RunSettings(context, starter, entry),
      start: startFromTop(entry),
      budget,
      originals: new Originals(starter.path),
      requests: await openRequests(starter, lookup),
    };
    const outbox = new Outbox(session);
    try {
      await addAgents(new Subagents(session).due(), { outbox, budget });
      await outbox.flush();
    } finally {
      session.requests?.close();
    }
    return { sent: outbox.sent, failure: outbox.failure };
  } finally {
    lock.release();
  }
}
