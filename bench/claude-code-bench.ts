import { ClaudeHome } from '../test/real/claude-home.js';
import { print } from '../test/real/headless.js';
import { type Script, says, text } from '../test/real/replies.js';
import { Terminal } from '../test/real/terminal.js';
import { TracedHome } from '../test/real/traced-home.js';
import { mediansOf } from './measure.js';

/** What a user waits for, in ms. */
export interface Waits {
  readonly withHook: number;
  readonly without: number;
}

/** What the hook has handed over to must be done before the other one is timed. */
const REST_MS = 400;

/** How long `claude -p` takes whose answer comes at once. */
export async function printing(claude: string, runs: number): Promise<Waits> {
  const homes = await openHomes(1);
  const timed = (home: ClaudeHome) => async () => {
    const startedAt = performance.now();
    await print(claude, home, promptOf(0));
    return performance.now() - startedAt;
  };
  try {
    const { traced, untraced } = homes;
    return await mediansOf({ withHook: timed(traced.claude), without: timed(untraced) }, runs, REST_MS);
  } finally {
    await homes.close();
  }
}

/** How long a turn in the terminal takes whose answer comes at once: from Enter to when the next can be typed. */
export async function typing(claude: string, runs: number): Promise<Waits> {
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
    return await mediansOf({ withHook: timed(withHook), without: timed(without) }, runs, REST_MS);
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

/** Each is another one: by its answer the screen tells a turn from those before it. */
function promptOf(turn: number): string {
  return `Say number ${turn}.`;
}

function answerOf(turn: number): string {
  return `Number ${turn} it is.`;
}
