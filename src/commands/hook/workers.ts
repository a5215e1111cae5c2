import type { ExportContext } from '../../export/export-request.js';
import { attempt } from '../../shared/attempt.js';
import { exportLeft } from './export-events.js';
import type { HookEvent } from './hook-event.js';
import { leaveEvent } from './left-events.js';
import { type Post, takePost, takeSlot } from './worker-locks.js';

interface Entrance {
  /** Whether another worker does the work. */
  readonly isLeft: boolean;
  readonly post?: Post | undefined;
  /** The event's file, if it was left and another worker may see it. */
  readonly file?: string | undefined;
}

/** Lets a worker work, or leaves its event to those at work. One whose event cannot be left works beside them. */
export async function enter(folder: string, event: HookEvent): Promise<Entrance> {
  const take = () => takePost(folder, event.identity.destination ?? '', event.sessionId).catch(() => undefined);
  const post = await take();
  const file = post ? undefined : attempt(() => leaveEvent(folder, event));
  if (file === undefined) return { isLeft: false, post };
  const second = await take();
  return { isLeft: second === undefined, post: second, file };
}

/** Exports what was left while the last worker that could have seen it let go of its post. */
export async function exportLeftMeanwhile(folder: string, context: ExportContext): Promise<void> {
  const tried = new Set<string>();
  for (;;) {
    const slot = await takeSlot(folder, context.destinationId);
    if (!slot) return;
    try {
      if ((await exportLeft(folder, 'left event', context, tried)) === 0) return;
    } finally {
      slot.release();
    }
  }
}
