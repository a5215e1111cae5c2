import { ClaudeHome } from '../test/real/claude-home.js';
import { print } from '../test/real/headless.js';
import { type Script, says, text } from '../test/real/replies.js';
import { Terminal } from '../test/real/terminal.js';
import { TracedHome } from '../test/real/traced-home.js';
import { alternate } from './measure.js';

/** How long the user waits, in ms. */
export interface Waits {
  readonly withHook: number;
  readonly without: number;
}

/** The background worker must have ended before the next run is timed. */
const REST_MS = 400;

/** Times `claude -p` with an API that answers at once. */
export async function timePrint(claude: string, runs: number): Promise<Waits> {
  const homes = await openHomes(1);
  const timed = (home: ClaudeHome) => async () => {
    const startedAt = performance.now();
    await print(claude, home, promptOf(0));
    return performance.now() - startedAt;
  };
  try {
    const { traced, untraced } = homes;
    return await alternate({ withHook: timed(traced.claude), without: timed(untraced) }, runs, REST_MS);
  } finally {
    await homes.close();
  }
}

/** Times a turn in the terminal with an API that answers at once, from Enter until the next prompt can be typed. */
export async function timeTerminalTurn(claude: string, runs: number): Promise<Waits> {
  const homes = await openHomes(runs + 1);
  const withHook = await Terminal.open(claude, homes.traced.claude);
  const without = await Terminal.open(claude, homes.untraced);
  const timed = (terminal: Terminal) => {
    let turn = 0;
    return async () => {
      await terminal.write(promptOf(turn));
      const startedAt = performance.now();
      await terminal.press('Enter');
      await terminal.shows(answerOf(turn));
      await terminal.idle();
      turn += 1;
      return performance.now() - startedAt;
    };
  };
  try {
    return await alternate({ withHook: timed(withHook), without: timed(without) }, runs, REST_MS);
  } finally {
    await Promise.all([withHook.close(), without.close()]);
    await homes.close();
  }
}

async function openHomes(turns: number) {
  const script: Script = Object.fromEntries(
    Array.from({ length: turns }, (_, turn) => [promptOf(turn), [says(text(answerOf(turn)))]]),
  );
  const traced = await TracedHome.open(script);
  const untraced = await ClaudeHome.open(script);
  const close = () => Promise.all([traced.close(), untraced.close()]);
  return { traced, untraced, close };
}

/** Each turn has another prompt and answer, so that the screen shows when its own answer is there. */
function promptOf(turn: number): string {
  return `Say number ${turn}.`;
}

function answerOf(turn: number): string {
  return `This is number ${turn}.`;
}
