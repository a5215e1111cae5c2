import { lstatSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod/mini';
import type { Closing } from '../../export/export-request.js';
import type { Claims } from '../../export/ledger.js';
import { RunIdentity } from '../../state/runs.js';
import { hashAnswer } from '../../transcript/turns/answer-watcher.js';
import type { HookPayload } from './payload.js';

/** How long to wait for the answer's last line; it is written 7 to 154 ms after Stop hooks start. */
const ANSWER_WAIT_MS = 2_000;
/** How long to wait for the transcript itself: after a quick first answer Stop starts before the file exists. */
const FILE_WAIT_MS = 300;
const FILE_POLL_MS = 10;

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
  identity: RunIdentity,
});
export type HookEvent = z.infer<typeof HookEvent>;

export function describeEvent(payload: HookPayload, identity: RunIdentity, at: number, measured?: number): HookEvent {
  const { session_id: sessionId, transcript_path: path, hook_event_name: name, prompt_id: promptId } = payload;
  const { last_assistant_message: text, stop_hook_active: isAfterFeedback = false, background_tasks: tasks } = payload;
  const bytes = measured ?? lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const running = (tasks ?? []).filter(({ status }) => status === 'running').map(({ id }) => id);
  const answer = isStop(name) && text !== undefined ? { hash: hashAnswer(text), isAfterFeedback } : undefined;
  return { sessionId, path, name, at, bytes, promptId, answer, running, identity };
}

export function isStop(event: string | undefined): boolean {
  return event === 'Stop' || event === 'StopFailure';
}

/** Which turns of its session are over. If the event is exported late, its own turn may have been sent already. */
export function chooseClosing(event: HookEvent, deadline: number, when?: 'late'): Closing {
  const { name, answer, promptId, at, bytes } = event;
  // Another run may resume the session before this is exported.
  if (name === 'SessionEnd') return { kind: 'everything', upTo: bytes };
  if (!isStop(name) && name !== undefined) return { kind: 'nothing' };
  if (!answer) return { kind: 'everything', upTo: when === 'late' ? bytes : undefined };
  const waitUntil = Math.min(at + ANSWER_WAIT_MS, (at + deadline) / 2);
  return { kind: 'answer', ...answer, promptId, waitUntil, mayBeSent: when === 'late' };
}

/** Whether the event's transcript is there. */
export async function hasTranscript({ name, path, at }: HookEvent): Promise<boolean> {
  const waitUntil = isStop(name) ? at + FILE_WAIT_MS : at;
  for (;;) {
    const file = lstatSync(path, { throwIfNoEntry: false });
    if (file && !(file.isFile() && file.size === 0)) return true;
    if (Date.now() >= waitUntil) return false;
    await sleep(FILE_POLL_MS);
  }
}

/** Which turn belongs to the event's run even if nobody saw the run begin: only what a Stop ends. */
export function chooseClaims({ name, promptId, bytes }: HookEvent): Claims {
  if (!isStop(name)) return { kind: 'nothing' };
  return promptId === undefined ? { kind: 'last turn', before: bytes } : { kind: 'prompt', promptId };
}
