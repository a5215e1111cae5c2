import { setTimeout as sleep } from 'node:timers/promises';
import { LangfuseServer } from '../support/langfuse-server.js';
import { LaunchedHooks, sessionId, stopOf } from '../support/launched-hooks.js';
import { appendTurn } from '../support/lines.js';
import { numbersFrom } from './random.js';

interface Figures {
  readonly sessions: number;
  readonly turns: number;
  /** Turns for the other server that have not arrived while the first one hung. */
  readonly heldUp: number;
  /** Turns that have not arrived when no worker runs any more. */
  readonly missing: number;
  readonly sentAgain: number;
}

const MOST_SESSIONS_AT_ONCE = 3;
const MOST_TURNS = 6;
const LONGEST_WAIT_MS = 20_000;

/** Plays sessions of which some turns are for a server that hangs, and the others for one that works. */
export async function playHanging(sessions: number, seed: number): Promise<Figures> {
  const random = numbersFrom(seed);
  const sum = { sessions, turns: 0, heldUp: 0, missing: 0, sentAgain: 0 };
  for (let played = 0; played < sessions; ) {
    const atOnce = Math.min(1 + Math.floor(random() * MOST_SESSIONS_AT_ONCE), sessions - played);
    played += atOnce;
    for (const [name, count] of Object.entries(await playAtOnce(atOnce, random))) sum[name as keyof Played] += count;
  }
  return sum;
}

type Played = Omit<Figures, 'sessions'>;

async function playAtOnce(sessions: number, random: () => number): Promise<Played> {
  const hooks = await LaunchedHooks.open();
  const { server: hanging } = hooks.workplace;
  const working = await LangfuseServer.start();
  try {
    const { release } = hanging.hang();
    const counts = { hanging: 0, working: 0 };
    for (let n = 1; n <= MOST_TURNS; n += 1) {
      for (let session = 0; session < sessions; session += 1) {
        const which = random() < 0.5 ? 'hanging' : 'working';
        counts[which] += 1;
        const { url } = which === 'hanging' ? hanging : working;
        await stop(sessionId(session), n, url, hooks);
      }
    }
    const until = Date.now() + LONGEST_WAIT_MS;
    while (working.roots.length < counts.working && Date.now() < until) await sleep(25);
    const heldUp = counts.working - working.roots.length;
    release();
    await hooks.workplace.haveEnded();
    const sent = [hanging, working].flatMap((server) => server.roots.map((root) => server.timesSent(root)));
    const turns = counts.hanging + counts.working;
    return { turns, heldUp, missing: turns - sent.length, sentAgain: sent.filter((times) => times > 1).length };
  } finally {
    await hooks.close();
    await working.stop();
  }
}

/** The nth turn of a session, in a process of its own, which is traced to a server. */
async function stop(session: string, n: number, url: string, { workplace, nodes }: LaunchedHooks): Promise<void> {
  const transcript = workplace.transcriptOf(session);
  appendTurn(transcript, n, { promptId: `p${n}` });
  const payload = { session_id: session, transcript_path: transcript, ...stopOf(n) };
  await nodes.launch('Stop', payload, { ...workplace.env, LANGFUSE_BASE_URL: url });
}
