import { lstatSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stop } from '../../state/facts.js';
import type { RunIdentity } from '../../state/runs.js';
import { hashAnswer } from '../../transcript/turns/answer.js';
import type { HookPayload } from './payload.js';

/** How long to wait for the transcript itself: after a quick first answer Stop starts before the file exists. */
const FILE_WAIT_MS = 300;
const FILE_POLL_MS = 10;

export function isStop(event: string | undefined): boolean {
  return event === 'Stop' || event === 'StopFailure';
}

/** What a Stop says, without the answer's words. Undefined if the event ends no turn. */
export function describeStop(payload: HookPayload, run: RunIdentity, at: number, bytes: number): Stop | undefined {
  const { hook_event_name: name, prompt_id: promptId, last_assistant_message: text } = payload;
  const { stop_hook_active: isAfterFeedback = false, background_tasks: tasks = [] } = payload;
  if (!isStop(name) && name !== undefined) return undefined;
  const running = tasks.filter(({ status }) => status === 'running').map(({ id }) => id);
  const answer = isStop(name) && text !== undefined ? hashAnswer(text) : undefined;
  return { kind: 'stop', at, run, bytes, promptId, answer, isAfterFeedback, running };
}

/** Whether an event's transcript is there. After a Stop it can appear a moment later. */
export async function hasTranscript(path: string, stoppedAt = 0): Promise<boolean> {
  for (;;) {
    const file = lstatSync(path, { throwIfNoEntry: false });
    if (file && !(file.isFile() && file.size === 0)) return true;
    const restMs = stoppedAt + FILE_WAIT_MS - Date.now();
    if (restMs <= 0 || restMs > FILE_WAIT_MS) return false;
    await sleep(FILE_POLL_MS);
  }
}
