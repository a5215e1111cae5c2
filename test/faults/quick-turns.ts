import { setTimeout as sleep } from 'node:timers/promises';
import { appendLines, SESSION, turnLines } from '../support/lines.js';
import { Workplace } from '../support/program.js';
import { StartedNodes } from '../support/started-nodes.js';
import { numbersFrom } from './random.js';

export interface Figures {
  readonly sessions: number;
  readonly turns: number;
  /** Turns that have not arrived when no worker runs any more. Only the end of their session would send them. */
  readonly missing: number;
  readonly sentAgain: number;
}

/** How often the lines that have come since are written. Claude Code does it every 100 ms, later on a busy machine. */
const WRITTEN_EVERY_MS = 300;
const MOST_TURNS = 6;
const LONGEST_TURN_MS = 60;
const LONGEST_PAUSE_MS = 150;
const LONGEST_ANSWER_MS = 250;

/** Plays sessions whose turns follow each other so fast that their hooks start before their lines are written, and their workers meet. */
export async function playQuickTurns(sessions: number, seed: number): Promise<Figures> {
  const random = numbersFrom(seed);
  const sum = { sessions, turns: 0, missing: 0, sentAgain: 0 };
  for (let n = 0; n < sessions; n += 1) {
    const turns = 2 + Math.floor(random() * (MOST_TURNS - 1));
    const sent = await playSession(turns, random);
    sum.turns += turns;
    sum.missing += turns - sent.length;
    sum.sentAgain += sent.filter((times) => times > 1).length;
  }
  return sum;
}

/** Returns how often each turn that arrived was sent. */
async function playSession(turns: number, random: () => number): Promise<number[]> {
  const workplace = await Workplace.open();
  const nodes = new StartedNodes();
  const path = workplace.transcriptOf(SESSION);
  let unwritten: object[] = [];
  const write = () => {
    if (unwritten.length > 0) appendLines(path, ...unwritten);
    unwritten = [];
  };
  const timer = setInterval(write, WRITTEN_EVERY_MS);
  try {
    const launch = (event: string, more: object) => {
      const payload = { session_id: SESSION, transcript_path: path, ...more };
      return nodes.launch(event, payload, { ...workplace.env, CLAUDE_CODE_ENTRYPOINT: 'cli' });
    };
    await launch('SessionStart', { source: 'startup' });
    await nodes.haveEnded();
    workplace.server.misbehave = () => ({ answerDelayMs: random() * LONGEST_ANSWER_MS });
    for (let n = 1; n <= turns; n += 1) {
      const promptId = `p${n}`;
      const [question = {}, answer = {}] = turnLines(n, { promptId });
      unwritten.push(question);
      await sleep(random() * LONGEST_TURN_MS);
      unwritten.push(answer);
      await launch('Stop', { prompt_id: promptId, last_assistant_message: `answer ${n}`, background_tasks: [] });
      if (random() < 0.5) await sleep(random() * LONGEST_PAUSE_MS);
    }
    await nodes.haveEnded();
    return workplace.server.roots.map((root) => workplace.server.timesSent(root));
  } finally {
    clearInterval(timer);
    await nodes.remove();
    await workplace.close();
  }
}
