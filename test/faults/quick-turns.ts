import { setTimeout as sleep } from 'node:timers/promises';
import { LaunchedHooks, sessionId } from '../support/launched-hooks.js';
import { appendLines, assistant, at, user } from '../support/lines.js';
import { numbersFrom } from './random.js';

interface Figures {
  readonly sessions: number;
  readonly turns: number;
  /** Turns that have not arrived when no worker runs any more. Only the end of their session would send them. */
  readonly missing: number;
  readonly sentAgain: number;
}

/** How often the lines that have come since are written. Claude Code does it every 100 ms, later on a busy machine. */
const WRITTEN_EVERY_MS = 300;
/** More than there are workers that send at a time. */
const MOST_SESSIONS_AT_ONCE = 6;
const MOST_TURNS = 6;
const LONGEST_TURN_MS = 60;
const LONGEST_PAUSE_MS = 150;
const LONGEST_ANSWER_MS = 250;

/** Plays sessions whose turns follow each other so fast that their hooks start before their lines are written, and their workers meet. */
export async function playQuickTurns(sessions: number, seed: number): Promise<Figures> {
  const random = numbersFrom(seed);
  const sum = { sessions, turns: 0, missing: 0, sentAgain: 0 };
  for (let played = 0; played < sessions; ) {
    const atOnce = Math.min(1 + Math.floor(random() * MOST_SESSIONS_AT_ONCE), sessions - played);
    const { turns, sent } = await playAtOnce(atOnce, random);
    played += atOnce;
    sum.turns += turns;
    sum.missing += turns - sent.length;
    sum.sentAgain += sent.filter((times) => times > 1).length;
  }
  return sum;
}

/** Returns how many turns there were, and how often each one that arrived was sent. */
async function playAtOnce(sessions: number, random: () => number): Promise<{ turns: number; sent: number[] }> {
  const hooks = await LaunchedHooks.open();
  const { server } = hooks.workplace;
  try {
    const ids = Array.from({ length: sessions }, (_, n) => sessionId(n));
    for (const id of ids) await launch(id, 'SessionStart', { source: 'startup' }, hooks);
    await hooks.workplace.haveEnded();
    server.misbehave = () => ({ answerDelayMs: random() * LONGEST_ANSWER_MS });
    const turns = await Promise.all(ids.map((id) => playSession(id, random, hooks)));
    await hooks.workplace.haveEnded();
    const sent = server.roots.map((root) => server.timesSent(root));
    return { turns: turns.reduce((total, each) => total + each), sent };
  } finally {
    await hooks.close();
  }
}

/** Returns the number of turns. */
async function playSession(id: string, random: () => number, hooks: LaunchedHooks): Promise<number> {
  const turns = 2 + Math.floor(random() * (MOST_TURNS - 1));
  // Versions that name no prompts write all lines before their hooks start.
  const namesPrompts = random() < 0.8;
  let unwritten: object[] = [];
  const write = () => {
    if (unwritten.length > 0) appendLines(hooks.workplace.transcriptOf(id), ...unwritten);
    unwritten = [];
  };
  const timer = setInterval(write, WRITTEN_EVERY_MS);
  try {
    for (let n = 1; n <= turns; n += 1) {
      const [uuid, promptId] = [`${id}-${n}`, namesPrompts ? `${id}-p${n}` : undefined];
      const [event, more] = random() < 0.8 ? ['Stop', {}] : ['StopFailure', { isApiErrorMessage: true }];
      unwritten.push(user(`question ${n}`, { uuid, promptId, timestamp: at(n * 10) }));
      await sleep(random() * LONGEST_TURN_MS);
      unwritten.push(assistant(`${id}-m${n}`, `answer ${n}`, { parentUuid: uuid, timestamp: at(n * 10 + 5), ...more }));
      if (!namesPrompts) write();
      await launch(id, event, { prompt_id: promptId, last_assistant_message: `answer ${n}` }, hooks);
      if (random() < 0.5) await sleep(random() * LONGEST_PAUSE_MS);
    }
    await sleep(random() * WRITTEN_EVERY_MS);
    write();
  } finally {
    clearInterval(timer);
  }
  return turns;
}

function launch(session: string, event: string, more: object, { workplace, nodes }: LaunchedHooks) {
  const payload = { session_id: session, transcript_path: workplace.transcriptOf(session), ...more };
  return nodes.launch(event, payload, workplace.env);
}
