import { lstatSync } from 'node:fs';
import * as z from 'zod/mini';
import type { Closing } from '../../export/export-request.js';
import type { Entry } from '../../state/entry.js';
import { isSameRun, Run, type RunIdentity } from '../../state/runs.js';
import { hashAnswer } from '../../transcript/turns/answer-watcher.js';
import type { HookPayload } from './payload.js';

/** How long to wait for the answer's last line; it is written 7 to 154 ms after Stop hooks start. */
const ANSWER_WAIT_MS = 2_000;

/** What an export needs of a hook event. It has nothing that was said, so that it may be written down and left to another worker. */
export const HookEvent = z.object({
  sessionId: z.string(),
  path: z.string(),
  name: z.optional(z.string()),
  /** When it came, in ms since 1970, and how long the transcript was then. */
  at: z.number(),
  bytes: z.number(),
  promptId: z.optional(z.string()),
  answer: z.optional(z.object({ hash: z.string(), isAfterFeedback: z.boolean() })),
  /** Agents and workflows that Claude Code lists as running. */
  running: z.array(z.string()),
  identity: z.omit(Run, { fromLine: true, toLine: true }),
});
export type HookEvent = z.infer<typeof HookEvent>;

export function describeEvent(payload: HookPayload, identity: RunIdentity, at: number): HookEvent {
  const { session_id: sessionId, transcript_path: path, hook_event_name: name, prompt_id: promptId } = payload;
  const { last_assistant_message: text, stop_hook_active: isAfterFeedback = false, background_tasks: tasks } = payload;
  const bytes = lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const running = (tasks ?? []).filter(({ status }) => status === 'running').map(({ id }) => id);
  const answer = isStop(name) && text !== undefined ? { hash: hashAnswer(text), isAfterFeedback } : undefined;
  return { sessionId, path, name, at, bytes, promptId, answer, running, identity };
}

export function isStop(event: string | undefined): boolean {
  return event === 'Stop' || event === 'StopFailure';
}

/** Which turns of its session are over. If the event is exported late, its own turn may have been sent already. */
export function chooseClosing({ name, answer, promptId, at }: HookEvent, deadline: number, when?: 'late'): Closing {
  if (!isStop(name) && name !== 'SessionEnd' && name !== undefined) return { kind: 'nothing' };
  if (!answer) return { kind: 'everything' };
  const waitUntil = Math.min(at + ANSWER_WAIT_MS, (at + deadline) / 2);
  return { kind: 'answer', ...answer, promptId, waitUntil, mayBeSent: when === 'late' };
}

/**
 * Whether the state knows the event's run, as it was before the event: only then may it be left to another worker, since lines that
 * come meanwhile cannot be taken for its run's.
 */
export function isRecorded({ name, identity }: HookEvent, entry: Entry | undefined): boolean {
  const last = entry?.runs.at(-1);
  return last !== undefined && isSameRun(last, identity) && (last.toLine === undefined || name === 'SessionEnd');
}

/**
 * Whether everything that an event without an answer announced has been sent since. `entry` is about the event's destination. If the
 * answer is known, only the transcript can tell: lines that were written after the event need not be those of its turn.
 */
export function isSettled({ name, answer, bytes }: HookEvent, entry: Entry | undefined): boolean {
  return isStop(name) && !answer && entry !== undefined && !entry.pending && (entry.bytes ?? 0) > bytes;
}
